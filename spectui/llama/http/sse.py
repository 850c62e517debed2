"""Bytes of an event stream -> the payloads of its events.

The hot path, and pure: one chunk arrives per token, cut at any byte.
"""

from __future__ import annotations

from typing import Final

DATA: Final = b"data"
ERROR: Final = b"error"
"""Field that llama.cpp uses, outside the standard, for an error in the middle of a stream."""

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""Longest event that is read; the final event of a completion repeats its whole prompt."""


class SseSplitter:
    """Feed chunks in order; every complete event comes back once, as (field, payload).

    Knows what servers of this kind send: lines ended by LF or CRLF, the fields `data` and `error`, several data
    lines joined by LF. Comments and other fields are dropped.
    """

    __slots__ = ("_data", "_error", "_limit", "_partial", "_size")

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._error: bytes | None = None
        self._size = 0

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """Events that this chunk completes. Raises OverflowError when an event exceeds the limit."""
        lines = chunk.split(b"\n")
        if self._partial:
            self._partial.append(lines[0])
            if len(lines) > 1:
                lines[0] = b"".join(self._partial)
                self._partial.clear()
        rest = lines.pop()
        events: list[tuple[bytes, bytes]] = []
        for line in lines:
            self._take(line.removesuffix(b"\r"), events)
        if lines or not self._partial:
            self._partial = [rest] if rest else []
        self._size = len(rest) if lines else self._size + len(chunk)
        if self._size + sum(map(len, self._data)) > self._limit:
            raise OverflowError(f"an event of more than {self._limit} bytes")
        return events

    def end(self) -> list[tuple[bytes, bytes]]:
        """What the stream's end completes: servers may leave out the last blank line."""
        return self.feed(b"\n\n")

    def _take(self, line: bytes, events: list[tuple[bytes, bytes]]) -> None:
        if not line:
            if self._data:
                events.append((DATA, b"\n".join(self._data)))
                self._data.clear()
            if self._error is not None:
                events.append((ERROR, self._error))
                self._error = None
            return
        field, colon, value = line.partition(b":")
        if not colon:
            return
        value = value.removeprefix(b" ")
        if field == DATA:
            self._data.append(value)
        elif field == ERROR:
            self._error = value
