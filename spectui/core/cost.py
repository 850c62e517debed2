"""What a target pass costs: plain steps for verifying, drafting and the rest, each with where it comes from.

R(d) = V(d+1) + (d+1) c + u + s d. V and c are measured apart; what one speculating run shows beyond them is u, the
fixed rest, and s, the surplus per drafted row that the probe cannot see (it computes logits for one row only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from spectui.core.snapshot import LossSplit
from spectui.core.speedup import verification_cost

USUAL_REST: Final = 0.15
"""u in plain steps that sampling and the host usually take (measured: 0.05 to 0.15); more is per row."""

DraftSteps = Callable[[int], int]
"""Draft steps that a pass with d drafted tokens pays."""


class Source(StrEnum):
    """Where a cost comes from."""

    MEASURED = "measured"
    PROBED = "probed"
    FITTED = "fitted"
    ASSUMED = "assumed"


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
    steps: DraftSteps = rereading_steps

    @property
    def probed(self) -> bool:
        """Whether verification was probed, and not taken as free."""
        return any(n > 1 for n in self.v)

    def verification(self, drafted: float) -> float:
        """V(d+1) with the surplus of its rows; between whole numbers, linear."""
        low = int(drafted)
        share = drafted - low
        value = verification_cost(self.v, low + 1)
        if share:
            value += share * (verification_cost(self.v, low + 2) - value)
        return value + self.row_surplus * drafted

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
    bare = CostModel(t1_ms=model.t1_ms, c=model.c, v=model.v, steps=model.steps)
    surplus = pass_cost - bare.pass_cost(drafted_per_pass)
    if surplus < 0:
        return _cheaper(bare, drafted_per_pass, pass_cost)
    fixed = min(surplus, USUAL_REST)
    per_row = (surplus - fixed) / drafted_per_pass if drafted_per_pass > 0 else 0.0
    return CostModel(
        t1_ms=model.t1_ms,
        c=model.c,
        v=model.v,
        u=fixed,
        row_surplus=per_row,
        u_source=Source.FITTED,
        steps=model.steps,
    )


def _cheaper(bare: CostModel, drafted_per_pass: float, pass_cost: float) -> CostModel:
    """V and c lowered by one factor, so that they meet a run that is cheaper than both say.

    Drafting overlaps with other work, and the probe is noisy: what is above the plain step shrinks alike.
    """
    above = bare.pass_cost(drafted_per_pass) - 1
    factor = max(0.0, pass_cost - 1) / above if above > 0 else 1.0
    v = {n: 1 + (value - 1) * factor for n, value in bare.v.items()}
    return CostModel(t1_ms=bare.t1_ms, c=bare.c * factor, v=v, steps=bare.steps, u_source=Source.FITTED)


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
