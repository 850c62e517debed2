"""What a target pass costs: plain steps for verifying, drafting and the rest, each with where it comes from.

R(d) = V(d+1) + (d+1) c + u + s d. V and c are measured apart; what one speculating run shows beyond them is u, the
fixed rest, and s, the surplus per drafted row that the probe cannot see (it computes logits for one row only).
With B slots busy a plain step decodes B tokens and a pass verifies B (d+1), so V(B (d+1)) / V(B) takes V's place;
c is then what one drafting step of all slots together takes, in such plain steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from spectui.core.bet.estimates import Cost, Costs, Estimate, LossSplit, Source
from spectui.core.bet.speedup import verification_cost

USUAL_REST: Final = 0.15
"""u in plain steps that sampling and the host usually take (measured: 0.05 to 0.15); more is per row."""

_MOST_ROWS: Final = 65
"""Rows of a slot in the longest pass that is predicted."""
ASSUMED_REST: Final = 0.1
"""u in plain steps where nothing tells it: the middle of the usual."""
_FITTED_C: Final = (
    "the server does not time its drafting: c is what the probe leaves over of a pass, and with it what the probe "
    "does not see of verification"
)

DraftSteps = Callable[[int], int]
"""Draft steps that a pass with d drafted tokens pays."""


def rereading_steps(drafted: int) -> int:
    """Since b9109 a draft reads the last accepted token again: d + 1 steps (llama.cpp #22838)."""
    return drafted + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """The price of passes, in plain steps of `t1_ms` milliseconds."""

    t1_ms: float
    """T1, a plain decode step."""
    c: float
    """A draft step, in plain steps."""
    v: Mapping[int, float] = field(default_factory=dict)
    """V(n) at the probed n; V(1) = 1."""
    u: float = 0.0
    """Fixed rest of a pass, in plain steps."""
    row_surplus: float = 0.0
    """s: what verifying a drafted row costs beyond the probe, in plain steps."""
    u_source: Source = Source.ASSUMED
    slots: float = 1.0
    """B, the mean number of slots that are busy at once."""
    steps: DraftSteps = rereading_steps

    @property
    def probed(self) -> bool:
        """Whether verification was probed, and not taken as free."""
        return any(n > 1 for n in self.v)

    def verification(self, drafted: float) -> float:
        """V(B (d+1)) / V(B) with the surplus of its rows, in the plain steps of B slots."""
        one = verification_cost(self.v, self.slots)
        return verification_cost(self.v, self.slots * (drafted + 1)) / one + self.row_surplus * drafted

    def drafting(self, drafted: float) -> float:
        """(d+1) c."""
        low = int(drafted)
        return (self.steps(low) + drafted - low) * self.c

    def pass_cost(self, drafted: float) -> float:
        """R of a pass with d drafted tokens, in plain steps."""
        return self.verification(drafted) + self.drafting(drafted) + self.u


def calibrated(model: CostModel, *, drafted_per_pass: float, pass_cost: float) -> CostModel:
    """Explain what one speculating run costs beyond V and c.

    Up to the usual rest it is u; beyond that it grows with the rows (checked on models with a large vocabulary,
    where the probe reads low in proportion to n). A run that is cheaper than V and c say lowers both.
    """
    bare = replace(model, u=0.0, row_surplus=0.0)
    surplus = pass_cost - bare.pass_cost(drafted_per_pass)
    if surplus < 0:
        return _cheaper(bare, drafted_per_pass, pass_cost)
    fixed = min(surplus, USUAL_REST)
    per_row = (surplus - fixed) / drafted_per_pass if drafted_per_pass > 0 else 0.0
    return replace(bare, u=fixed, row_surplus=per_row, u_source=Source.FITTED)


def _cheaper(bare: CostModel, drafted_per_pass: float, pass_cost: float) -> CostModel:
    """V and c lowered by one factor, so that they meet a run that is cheaper than both say.

    Drafting overlaps with other work, and the probe is noisy: what is above the plain step shrinks alike.
    """
    above = bare.pass_cost(drafted_per_pass) - 1
    factor = max(0.0, pass_cost - 1) / above if above > 0 else 1.0
    # With several slots it is the ratio to V(B) that shrinks, so that it is written down row by row.
    shared = bare.v if bare.slots == 1 else {n: bare.verification(n - 1) for n in range(1, _MOST_ROWS + 1)}
    v = {n: 1 + (value - 1) * factor for n, value in shared.items()}
    return replace(bare, c=bare.c * factor, v=v, slots=1.0, u_source=Source.FITTED)


def split(model: CostModel, *, tokens: float, drafted_per_pass: float, pass_cost: float) -> LossSplit:
    """Split the measured cost of a pass over the model's parts."""
    drafting = model.drafting(drafted_per_pass)
    verification = model.verification(drafted_per_pass) - 1
    rest = pass_cost - 1 - drafting - verification
    overhead = max(0.0, min(rest, model.u))
    return LossSplit(
        tokens=tokens,
        target=1.0,
        drafting=drafting,
        verification=verification,
        overhead=overhead,
        unexplained=rest - overhead,
    )


def known_costs(
    *,
    t1_ms: Estimate | None,
    stated: bool,
    draft_ms: float | None,
    v: Mapping[int, Estimate],
    tokens: Estimate | None,
    actual: Estimate | None,
    drafted_per_pass: float | None,
    fixed_length: bool = True,
    slots: float = 1.0,
    steps: DraftSteps = rereading_steps,
) -> Costs:
    """Each part of the price from what was measured, with its source and interval.

    t1_ms: from the baseline, `stated` when somebody gave it. draft_ms: milliseconds per drafting step, from the
    statistics line. v: V(n) as probed. tokens: E. actual: speedup over the baseline. Where the server does not time
    its drafting, c is what a pass costs beyond V and a usual u, what the probe does not see of verification
    included; where nothing was probed either, or where drafts vary in length (fixed_length False), only their sum
    is known. `inseparable` says so. R = E / actual needs no model.
    """
    t1 = None if t1_ms is None else _cost(t1_ms, Source.GIVEN if stated else Source.MEASURED)
    whole = _pass_cost(tokens, actual)
    probed = {n: _cost(value, Source.PROBED) for n, value in sorted(v.items())}
    free = CostModel(t1_ms=1.0, c=0.0, v={n: value.value for n, value in v.items()}, slots=slots, steps=steps)
    verified = free.probed
    c: Cost | None = None
    if t1_ms is not None and draft_ms is not None:
        c = Cost(
            value=draft_ms / t1_ms.value,
            source=Source.MEASURED,
            low=None if t1_ms.high is None else draft_ms / t1_ms.high,
            high=None if not t1_ms.low else draft_ms / t1_ms.low,
        )
    elif verified and whole is not None and drafted_per_pass and fixed_length:
        c = _left_for_drafting(whole, free, drafted_per_pass)
    return Costs(
        t1_ms=t1,
        c=c,
        u=_rest(whole, c, free, drafted_per_pass) if verified else None,
        v=probed,
        pass_cost=whole,
        inseparable=_inseparable(whole, c, drafted_per_pass, verified=verified),
    )


def _cost(estimate: Estimate, source: Source) -> Cost:
    return Cost(value=estimate.value, source=source, low=estimate.low, high=estimate.high)


def _pass_cost(tokens: Estimate | None, actual: Estimate | None) -> Cost | None:
    """R = E / actual speedup. Its interval is the speedup's: E and the speed come from the same passes."""
    if tokens is None or actual is None or actual.value <= 0:
        return None
    return Cost(
        value=tokens.value / actual.value,
        source=Source.MEASURED,
        low=None if actual.high is None else tokens.value / actual.high,
        high=None if not actual.low else tokens.value / actual.low,
    )


def _left_for_drafting(whole: Cost, free: CostModel, drafted: float) -> Cost:
    """c from what V and u leave of R; the interval spans R's own and a u from none to the usual most."""
    paid = replace(free, c=1.0).drafting(drafted)

    def share(cost: float, rest: float) -> float:
        return max(0.0, cost - free.pass_cost(drafted) - rest) / paid

    return Cost(
        value=share(whole.value, ASSUMED_REST),
        source=Source.FITTED,
        low=None if whole.low is None else share(whole.low, USUAL_REST),
        high=None if whole.high is None else share(whole.high, 0.0),
    )


def _rest(whole: Cost | None, c: Cost | None, free: CostModel, drafted: float | None) -> Cost | None:
    """u: what R has beyond V and a measured c; assumed as usual where c itself was fitted with it."""
    if whole is None or c is None or not drafted:
        return None
    if c.source is Source.FITTED:
        return Cost(value=ASSUMED_REST, source=Source.ASSUMED, low=0.0, high=USUAL_REST)
    known = replace(free, c=c.value).pass_cost(drafted)
    return Cost(
        value=whole.value - known,
        source=Source.FITTED,
        low=None if whole.low is None else whole.low - known,
        high=None if whole.high is None else whole.high - known,
    )


def _inseparable(whole: Cost | None, c: Cost | None, drafted: float | None, *, verified: bool) -> str:
    if whole is None or not drafted:
        return ""
    if verified and c is not None:
        return _FITTED_C if c.source is Source.FITTED else ""
    price = (whole.value - 1) / drafted
    if c is None:
        return (
            f"a drafted token costs {price:.2f} plain steps with all that comes along: drafting and verifying "
            "cannot be told apart without the server's own timing or a probe"
        )
    return "verification was not probed: what a pass costs beyond drafting may be it or the fixed rest"
