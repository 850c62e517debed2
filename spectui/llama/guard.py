"""A watchman for a process group: it ends the group when spectui is gone, however spectui went.

The kernel's parent-death signal reaches a direct child only; a server behind a wrapper script would live on. The
watchman is a small shell that waits for the end of a pipe whose other end only spectui holds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import weakref
from contextlib import suppress
from typing import Final

_SCRIPT: Final = 'cat >/dev/null; kill -s KILL -- "-$0" 2>/dev/null'


class Watchman:
    """Guards one group until `dismiss`; losing the last reference dismisses it too."""

    def __init__(self, group: int) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  our own script; the group is a number
            ["/bin/sh", "-c", _SCRIPT, str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._finalizer = weakref.finalize(self, _dismiss, self._shell, os.getpid())

    def dismiss(self) -> None:
        """The group has ended: its number may belong to somebody else soon."""
        self._finalizer()


def _dismiss(shell: subprocess.Popen[bytes], owner: int) -> None:
    """Kill the shell with its `cat` before the pipe closes, so that it does not act."""
    if os.getpid() != owner:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    if shell.stdin is not None:
        shell.stdin.close()
