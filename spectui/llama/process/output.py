"""What a server prints: bytes -> clean lines, the last of them in memory, all of them in a file of bounded size.

It needs no process, so that a flood, a torn line or a full disk is tested without one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from spectui.core.text import one_line

RING_LINES: Final = 2000
LINE_CHARS: Final = 4000
LOG_BYTES: Final = 8 * 1024 * 1024
"""Size at which a log file is moved to `<name>.1`; one older file is kept."""
_LINE_BYTES: Final = 4 * LINE_CHARS


class OutputLines:
    """Feed bytes as they come; whole lines go to a ring, to `on_line` and to the log, free of escape sequences."""

    def __init__(
        self,
        on_line: Callable[[str], None] | None = None,
        log: RotatingLog | None = None,
        *,
        ring: int = RING_LINES,
    ) -> None:
        self._on_line = on_line
        self._log = log
        self._ring: deque[str] = deque(maxlen=ring)
        self._partial = b""

    def feed(self, data: bytes) -> None:
        """Take bytes cut anywhere. A line's end beyond the limit is dropped, whatever its length."""
        lines = data.split(b"\n")
        lines[0] = self._partial + lines[0]
        self._partial = lines.pop()[:_LINE_BYTES]
        for line in lines:
            self._take(line)
        if lines and self._log is not None:
            self._log.flush()

    def end(self) -> None:
        """Take the last line, which may lack its end, and close the log."""
        if self._partial:
            self._take(self._partial)
            self._partial = b""
        if self._log is not None:
            self._log.close()

    def tail(self, count: int) -> tuple[str, ...]:
        """The last `count` lines, the oldest first."""
        return tuple(self._ring)[-count:] if count > 0 else ()

    def _take(self, raw: bytes) -> None:
        # A progress line rewrites itself after carriage returns: its last state counts.
        shown = raw[:_LINE_BYTES].rstrip(b"\r").rpartition(b"\r")[2]
        line = one_line(shown.decode("utf-8", "replace"), LINE_CHARS)
        self._ring.append(line)
        if self._log is not None:
            self._log.write(line)
        if self._on_line is not None:
            self._on_line(line)


class RotatingLog:
    """A log of at most two files of `limit` bytes. A disk that fails ends the log, never the server.

    Opening raises OSError, as for any file; later trouble is kept in `trouble`.
    """

    def __init__(self, path: Path, limit: int = LOG_BYTES) -> None:
        self._path = path
        self._limit = limit
        self.trouble: str | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = path.open("ab")
        self._size = self._file.tell()

    @property
    def older(self) -> Path:
        """Where the previous part is kept."""
        return self._path.with_name(self._path.name + ".1")

    def write(self, line: str) -> None:
        """Append one line."""
        data = line.encode("utf-8", "replace") + b"\n"
        if self._file is None:
            return
        try:
            if self._size and self._size + len(data) > self._limit:
                self._rotate(self._file)
            self._file.write(data)
        except OSError as error:
            self._give_up(error)
        self._size += len(data)

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Flush and close; closing twice is fine."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.trouble = self.trouble or str(error)

    def _rotate(self, file: BinaryIO) -> None:
        file.close()
        self._path.replace(self.older)
        self._file = self._path.open("wb")
        self._size = 0

    def _give_up(self, error: OSError) -> None:
        self.trouble = self.trouble or str(error)
        self.close()
