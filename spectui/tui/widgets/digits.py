"""Figures three rows high, heavy enough to be read from two metres away."""

from __future__ import annotations

from typing import Final

_GLYPHS: Final = {
    "0": ("█▀█", "█ █", "▀▀▀"),
    "1": ("▄█ ", " █ ", "▀▀▀"),
    "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", " ▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"),
    "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"),
    "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"),
    ".": (" ", " ", "▀"),
    "x": ("   ", "▀▄▀", "▀ ▀"),
    "\u2014": ("   ", "▀▀▀", "   "),
}


def big(text: str, width: int) -> tuple[str, str, str]:
    """Three rows of `text`, right-aligned in `width` cells; characters without a figure are left out."""
    glyphs = [_GLYPHS[character] for character in text if character in _GLYPHS]
    first, second, third = (" ".join(glyph[row] for glyph in glyphs).rjust(width) for row in range(3))
    return first, second, third
