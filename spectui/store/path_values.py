"""File names inside a profile: what the user wrote <-> the path that it means.

In a file: relative to the profile's folder, `~` is the home folder, $NAME a variable, `$$` a dollar sign. In
memory: absolute, and taken as it is. Only `server.binary` may also be a bare command name, found in PATH.
"""

from __future__ import annotations

import os
from pathlib import Path
from string import Template
from typing import Final

KEYS: Final = frozenset(
    {
        "server.binary",
        "server.model",
        "speculation.draft_model",
        "speculation.draft_models",
        "traffic.prompts",
    }
)
"""The settings that hold file names."""

_COMMANDS: Final = frozenset({"server.binary"})


class PathValueError(ValueError):
    """A file name that cannot be understood; the text says why."""


def expand(written: str, *, key: str, folder: Path) -> str:
    """The path that `written` means in a profile that lies in `folder` (absolute).

    Raises PathValueError for a variable that is not set, a lone dollar sign and an unknown user.
    """
    try:
        text = Template(written).substitute(os.environ)
    except KeyError as error:
        raise PathValueError(f"the variable {error.args[0]} is not set") from error
    except ValueError as error:
        raise PathValueError("a dollar sign that names no variable is written $$") from error
    if key in _COMMANDS and "/" not in text:
        return text
    if text.startswith("/"):
        return text
    return str(folder / _home(text))


def absolute(path: str, *, key: str) -> str:
    """A path as a shell in the current folder would take it, so that a profile may carry it elsewhere."""
    if path.startswith("/") or (key in _COMMANDS and "/" not in path):
        return path
    return str(_home(path).absolute())


def written(path: str) -> str:
    """The text that `expand` turns back into `path`."""
    return path.replace("$", "$$")


def _home(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise PathValueError("the user after ~ is not known here") from error
