"""What a sweep recommends under a condition: the fastest setting that surely wins, or none.

A setting that was measured comes before one that was predicted, unless the prediction is better for sure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spectui.core.snapshot import Estimate
from spectui.core.sweepplan import PLAIN, Setting

WORTH: Final = 1.05
"""Least speedup that is worth a second model or a setting to look after."""


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


def _speedup(candidate: Candidate) -> float:
    return candidate.speedup.value
