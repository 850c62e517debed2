"""What is wrong with a session's server, until something new begins: failures for the verdict, and the log's end.

The session reports its errors here and words none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spectui.core.verdict.verdict import Failure
from spectui.errors import LaunchError, PromptsError, ServerDied, SpectuiError, UsageError
from spectui.lab.servers.server import LaunchedServer, failure_of
from spectui.store.fault_log import fault

_OF_TRAFFIC: Final = frozenset({"server-error", "server-unreachable"})
"""Failures that are forgotten when traffic begins again."""
_LAST_LINES: Final = 12


class SessionFailures:
    """on_notice is told of bad input, which is said in passing; what is wrong with a server stays."""

    def __init__(self, on_notice: Callable[[str], None]) -> None:
        self.on_notice = on_notice
        self.current: tuple[Failure, ...] = ()
        self.log: tuple[str, ...] = ()
        """The last lines of the log of a server that ended."""
        self.baseline = ""
        """Why the baseline could not be measured; empty where it was, or nobody tried."""

    def take(self, error: Exception) -> None:
        """Keep an error as what is wrong now."""
        if isinstance(error, UsageError | PromptsError):
            self.on_notice(str(error))
            return
        if isinstance(error, SpectuiError):
            self.current = (failure_of(error),)
        else:
            self.current = (Failure(code="internal-error", text=fault(error)),)
        self.log = error.log_tail if isinstance(error, LaunchError | ServerDied) else ()

    def no_baseline(self, error: SpectuiError) -> None:
        """The baseline could not be measured: the verdict says so until another attempt."""
        self.baseline = str(error)
        self.on_notice(f"the baseline could not be measured: {error}")

    def ended(self, server: LaunchedServer) -> None:
        """A server of ours ended by itself."""
        self.current = tuple(server.failures)
        self.log = server.log_tail(_LAST_LINES)

    def clear(self) -> None:
        """Something new begins."""
        self.current, self.log = (), ()

    def traffic_begins(self) -> None:
        """Forget what only concerned the traffic before."""
        self.current = tuple(f for f in self.current if f.code not in _OF_TRAFFIC)
