"""One process of a llama-server that we start: spawn, output, exit, stop; and no orphan, ever.

It uses no HTTP: a process that hangs or floods must be seen and ended without its cooperation.

What keeps orphans away, from the gentle to the brutal: `stop`; the end of the event loop, which kills; the
interpreter's exit or the loss of the last reference, through a finalizer; a watchman, which outlives us to end the
group of a wrapped server; and on Linux the kernel, which kills the server when the thread that started it dies.
Start servers from the main thread therefore: a worker thread that ends would take its servers along.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from spectui.core.text import one_line
from spectui.errors import BinaryError, LaunchError
from spectui.llama.process.guard import Watchman
from spectui.llama.process.output import OutputLines, RotatingLog

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2)."""
TERM_AGAIN_S: Final = 1.0
"""After this long a second SIGTERM is sent, which llama-server takes as "now"."""
KILL_AFTER_S: Final = 3.0
"""After this long, counted from the second SIGTERM, SIGKILL is sent."""
_LAST_OUTPUT_S: Final = 1.0
"""How long output is read after the exit; a stray grandchild may hold the pipe open for ever."""


class ServerProcess:
    """A running or ended server. Make one with `start`, end it with `stop`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: OutputLines,
        reader: _Reader,
        watchman: Watchman,
        started: float,
    ) -> None:
        self._process = process
        self._output = output
        self._reader = reader
        self._stopping: asyncio.Task[int] | None = None
        self.started = started
        self._finalizer = weakref.finalize(self, _kill_group_of, process.pid, os.getpid())
        self._ended = asyncio.create_task(
            _watch(process, output, reader, self._finalizer, watchman), name=f"server-{process.pid}"
        )

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        on_line: Callable[[str], None] | None = None,
        log_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> ServerProcess:
        """Start `argv` with exactly the environment `env` (None: ours); its output goes line by line to `on_line`.

        Raises BinaryError when the program cannot be run, LaunchError when the log or the arguments are unusable.
        """
        if not argv:
            raise BinaryError(
                "there is no llama-server to start; name one in the profile or put it on the PATH"
            )
        output = OutputLines(on_line, _open_log(log_file))
        reader = _Reader(output)
        watchman = Watchman()
        read_end, write_end = os.pipe()
        try:
            await asyncio.get_running_loop().connect_read_pipe(lambda: reader, os.fdopen(read_end, "rb", 0))
            started = clock()
            process = await _spawn(argv, env, write_end, watchman)
        except BaseException:
            watchman.dismiss()
            reader.close()
            output.end()
            raise
        finally:
            os.close(write_end)
        return cls(process, output, reader, watchman, started)

    @property
    def pid(self) -> int:
        """Its process id, which is also its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    def tail(self, count: int = 40) -> tuple[str, ...]:
        """The last lines it printed."""
        return self._output.tail(count)

    async def wait(self) -> int:
        """Exit code, once it has ended and its last lines are read."""
        return await asyncio.shield(self._ended)

    async def stop(self, *, term_again_s: float = TERM_AGAIN_S, kill_after_s: float = KILL_AFTER_S) -> int:
        """End it and return its exit code: SIGTERM, again after a while, SIGKILL to its whole group at last.

        Close open streams first: a server waits for its clients. Stopping twice is fine, and a cancelled stop goes
        on; a stop whose event loop ends kills.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(
                self._stop(term_again_s, kill_after_s), name=f"stop-{self.pid}"
            )
        return await asyncio.shield(self._stopping)

    async def _stop(self, term_again_s: float, kill_after_s: float) -> int:
        for patience in (term_again_s, kill_after_s):
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    return await self.wait()
        self._signal(signal.SIGKILL)
        return await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            _signal_group(self.pid, number)


def describe_exit(code: int) -> str:
    """An exit code in words: "exit code 1" or "killed by SIGSEGV"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class _Reader(asyncio.Protocol):
    """Reads without ever pausing, so that the child never blocks on its output."""

    def __init__(self, output: OutputLines) -> None:
        self._output = output
        self._transport: asyncio.BaseTransport | None = None
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._output.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.done.set()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _watch(
    process: asyncio.subprocess.Process,
    output: OutputLines,
    reader: _Reader,
    finalizer: weakref.finalize[[int, int], ServerProcess],
    watchman: Watchman,
) -> int:
    """Wait for the exit, sweep what is left of the group, read the last output. Holds no ServerProcess."""
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        finalizer()
        watchman.dismiss()
        reader.close()
        raise
    _signal_group(process.pid, signal.SIGKILL)
    finalizer.detach()
    watchman.dismiss()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_OUTPUT_S):
            await reader.done.wait()
    reader.close()
    output.end()
    return code


async def _spawn(
    argv: Sequence[str], env: Mapping[str, str] | None, output: int, watchman: Watchman
) -> asyncio.subprocess.Process:
    program = one_line(argv[0], 200)
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_before_exec(watchman),
        )
    except FileNotFoundError as error:
        raise BinaryError(f"{program} was not found; name a llama-server that exists") from error
    except PermissionError as error:
        raise BinaryError(f"{program} is not executable; check its permissions or name another") from error
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            raise BinaryError(
                f"{program} is no program for this machine; name a llama-server built for it"
            ) from error
        reason = error.strerror or str(error)
        raise BinaryError(f"{program} could not be started ({reason}); check it by hand") from error
    except ValueError as error:
        raise LaunchError(f"the command line or environment for {program} is unusable: {error}") from error


def _before_exec(watchman: Watchman) -> Callable[[], None]:
    """What the child runs before exec: enrol; on Linux also ask the kernel to kill it when we die."""
    if sys.platform != "linux":
        return watchman.enrol
    # Loaded here, because between fork and exec only what is already there may be used.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def prepare() -> None:
        watchman.enrol()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def _open_log(path: Path | None) -> RotatingLog | None:
    if path is None:
        return None
    try:
        return RotatingLog(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LaunchError(
            f"the server's log {path} cannot be written ({reason}); choose another place"
        ) from error


def _signal_group(pid: int, number: signal.Signals) -> None:
    # A zombie's group cannot be signalled on macOS: PermissionError.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_group_of(pid: int, owner: int) -> None:
    """Last resort; a fork of ours that exits must not kill its parent's servers."""
    if os.getpid() == owner:
        _signal_group(pid, signal.SIGKILL)
