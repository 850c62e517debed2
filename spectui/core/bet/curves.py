"""A reading of the bet -> its costs, and the speedup at other draft lengths and with n-gram lookups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Final

from spectui.core.bet import speedup
from spectui.core.bet.agreement import Agreements
from spectui.core.bet.baseline import Baseline
from spectui.core.bet.cost import (
    ASSUMED_REST,
    USUAL_REST,
    CostModel,
    calibrated,
    known_costs,
    rereading_steps,
    split,
)
from spectui.core.bet.draft_lengths import full_curve, walked_curve
from spectui.core.bet.estimates import BetReading, Costs, CurvePoint, Estimate, LookupPrediction
from spectui.core.bet.ngram_replay import UNKNOWN_SURPLUS, best_lookup, replay_at
from spectui.core.bet.passes import RequestPasses
from spectui.core.bet.segment import DraftTiming, Segment
from spectui.core.profile import NGRAM_SIMPLE, TuningProfile

_REPLICATES: Final = 40
"""Bootstrap draws behind the interval of a curve without agreements: its width to about a tenth."""


def cost_model(bet: BetReading, v: Mapping[int, float]) -> CostModel | None:
    """V, c and a usual u for the running settings; None until verification was probed and c is known."""
    c = bet.c if bet.c is not None else (bet.costs.c.value if bet.costs.c else None)
    if bet.t1_ms is None or c is None or not any(n > 1 for n in v):
        return None
    steps = rereading_steps if bet.rereads else int
    return CostModel(t1_ms=bet.t1_ms, c=c, v=v, u=ASSUMED_REST, slots=bet.streams, steps=steps)


def reading_of(
    segment: Segment,
    baseline: Baseline | None,
    *,
    v: Mapping[int, float] = MappingProxyType({}),
    v_error: Mapping[int, float] = MappingProxyType({}),
    in_flight: Sequence[RequestPasses] = (),
    drafting: DraftTiming | None = None,
) -> BetReading:
    """Everything that a segment says of the bet, its costs included: the one way from counts to a reading.

    v, v_error: V(n) of the running server and its error, for a baseline that was not probed itself. in_flight:
    requests that still stream. drafting: the draft's own times in this segment.
    """
    if baseline is not None and baseline.v:
        v, v_error = baseline.v, baseline.v_error
    bet = segment.bet(
        in_flight=in_flight,
        baseline=baseline.speed if baseline else None,
        baseline_source=baseline.source if baseline else "",
        drafting=drafting,
    )
    return with_costs(bet, v, v_error)


def with_costs(
    bet: BetReading, v: Mapping[int, float], v_error: Mapping[int, float] | None = None
) -> BetReading:
    """The bet with its costs and, where they are known, its predicted speedup and the split of its loss.

    v_error: relative standard error of V(n). A c that was fitted from this very run predicts nothing about it.
    """
    bet = replace(bet, costs=_costs(bet, v, v_error or {}))
    model = cost_model(bet, v)
    tokens, drafted, measured = bet.tokens_per_pass, bet.drafted_per_pass, bet.pass_cost
    if model is None or tokens is None or drafted is None or measured is None:
        return bet
    return replace(
        bet,
        # Of drafts that are long or none at all the mean says little about what their passes cost.
        speedup_predicted=None
        if bet.c is None or not bet.fixed_length
        else tokens.value / model.pass_cost(drafted),
        loss=split(model, tokens=tokens.value, drafted_per_pass=drafted, pass_cost=measured),
    )


def _costs(bet: BetReading, v: Mapping[int, float], v_error: Mapping[int, float]) -> Costs:
    t1, plain = bet.t1_ms, bet.baseline
    spread = plain.high / plain.value if plain is not None and plain.high is not None else None
    return known_costs(
        t1_ms=None
        if t1 is None
        else Estimate(value=t1, low=t1 / spread if spread else None, high=t1 * spread if spread else None),
        stated=plain is not None and plain.high is None,
        draft_ms=bet.draft_ms,
        v={n: _within(value, v_error.get(n)) for n, value in v.items()},
        tokens=bet.tokens_per_pass,
        actual=bet.speedup_actual,
        drafted_per_pass=bet.drafted_per_pass,
        fixed_length=bet.fixed_length,
        slots=bet.streams,
        steps=rereading_steps if bet.rereads else int,
    )


def _within(value: float, error: float | None) -> Estimate:
    """A value with the interval of its relative standard error."""
    if error is None:
        return Estimate(value=value)
    return Estimate(value=value, low=value * (1 - 1.96 * error), high=value * (1 + 1.96 * error))


def predicted_curve(
    bet: BetReading,
    profile: TuningProfile,
    v: Mapping[int, float] | None = None,
    *,
    replicates: Sequence[Sequence[float]] = (),
    agreements: Agreements | None = None,
    lengths: Sequence[int] = speedup.CURVE_LENGTHS,
) -> tuple[CurvePoint, ...]:
    """Speedup at other draft lengths, calibrated on what the running settings cost; empty where unknowable.

    agreements: of the same segment; without them the survival curve has to do, with replicates for its interval.

    With V probed this is the full cost of each pass. Without, the price of a drafted token spreads the whole cost
    of a pass evenly. Verification grows faster than evenly with the length, so for shorter drafts this reads low,
    as the textbook form reads high: the truth lies between, and their geometric mean stands for it.
    """
    model = cost_model(bet, v or {})
    shares = _shares(bet)
    if not shares or bet.pass_cost is None or not bet.drafted_per_pass:
        return ()
    if model is not None:
        fitted = calibrated(model, drafted_per_pass=bet.drafted_per_pass, pass_cost=bet.pass_cost)
        cost_error = _relative_error(bet.speedup_actual)
        if agreements is not None:
            return walked_curve(agreements, fitted.pass_cost, cost_error=cost_error, lengths=lengths)
        return full_curve(
            shares,
            bet.tokens_per_request or profile.traffic.max_tokens,
            fitted.pass_cost,
            replicates=replicates,
            cost_error=cost_error,
            lengths=lengths,
        )
    price = speedup.implied_c(bet.pass_cost, bet.drafted_per_pass)
    low = () if price is None else speedup.curve(shares, price, lengths)
    high = textbook_curve(bet, lengths)
    if not high:
        return low
    now = profile.speculation.draft_length
    return tuple(
        replace(a, speedup=math.sqrt(a.speedup * b.speedup)) if a.draft_length < now else a
        for a, b in zip(low, high, strict=False)
    )


def curve_of(
    segment: Segment,
    bet: BetReading,
    v: Mapping[int, float],
    rng: Random,
    lengths: Sequence[int] = speedup.CURVE_LENGTHS,
) -> tuple[CurvePoint, ...]:
    """The predicted curve of a segment from all that its requests tell; bet: its reading."""
    if bet.pass_cost is None or cost_model(bet, v) is None:
        return predicted_curve(bet, segment.profile, v, lengths=lengths)
    agreements = segment.agreements(rng)
    replicates = segment.survival_replicates(_REPLICATES, rng) if agreements is None else ()
    return predicted_curve(
        bet, segment.profile, v, replicates=replicates, agreements=agreements, lengths=lengths
    )


def predicted_lookup(
    bet: BetReading,
    profile: TuningProfile,
    plain: Baseline,
    ran: Mapping[tuple[int, int], float] = MappingProxyType({}),
) -> LookupPrediction | None:
    """The n-gram lookup that is predicted fastest from the baseline's answers; None where they tell nothing.

    What a drafted row costs beyond V is read off the running settings where they show it. bet: judged against
    `plain`. ran: speedups of lookups that ran under the same conditions, by their sizes; they are not predicted.
    """
    actual = bet.speedup_actual
    if profile.speculation.mode == NGRAM_SIMPLE and actual is not None:
        ran = {**ran, profile.speculation.lookup_sizes: actual.value}
    return best_lookup(plain.replayed, _surplus(bet, profile, plain), ran)


def _surplus(bet: BetReading, profile: TuningProfile, plain: Baseline) -> tuple[float, float]:
    """Least and largest plain steps that a drafted row costs beyond V.

    Rows and the fixed rest u a run of a draft model does not tell apart: its rows cost what u leaves, from none to
    the usual most. Of a lookup that runs the replay says what V and a usual u make of a row.
    """
    drafted, cost, speculation = bet.drafted_per_pass, bet.pass_cost, profile.speculation
    if not drafted or cost is None:
        return UNKNOWN_SURPLUS
    if speculation.mode == NGRAM_SIMPLE:
        own = replay_at(plain.replayed, speculation.lookup_sizes)
        if own is None or not own.rows:
            return UNKNOWN_SURPLUS
        found = max(0.0, (cost - 1) / drafted - own.row_cost)
        return found, found
    model = cost_model(bet, plain.v)
    if model is None or bet.c is None or not bet.fixed_length:
        return UNKNOWN_SURPLUS
    rest = cost - replace(model, u=0.0).pass_cost(drafted)
    return max(0.0, rest - USUAL_REST) / drafted, max(0.0, rest) / drafted


def textbook_curve(bet: BetReading, lengths: Sequence[int] = speedup.CURVE_LENGTHS) -> tuple[CurvePoint, ...]:
    """Speedup at other draft lengths with verification taken as free; empty where c is unknown."""
    shares = _shares(bet)
    return speedup.curve(shares, bet.c, lengths) if shares and bet.c is not None else ()


def _shares(bet: BetReading) -> list[float]:
    """S(1) to S(k); empty where drafts vary in length, so that other lengths cannot be told from this one."""
    if not bet.fixed_length or not bet.survival:
        return []
    return [row.survival for row in bet.survival]


def _relative_error(estimate: Estimate | None) -> float:
    if estimate is None or estimate.high is None or estimate.value <= 0:
        return 0.0
    return (estimate.high / estimate.value - 1) / 1.96
