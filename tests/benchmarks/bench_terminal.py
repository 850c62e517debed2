"""A program in a terminal of its own, and the scripted server that it looks at."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Terminal:
    """Runs `argv` in a pty, reads all that it draws, and types. `started` is the moment of the exec."""

    def __init__(
        self, argv: list[str], *, columns: int = 120, rows: int = 36, stderr: int | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._drawn = bytearray()
        self._news = threading.Condition()
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs if stderr is None else stderr,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **_home()},
            start_new_session=True,
        )
        os.close(theirs)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._ours, 65536):
                with self._news:
                    self._drawn += data
                    self._news.notify_all()

    @property
    def drawn(self) -> bytes:
        """Everything that was written to the terminal."""
        with self._news:
            return bytes(self._drawn)

    def wait_for(self, text: str, timeout: float = 20.0) -> float:
        """Seconds from the exec until `text` was drawn."""
        wanted = text.encode()
        with self._news:
            if not self._news.wait_for(lambda: wanted in self._drawn, timeout):
                raise SystemExit(f"{text!r} was never drawn; the end of what was: {self._drawn[-2000:]!r}")
        return time.perf_counter() - self.started

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._ours, keys)

    def close(self) -> None:
        """Quit, with force if it takes long."""
        with suppress(OSError):
            self.type(b"\x11")
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)


_HOME = tempfile.TemporaryDirectory(prefix="spectui-bench-")


def _home() -> dict[str, str]:
    """An empty home, so that a profile of the user's is neither read nor written."""
    names = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    return {"HOME": _HOME.name, **{name: f"{_HOME.name}/{name}" for name in names}}


@contextmanager
def terminal(argv: list[str], **options: int) -> Iterator[Terminal]:
    """A program in a terminal while the block lasts."""
    opened = Terminal(argv, **options)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def scripted_server(*options: str, module: str = "tests.scripted_server") -> Iterator[str]:
    """A scripted server as a process of its own; gives its address."""
    argv = [sys.executable, "-m", module, *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        if process.stdout is None or not select.select([process.stdout], [], [], 10)[0]:
            raise SystemExit("the scripted server did not start")
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def spectui(*arguments: str) -> list[str]:
    """The command as it is installed beside this Python."""
    return [str(Path(sys.executable).with_name("spectui")), *arguments]


def load() -> str:
    """How busy the machine is, to judge the figures by."""
    return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"
