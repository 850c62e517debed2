"""Text of models, servers and files -> one plain line that a terminal can show.

What a server or a model wrote is untrusted: escape sequences could move the cursor, set the window's title or
hide text. Everything that shows or keeps foreign text goes through here.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # OSC, DCS and other strings up to their terminator
    "|[ -/]*[0-~])"  # two-character and charset sequences
)
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 but tab, DEL, C1, Unicode line ends, direction overrides; surrogates, which no encoding has."""


def one_line(text: str, limit: int | None = None) -> str:
    """One line of `text` without escape sequences and control characters, cut to `limit` characters.

    Tabs and control characters become spaces where dropping them would glue words together.
    """
    if limit is not None:
        text = text[: 4 * limit]
    if not text.isprintable():
        text = _CONTROLS.sub(" ", without_escapes(text).replace("\t", " "))
    if limit is not None and len(text) > limit:
        return text[: max(0, limit - 1)] + "\u2026"
    return text


def without_escapes(text: str) -> str:
    """The text without colours, cursor moves and other escape sequences; control characters stay."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where that is right: 1 pass, 2 passes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
