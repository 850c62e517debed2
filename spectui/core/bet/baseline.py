"""The plain speed that a bet is measured against, as a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.segment import SpeedEstimate


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known of the server without speculation: its speed, where that comes from, and V(n) if probed.

    replayed: what n-gram lookups make of its answers, where they could be read back.
    """

    speed: SpeedEstimate
    source: str
    v: Mapping[int, float] = field(default_factory=dict)
    v_error: Mapping[int, float] = field(default_factory=dict)
    """Relative standard error of V(n), where it is known."""
    replayed: tuple[Replay, ...] = ()


def given(tokens_per_second: float) -> Baseline:
    """A baseline that the user states, without an error of its own."""
    speed = SpeedEstimate(per_stream=Estimate(value=tokens_per_second), streams=1.0, relative_error=None)
    return Baseline(speed, "given")


def pooled(first: SpeedEstimate, second: SpeedEstimate) -> SpeedEstimate:
    """Two measurements of one plain speed as one: their geometric mean.

    What they differ by is part of its error: half the difference is the standard error of a mean of two.
    """
    a, b = first.per_stream.value, second.per_stream.value
    within = math.hypot(first.relative_error or 0.0, second.relative_error or 0.0) / 2
    error = math.hypot(within, math.log(a / b) / 2)
    value, spread = math.sqrt(a * b), math.exp(1.96 * error)
    return SpeedEstimate(
        per_stream=Estimate(value=value, low=value / spread, high=value * spread),
        streams=(first.streams + second.streams) / 2,
        relative_error=error,
    )
