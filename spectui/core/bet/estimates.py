"""The quantities of the bet as values: estimates with intervals, costs with sources, and one reading of it all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % interval; low and high are None where there is not enough to give one."""

    value: float
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> Estimate:
        """All of it multiplied by a number that is known."""
        low, high = (None if edge is None else edge * factor for edge in (self.low, self.high))
        return Estimate(value=self.value * factor, low=low, high=high)

    def widened(self, error: float) -> Estimate:
        """The same with another independent error, as a share of the value."""
        spread = math.exp(1.96 * error)
        low, high = (self.value if edge is None else edge for edge in (self.low, self.high))
        return Estimate(value=self.value, low=low / spread, high=high * spread)


class Source(StrEnum):
    """Where a cost comes from."""

    MEASURED = "measured"
    PROBED = "probed"
    FITTED = "fitted"
    ASSUMED = "assumed"
    GIVEN = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One part of a pass's price with its source and, where there is one, its 95 % interval."""

    value: float
    source: Source
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What is known of the price of a pass; in plain steps but for T1. Unknown is None."""

    t1_ms: Cost | None = None
    """T1, a plain decode step, in milliseconds."""
    c: Cost | None = None
    u: Cost | None = None
    v: Mapping[int, Cost] = field(default_factory=dict)
    """V(n) at the probed n."""
    pass_cost: Cost | None = None
    """R."""
    inseparable: str = ""
    """What the data cannot tell apart, in one sentence; empty when drafting and verifying stand apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """Survival at one position: the share of passes that accept at least `position` tokens."""

    position: int
    survival: float
    low: float | None = None
    high: float | None = None
    at_risk: int = 0
    """Passes that could have accepted this token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSplit:
    """Where the plain steps of one pass go; the parts sum to its whole cost R."""

    tokens: float
    """E: what the pass yields, in plain steps that it replaces."""
    target: float
    """The plain step that every pass contains: 1."""
    drafting: float
    verification: float
    """V - 1, with the surplus of the rows."""
    overhead: float
    """u."""
    unexplained: float
    """What is left of R."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetReading:
    """The bet in the current segment, in the terms of the glossary."""

    requests: int = 0
    """Finished requests in the segment."""
    passes: int = 0
    tokens: int = 0
    """Committed tokens."""
    drafted: int = 0
    accepted: int = 0
    tokens_per_second: float | None = None
    """Aggregate decode speed of the segment; first tokens excluded."""
    live_tokens_per_second: float | None = None
    """The last seconds only; None while nothing streams."""
    time_to_first_token_ms: float | None = None
    """Median over the segment's requests."""
    alpha: Estimate | None = None
    acceptance_ratio: float | None = None
    tokens_per_pass: Estimate | None = None
    """E, measured."""
    drafted_per_pass: float | None = None
    pass_ms: float | None = None
    """Mean time of one target pass with its drafting, in milliseconds."""
    t1_ms: float | None = None
    """T1, a plain decode step, from the baseline, in milliseconds."""
    costs: Costs = field(default_factory=Costs)
    """The parts of the price with their sources and intervals."""
    draft_ms: float | None = None
    """Draft milliseconds per drafting step of all busy slots, from the statistics line."""
    c: float | None = None
    """draft_ms in plain steps."""
    pass_cost: float | None = None
    """R, in plain steps: tokens per pass over the actual speedup."""
    baseline: Estimate | None = None
    """Plain speed on the same prompts, tokens per second."""
    baseline_source: str = ""
    """Where the baseline comes from: measured, remembered, given, or second server."""
    fixed_length: bool = True
    """Whether every pass drafts k tokens, so that other lengths can be predicted from this one."""
    rereads: bool = True
    """Whether the draft reads the last accepted token again, d + 1 steps per pass, as builds since b9109 do."""
    streams: float = 1.0
    """Mean number of requests that decoded at once."""
    stalled: int = 0
    """Passes that took over ten times the usual time (a paused process, a swapped page): left out of speeds."""
    two_pass: bool = False
    """Whether the server makes two target passes per cycle (b4164 to b7322); passes are then cycles."""
    speedup_actual: Estimate | None = None
    speedup_textbook: float | None = None
    """E / (1 + k c): verification taken as free."""
    speedup_predicted: float | None = None
    """By the full cost of a pass; None where the cost of verification is not known."""
    survival: tuple[PositionRow, ...] = ()
    tokens_per_request: float | None = None
    """Committed tokens per finished request: what a request's end does to long drafts depends on it."""
    loss: LossSplit | None = None
    """Where the plain steps of a pass go; None until verification was probed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Speedup at one draft length."""

    draft_length: int
    speedup: float
    low: float | None = None
    high: float | None = None
    measured: bool = False
    """Whether it was measured and not predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupPrediction:
    """An n-gram lookup and what it is predicted to yield over no speculation, before a server ran with it."""

    lookup: int
    """Tokens that must match."""
    length: int
    """Tokens that it drafts."""
    speedup: Estimate
