"""A watchman for a process group: it ends the group when spectui is gone, however spectui went.

The kernel's parent-death signal reaches a direct child only; a server behind a wrapper script would live on. The
watchman is a small shell that waits for the end of a pipe whose other end only spectui holds. The child reports its
group through that pipe before it becomes the server, so that there is no moment in which nobody watches.
"""

from __future__ import annotations

import os
import signal
import subprocess
import weakref
from contextlib import suppress
from typing import Final

from spectui.errors import LaunchError

_SCRIPT: Final = 'while read -r line; do group=$line; done; test -n "$group" && kill -s KILL -- "-$group"'


class Watchman:
    """Guards the group that `enrol`s until `dismiss`; losing the last reference dismisses it too.

    Raises LaunchError where no process can be started.
    """

    def __init__(self) -> None:
        try:
            self._shell = subprocess.Popen(  # noqa: S603  our own script
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise LaunchError(
                f"no process can be started here ({reason}): see the limits of this user"
            ) from error
        self._finalizer = weakref.finalize(self, _dismiss, self._shell, os.getpid())

    def enrol(self) -> None:
        """Put the calling process's group under guard: for a forked child, before it becomes another program."""
        if self._shell.stdin is not None:
            os.write(self._shell.stdin.fileno(), b"%d\n" % os.getpgrp())

    def dismiss(self) -> None:
        """The group has ended: its number may belong to somebody else soon."""
        self._finalizer()


def _dismiss(shell: subprocess.Popen[bytes], owner: int) -> None:
    """Kill the shell before the pipe closes, so that it does not act."""
    if os.getpid() != owner:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    if shell.stdin is not None:
        shell.stdin.close()
