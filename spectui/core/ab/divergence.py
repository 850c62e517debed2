"""Whether two arms wrote the same: the first place at which two outputs part, made plain for a terminal.

At temperature 0 speculation promises the plain output; rounding in batched passes can still turn a near tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spectui.core.text import one_line

_BEFORE: Final = 24
_AFTER: Final = 24
"""Characters shown on either side of the place."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference of two texts. a, b: each with a few characters before it, as one plain line."""

    position: int
    """Characters that both share before it."""
    a: str
    b: str


def first_divergence(a: str, b: str) -> Divergence | None:
    """Where two texts part; where one is the other's beginning, at its end. None for equal texts."""
    if a == b:
        return None
    shared = zip(a, b, strict=False)
    position = next((i for i, (x, y) in enumerate(shared) if x != y), min(len(a), len(b)))
    begin, end = max(0, position - _BEFORE), position + _AFTER
    return Divergence(position, one_line(a[begin:end]), one_line(b[begin:end]))
