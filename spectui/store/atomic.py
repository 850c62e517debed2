"""Replace a file's text in one step: readers and a power cut see the old text or the new, never half of either.

Profiles and baselines are written through it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write UTF-8 text to `path` without translating line ends.

    A link is followed, so that the file behind it changes and the link stays. An existing file keeps its
    permission bits; a new one gets `mode` less the umask. The folder must exist. Raises OSError (with the old
    file untouched), and PermissionError for a file that is write-protected even where its folder is not.
    """
    target = path.resolve()
    kept = _permissions(target)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, not a path
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _permissions(target: Path) -> int | None:
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return stat.S_IMODE(found.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable; file systems that cannot sync a folder are left alone."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
