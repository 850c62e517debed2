"""Files that a user names on the command line: only regular ones, since a pipe or a device may never end."""

from __future__ import annotations

import stat
from pathlib import Path

from spectui.core.text import one_line
from spectui.errors import UsageError


def require_regular(path: str) -> Path:
    """The path of a file that can be read to its end. Raises UsageError, one line."""
    shown = one_line(path, 200)
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{shown} cannot be read: {reason}") from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"{shown} is a folder: name a file")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{shown} is not a regular file: save it to one first")
    return Path(path)
