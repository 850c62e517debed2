"""The log of spectui's own faults: one rotating file for this user only, without secrets.

A fault is shown in one line that names the file; the traceback is in there. Nothing is opened before something is
written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from spectui.core.secrets import scrubbed
from spectui.errors import SpectuiError
from spectui.store.paths import Folders, make_folder

if TYPE_CHECKING:
    from logging.handlers import RotatingFileHandler

NAME: Final = "spectui.log"
_BYTES: Final = 1024 * 1024
_OLDER: Final = 2
"""Older files that are kept beside the current one."""
_LONGEST: Final = 64 * 1024
_LONGEST_LINE: Final = 500
"""Characters of a record, and of the line that is shown."""
_FORM: Final = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class _Scrubbing(logging.Formatter):
    """Lines and tracebacks without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(super().format(record)[:_LONGEST])


def _handler() -> RotatingFileHandler:
    """The file's handler, made at its first use. Raises OSError, or UsageError for folders that cannot be used."""
    from logging.handlers import RotatingFileHandler  # noqa: PLC0415  the first frame needs no log

    logger = logging.getLogger("spectui")
    file = Folders.default().log / NAME
    known = next((h for h in logger.handlers if isinstance(h, RotatingFileHandler)), None)
    if known is not None and known.baseFilename == str(file):
        return known
    if known is not None:
        logger.removeHandler(known)
        known.close()
    make_folder(file.parent)
    file.touch(mode=0o600)
    made = RotatingFileHandler(file, maxBytes=_BYTES, backupCount=_OLDER, encoding="utf-8", errors="replace")
    made.setFormatter(_Scrubbing(_FORM))
    logger.addHandler(made)
    logger.propagate = False
    return made


def log_more() -> None:
    """Write what HTTP, the event loop and spectui do as well. Raises OSError, or UsageError, as the file does."""
    made = _handler()
    logging.getLogger("spectui").setLevel(logging.DEBUG)
    for name in ("asyncio", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.DEBUG)
        logging.getLogger(name).addHandler(made)


def fault(error: BaseException) -> str:
    """Keep the traceback of an error that nobody expected; gives the line to show."""
    said = scrubbed(f"spectui itself failed: {error!r}"[:_LONGEST_LINE])
    try:
        made = _handler()
        logging.getLogger("spectui").error("%s", said, exc_info=error)
    except (OSError, SpectuiError) as problem:
        return f"{said}; its log cannot be written: {problem}"
    return f"{said}; the log has more: {made.baseFilename}"
