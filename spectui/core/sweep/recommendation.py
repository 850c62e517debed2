"""What a sweep recommends under a condition: the fastest setting that surely wins, or none.

A setting that was measured comes before one that was predicted, unless the prediction is better for sure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Setting
from spectui.core.text import counted
from spectui.core.verdict.facts import ENOUGH_REQUESTS

WORTH: Final = 1.05
"""Least speedup that is worth a second model or a setting to look after."""
DRIFTED: Final = 0.1
"""Change of the baseline on the way, as a share, from which on nothing measured is sure."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting with its speedup over the baseline, and whether it ran."""

    setting: Setting
    speedup: Estimate
    measured: bool


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The setting to use. `speedup` is None where speculation is off."""

    setting: Setting
    speedup: Estimate | None = None
    measured: bool = True
    doubts: tuple[str, ...] = ()
    """Why it is not sure, a few words each."""

    @property
    def off(self) -> bool:
        """Whether no speculation is recommended."""
        return self.setting == PLAIN


def recommend(candidates: Iterable[Candidate]) -> Recommendation:
    """The best of the candidates that reach 1.05 with their interval above 1; off where none does."""
    winning = [c for c in candidates if c.speedup.value >= WORTH and c.speedup.low and c.speedup.low > 1]
    measured = max((c for c in winning if c.measured), key=_speedup, default=None)
    guess = max((c for c in winning if not c.measured), key=_speedup, default=None)
    best = measured
    if guess is not None and (measured is None or (guess.speedup.low or 0.0) > measured.speedup.value):
        best = guess
    if best is None:
        return Recommendation(PLAIN)
    return Recommendation(best.setting, best.speedup, best.measured)


def has_drifted(drift: float | None) -> bool:
    """Whether the machine changed too much for anything to be sure. drift: the second baseline over the first."""
    return drift is not None and abs(drift - 1) > DRIFTED


def doubts_of(drift: float | None, requests: int) -> tuple[str, ...]:
    """Why what so many requests showed is not sure; drift as in `has_drifted`."""
    found = []
    if drift is not None and has_drifted(drift):
        found.append(f"the machine drifted by {drift - 1:+.0%}")
    if requests < ENOUGH_REQUESTS:
        found.append(f"from {counted(requests, 'request')} only")
    return tuple(found)


def _speedup(candidate: Candidate) -> float:
    return candidate.speedup.value
