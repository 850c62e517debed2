"""A terminal that may be gone: what is written to it then goes nowhere, so that spectui can still end in order.

Textual writes in a thread with a short queue. If that thread ended with the terminal, the next write would wait for
ever, and with it the signal handlers that stop our server.
"""

from __future__ import annotations

from contextlib import suppress
from typing import IO, Any

from textual.driver import Driver


class ForgivingFile:
    """A text file whose errors are of no consequence."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write if it can be written."""
        with suppress(OSError, ValueError):
            return self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if it can be flushed."""
        with suppress(OSError, ValueError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def forgiving(driver: type[Driver]) -> type[Driver]:
    """The driver, with an output that outlives its terminal."""

    class ForgivingDriver(driver):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            file: IO[str] | None = getattr(self, "_file", None)
            if file is not None:
                self._file = ForgivingFile(file)

    return ForgivingDriver
