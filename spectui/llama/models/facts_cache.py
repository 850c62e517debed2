"""Remembers on disk what was found out about model files, for as long as the files stay the same.

A bounded JSON file, written in one step and read leniently. A damaged or foreign file is the same as an empty one,
and a folder that cannot be written only means that the next run reads the models again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

FILE_NAME: Final = "model-facts.json"
MAX_ENTRIES: Final = 2000
"""Most answers that are kept; the oldest go first."""

_VERSION: Final = 1
"""Layout and meaning of the answers; others are dropped."""


def file_key(path: Path) -> str:
    """Identity of a file's content: its path, size and time of change. Raises OSError."""
    stat = path.stat()
    return f"{path.absolute()}|{stat.st_size}|{stat.st_mtime_ns}"


class FactsCache:
    """The answers of one cache folder; without a folder nothing is remembered."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / FILE_NAME

    def read(self) -> dict[str, Any]:
        """All answers by key."""
        if self._path is None:
            return {}
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(stored, dict) or stored.get("version") != _VERSION:
            return {}
        answers = stored.get("answers")
        return answers if isinstance(answers, dict) else {}

    def add(self, answers: Iterable[tuple[str, Any]]) -> None:
        """Add answers to what is on disk by now."""
        new = dict(answers)
        if self._path is None or not new:
            return
        kept = {key: value for key, value in self.read().items() if key not in new} | new
        kept = dict(list(kept.items())[-MAX_ENTRIES:])
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._path, json.dumps({"version": _VERSION, "answers": kept}))


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
