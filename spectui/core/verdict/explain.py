"""What somebody states or a log shows of a bet -> the values that explain it, and the facts to judge.

The same formulas as the dashboard's, for input with gaps: whatever cannot be known stays None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spectui.core.bet import acceptance, cost, speedup
from spectui.core.bet.cost import ASSUMED_REST, CostModel
from spectui.core.bet.estimates import BetReading, CurvePoint, Estimate, LossSplit
from spectui.core.bet.intervals import LEVEL, student_quantile
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.profile import MAX_DRAFT_LENGTH, is_ngram
from spectui.core.verdict.facts import Facts

_MOSTLY_FULL: Final = 0.8
"""Share of drafts at full length that ends of requests leave; with p_min or a lookup it is lower."""
_REACH: Final = 2
"""Without V a curve goes this many times the running length: verification grows in ways one point cannot tell."""
_BLOCKS: Final = 20
"""Stretches that the jackknife leaves out in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that is known; None and empty are unknown."""

    baseline: float | None = None
    """Plain tokens per second, with as many slots busy."""
    measured: float | None = None
    """Tokens per second with speculation."""
    speed_error: float | None = None
    """Relative half width of `measured`, 95 %; None where it is stated or cannot be known."""
    speed_stated: bool = True
    mode: str = "draft-simple"
    draft_length: int | None = None
    p_min: float | None = 0.0
    ratio: float | None = None
    """Acceptance ratio, where there are no counts."""
    drafted: int | None = None
    accepted: int | None = None
    predicted: int | None = None
    """Generated tokens, the free first ones included."""
    first_tokens: int = 1
    """Requests behind `predicted`: each has one token that no pass made."""
    requests: int | None = None
    """Finished requests; None for stated numbers."""
    passes: tuple[RequestPasses, ...] = ()
    shares: tuple[float, ...] = ()
    """S(1), S(2), ... as the server counted it."""
    c: float | None = None
    """A draft step in plain steps."""
    v: Mapping[int, float] = field(default_factory=dict)
    slots: int = 1
    """Slots that were busy at once."""
    two_pass: bool = False
    """Whether the build makes a plain and a verifying pass per cycle (b4164 to b7322)."""
    rereads: bool = True
    """Whether the draft reads accepted tokens again: d + 1 steps for d tokens (b9109 and later)."""

    @property
    def passes_per_cycle(self) -> int:
        """Target passes of one round of drafting."""
        return 2 if self.two_pass else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What `spectui explain` says; per target pass, of which an old server makes two per cycle."""

    facts: Facts
    """With the reading of the bet and the fastest length. Its predicted speedup comes from V and c alone: what is
    fitted to a speed does not predict it."""
    predictions: tuple[CurvePoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yield:
    """Tokens and drafts per target pass, and the number of passes where it was counted."""

    tokens: float
    drafted: float | None
    passes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """What other lengths can be told from: survival, how far it reaches, and what a length drafts on average."""

    shares: Sequence[float]
    longest: int
    drafted_at: Callable[[int], float]


def explain(seen: Observed) -> Explained:
    """Explain a bet from whatever is known of it."""
    gained = _yield(seen)
    fixed = _fixed_length(seen, gained)
    shares, alpha = _acceptance(seen, gained, fixed=fixed)
    bet = _reading(seen, gained, alpha, fixed=fixed)
    predictions = _predictions(seen, _curve(seen, shares, fixed=fixed), _price(seen, bet))
    loss = _loss(seen, bet)
    facts = Facts(
        mode=seen.mode,
        draft_length=seen.draft_length or round(bet.drafted_per_pass or 0) or 1,
        p_min=seen.p_min or 0.0,
        counted=seen.requests is not None or bool(seen.passes),
        speed_stated=seen.speed_stated,
        requests_known=seen.requests is not None,
        bet=replace(bet, loss=loss if seen.v else None),
        drafting=loss.drafting if loss else None,
        best=speedup.best_point(predictions),
        slots=seen.slots,
        ratio_hides=bool(seen.p_min) and gained is None and bool(seen.ratio is not None or bet.drafted),
        baseline_expected=False,
        baseline_known=seen.baseline is not None,
    )
    return Explained(facts=facts, predictions=predictions)


def _reading(seen: Observed, gained: _Yield | None, alpha: Estimate | None, *, fixed: bool) -> BetReading:
    """What was observed in the shape of a measured segment; unknown stays None."""
    drafted, accepted = _totals(seen)
    tokens, per_pass = (gained.tokens, gained.drafted) if gained else (None, None)
    actual = seen.measured / seen.baseline if seen.measured and seen.baseline else None
    spread = None if seen.speed_error is None else 1 + seen.speed_error
    return BetReading(
        requests=seen.requests or 0,
        passes=(gained.passes if gained else None) or 0,
        drafted=drafted,
        accepted=accepted,
        alpha=alpha,
        acceptance_ratio=seen.ratio
        if seen.ratio is not None
        else acceptance.acceptance_ratio(drafted, accepted),
        tokens_per_pass=None if tokens is None else Estimate(value=tokens),
        drafted_per_pass=per_pass,
        pass_cost=tokens / actual if tokens and actual else None,
        c=seen.c,
        fixed_length=fixed,
        two_pass=seen.two_pass,
        rereads=seen.rereads,
        speedup_actual=None
        if actual is None
        else Estimate(
            value=actual, low=actual / spread if spread else None, high=actual * spread if spread else None
        ),
        speedup_textbook=_textbook(seen, tokens, per_pass, fixed=fixed),
        speedup_predicted=_predicted_here(seen, tokens, per_pass),
    )


def _totals(seen: Observed) -> tuple[int, int]:
    """Drafted and accepted tokens; 0 where nobody counted."""
    if seen.drafted is not None and seen.accepted is not None:
        return seen.drafted, seen.accepted
    return sum(r.drafted for r in seen.passes), sum(r.accepted for r in seen.passes)


def _yield(seen: Observed) -> _Yield | None:
    """E from counts; from whole passes; from a ratio only where every pass drafts k tokens."""
    if seen.predicted is not None and seen.accepted is not None:
        committed = seen.predicted - seen.first_tokens
        passes = committed - seen.accepted
        if passes > 0:
            drafted = None if seen.drafted is None else seen.drafted / passes
            return _Yield(tokens=committed / passes, drafted=drafted, passes=passes)
    if seen.passes and not seen.two_pass:
        count = sum(r.target_passes for r in seen.passes)
        committed = sum(p.committed for r in seen.passes for p in r.passes)
        return _Yield(
            tokens=committed / count, drafted=sum(r.drafted for r in seen.passes) / count, passes=count
        )
    k, ratio = seen.draft_length, seen.ratio
    if ratio is None and seen.drafted and seen.accepted is not None:
        ratio = seen.accepted / seen.drafted
    if k is None or ratio is None or seen.p_min != 0.0 or is_ngram(seen.mode):
        return None
    cycle = seen.passes_per_cycle
    return _Yield(tokens=(cycle + ratio * k) / cycle, drafted=k / cycle)


def _fixed_length(seen: Observed, gained: _Yield | None) -> bool:
    """Whether every pass drafts k tokens but for ends of requests, so that other lengths can be told from it."""
    k = seen.draft_length
    if k is None or is_ngram(seen.mode) or seen.p_min:
        return False
    steps = [p for r in seen.passes for p in r.passes if p.apart]
    if steps:
        return sum(p.drafted >= k for p in steps) >= _MOSTLY_FULL * len(steps)
    if seen.p_min is None:
        per_cycle = (gained.drafted or 0.0) * seen.passes_per_cycle if gained else 0.0
        return per_cycle >= _MOSTLY_FULL * k
    return True


def _acceptance(seen: Observed, gained: _Yield | None, *, fixed: bool) -> tuple[list[float], Estimate | None]:
    """S(1) to S(k), and alpha: from passes, else from positions, else solved from the mean accepted."""
    k = seen.draft_length
    if seen.passes:
        longest = k or max((p.drafted for r in seen.passes for p in r.passes), default=0)
        sums = [acceptance.sums_of(r, fixed_length=fixed, positions=longest) for r in seen.passes]
        rows = [row.survival for row in acceptance.survival(sums)]
        alpha = acceptance.alpha_estimate(sums) if any(r.drafted for r in seen.passes) else None
        return rows + [0.0] * (longest - len(rows)), alpha
    if k is None or not fixed:
        return [], None
    if seen.shares:
        shares = list(seen.shares[:k])
        return shares, Estimate(value=acceptance.true_alpha(shares))
    if gained is None:
        return [], None
    cycle = seen.passes_per_cycle
    alpha_value = acceptance.alpha_from_mean_accepted((gained.tokens - 1) * cycle, k)
    if alpha_value is None:
        return [], None
    return [alpha_value**j for j in range(1, k + 1)], Estimate(value=alpha_value)


def _curve(seen: Observed, shares: Sequence[float], *, fixed: bool) -> _Curve | None:
    if not shares:
        return None
    k = len(shares)
    if fixed:
        longest = MAX_DRAFT_LENGTH if seen.v else _REACH * k
        return _Curve(shares=shares, longest=longest, drafted_at=float)
    steps = [p.drafted for r in seen.passes for p in r.passes if p.apart]

    def drafted_at(length: int) -> float:
        return sum(min(d, length) for d in steps) / len(steps)

    return _Curve(shares=shares, longest=k, drafted_at=drafted_at) if steps else None


_Price = Callable[[float], float]
"""R of a pass that drafts d tokens; of a whole cycle for an old server."""


def _price(seen: Observed, bet: BetReading) -> _Price | None:
    """1 + d c', with V the full cost fitted to the measured one; without any measured speed c alone."""
    plain = seen.passes_per_cycle - 1
    cost_here, drafted = bet.pass_cost, bet.drafted_per_pass
    if seen.v:
        model = _model(seen, cost_here, drafted)
        if model is None:
            return None
        return lambda d: plain + model.pass_cost(d)
    implied = None if cost_here is None or drafted is None else speedup.implied_c(cost_here, drafted)
    token = seen.c if implied is None else implied
    return None if token is None else lambda d: plain + 1 + d * token


def _model(seen: Observed, pass_cost: float | None, drafted: float | None) -> CostModel | None:
    """The full cost of a verifying pass: c as given, or what the measured cost leaves for it."""
    cycle = seen.passes_per_cycle
    if pass_cost is None or drafted is None:
        return None if seen.c is None else _bare_model(seen, seen.c)
    verifying, rows = pass_cost * cycle - (cycle - 1), drafted * cycle
    if seen.c is not None:
        return cost.calibrated(_bare_model(seen, seen.c), drafted_per_pass=rows, pass_cost=verifying)
    free = _bare_model(seen, 0.0)
    steps = rows + 1 if seen.rereads and not seen.two_pass else rows
    return _bare_model(seen, max(0.0, (verifying - free.pass_cost(rows)) / steps) if steps else 0.0)


def _bare_model(seen: Observed, c: float) -> CostModel:
    steps = cost.rereading_steps if seen.rereads and not seen.two_pass else int
    return CostModel(t1_ms=1000 / (seen.baseline or 1000.0), c=c, v=seen.v, slots=seen.slots, steps=steps)


def _predictions(seen: Observed, curve: _Curve | None, price: _Price | None) -> tuple[CurvePoint, ...]:
    if curve is None or price is None:
        return ()
    here = () if seen.draft_length is None else (seen.draft_length,)
    lengths = sorted({k for k in (*speedup.CURVE_LENGTHS, *here) if k <= curve.longest})
    plain = seen.passes_per_cycle - 1
    points = []
    for k in lengths:
        tokens, drafted = plain + speedup.tokens_at(curve.shares, k), curve.drafted_at(k)
        value = tokens / price(drafted)
        half = _relative_half_width(seen.passes, k)
        points.append(
            CurvePoint(
                draft_length=k,
                speedup=value,
                low=None if half is None else value / (1 + half),
                high=None if half is None else value * (1 + half),
            )
        )
    return tuple(points)


def _relative_half_width(passes: Sequence[RequestPasses], k: int) -> float | None:
    """Of tokens over time at length k, 95 %: jackknife over stretches of passes, so that neighbours stay together.

    Beyond the drafted length a pass counts with what it accepted. None for fewer than two passes a stretch.
    """
    steps = [p for r in passes for p in r.passes if p.apart]
    if len(steps) < 2 * _BLOCKS:
        return None
    timed = all(p.ms is not None for p in steps)
    tokens = [_block_sums(steps, k, timed=timed, index=i) for i in range(_BLOCKS)]
    total = (math.fsum(t for t, _ in tokens), math.fsum(w for _, w in tokens))
    left_out = [(total[0] - t) / (total[1] - w) for t, w in tokens]
    centre = math.fsum(left_out) / _BLOCKS
    variance = (_BLOCKS - 1) / _BLOCKS * math.fsum((x - centre) ** 2 for x in left_out)
    return student_quantile(0.5 + LEVEL / 2, _BLOCKS - 1) * math.sqrt(variance) / (total[0] / total[1])


def _block_sums(steps: Sequence[TargetPass], k: int, *, timed: bool, index: int) -> tuple[float, float]:
    size = len(steps) / _BLOCKS
    block = steps[round(index * size) : round((index + 1) * size)]
    tokens = math.fsum(1 + min(p.accepted, k) for p in block)
    return tokens, math.fsum(p.ms or 0.0 for p in block) if timed else float(len(block))


def _textbook(seen: Observed, tokens: float | None, drafted: float | None, *, fixed: bool) -> float | None:
    """E / (1 + k c); an old server's cycle is (1 + E) / (2 + k c), V taken as 1."""
    if seen.c is None or tokens is None or drafted is None:
        return None
    cycle = seen.passes_per_cycle
    k = float(seen.draft_length) if fixed and seen.draft_length else drafted * cycle
    return tokens * cycle / (cycle + k * seen.c)


def _predicted_here(seen: Observed, tokens: float | None, drafted: float | None) -> float | None:
    if not seen.v or seen.c is None or tokens is None or drafted is None:
        return None
    cycle = seen.passes_per_cycle
    verifying = _bare_model(seen, seen.c).pass_cost(drafted * cycle) + ASSUMED_REST
    return tokens * cycle / (cycle - 1 + verifying)


def _loss(seen: Observed, bet: BetReading) -> LossSplit | None:
    """The parts of R by c and V; None without c, and for an old server's two passes."""
    tokens, drafted, measured = bet.tokens_per_pass, bet.drafted_per_pass, bet.pass_cost
    if seen.c is None or tokens is None or drafted is None or measured is None or seen.two_pass:
        return None
    model = replace(_bare_model(seen, seen.c), u=ASSUMED_REST)
    return cost.split(model, tokens=tokens.value, drafted_per_pass=drafted, pass_cost=measured)
