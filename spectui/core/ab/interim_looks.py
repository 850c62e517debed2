"""When to stop an A/B run: looks at fixed numbers of pairs, each with its share of the chance of a false claim.

Looking often and stopping at the first difference finds one where there is none: with 24 pairs and a look after
each, 5 % become some 20 %. So each look has an error of its own, and all of them together at most 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spectui.core.ab.comparison import FINEST, MIN_PAIRS, Comparison, Pair, Winner, compare
from spectui.core.bet.intervals import LEVEL

NARROW: Final = 0.03
"""Half width of the interval, as a share, at which more pairs would change nothing worth having."""

_GROWTH: Final = 1.4
"""Each look has so many times the pairs of the one before."""

_SPENDING: Final = 2.0
"""Exponent of the spending function."""


class Reason(StrEnum):
    """Why a run ended."""

    DECIDED = "decided"
    """The interval excludes 1."""
    NARROW = "narrow"
    """The interval is narrow enough."""
    PAIRS = "pairs"
    """As many pairs as were planned."""
    BUDGET = "budget"
    """The time is used up."""
    FAILED = "failed"
    """A server ended."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a run, with an interval that holds over all looks together."""

    result: Comparison
    reason: Reason
    error: float
    """What the interval was given of the whole error."""


class Looks:
    """Decides after each block whether a run goes on.

    The error is spent as 0.05 (pairs / planned)^2 (Kim and DeMets 1987, power family), a look getting what was
    added since the one before; their sum bounds the chance of any false claim (Bonferroni), however the looks
    depend on one another. A look spends nothing where there is no interval yet, or where its share is finer than
    an interval resolves: later looks get it. The last one takes what is left: what ends a run without a claim,
    narrowness, number or time, does not depend on which arm is ahead. Intervals are repeated ones (Jennison and
    Turnbull 1989). between: as in `compare`; more pairs narrow nothing of it, so narrowness is judged without.
    """

    def __init__(
        self, planned: int, *, narrow: float = NARROW, error: float = 1 - LEVEL, between: float = 0.0
    ) -> None:
        self._planned = planned
        self._between = between
        self._narrow = narrow
        self._error = error
        self._spent = 0.0
        self._next = first_look(planned)

    def after(self, pairs: Sequence[Pair], *, last: Reason | None = None) -> Ended | None:
        """The end of the run if it ends after these pairs; None while it goes on.

        last: that nothing more can come, and why.
        """
        number = len(pairs)
        left = self._error - self._spent
        if number >= self._planned:
            last = last or Reason.PAIRS
        if last is None and number < self._next:
            return None
        whole = compare(pairs, error=left, between=self._between)
        if last is not None:
            return Ended(whole, last, left)
        if whole.own_half_width is None:
            return None
        self._next = max(number + 1, round(number * _GROWTH))
        if whole.own_half_width <= self._narrow:
            return Ended(whole, Reason.NARROW, left)
        spend = self._error * (number / self._planned) ** _SPENDING - self._spent
        if spend < FINEST:
            return None
        self._spent += spend
        result = compare(pairs, error=spend, between=self._between)
        return None if result.verdict is Winner.NEITHER else Ended(result, Reason.DECIDED, spend)


def first_look(planned: int) -> int:
    """Pairs at the first look: half of those planned, at most 12, and no fewer than an interval takes."""
    return max(MIN_PAIRS, min(12, planned // 2))
