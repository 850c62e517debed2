"""What the measurement table judges: a reading of the bet with its circumstances, whether it wins, what loses most.

Numbers in, numbers out: whoever measures fills in values, and the words stand in `rules`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from spectui.core.bet.estimates import BetReading, CurvePoint, LookupPrediction
from spectui.core.bet.speedup import implied_c
from spectui.core.profile import is_ngram

WINNING_FROM: Final = 1.05
MIN_LIVE_PASSES: Final = 20
"""Passes below which the dashboard calls nothing at all."""
ENOUGH_PASSES: Final = 200
ENOUGH_REQUESTS: Final = 10
CLEARLY_BETTER: Final = 1.03
"""Gain over the running setting from which another one is advised."""
RESTORED_OFTEN: Final = 0.1
"""Share of passes with a rolled-back state from which it is a finding."""
LITTLE_GPU_MEMORY: Final = 0.3
"""Free GPU memory in GiB below which drivers begin to page."""
DEAR_TOKEN: Final = 0.5
"""Price of a drafted token, all included, that no usual draft model explains: verification does."""
DEAR_PASS: Final = 4.0
"""Cost of a pass in plain steps that neither drafting nor verifying a few tokens explains."""
FEW_TOKENS: Final = 3

_PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "requests": "requests",
        "passes": "bet.passes",
        "drafted": "bet.drafted",
        "accepted": "bet.accepted",
        "tokens_per_pass": "bet.tokens_per_pass.value",
        "drafted_per_pass": "bet.drafted_per_pass",
        "pass_cost": "bet.pass_cost",
        "c": "bet.c",
        "verification_steps": "bet.loss.verification",
        "rest_steps": "bet.loss.unexplained",
        "speedup": "bet.speedup_actual.value",
        "speedup_low": "bet.speedup_actual.low",
        "speedup_high": "bet.speedup_actual.high",
        "best_length": "best.draft_length",
        "best_speedup": "best.speedup",
        "best_low": "best.low",
        "best_high": "best.high",
        "best_lookup": "lookup.lookup",
        "best_lookup_length": "lookup.length",
        "best_lookup_speedup": "lookup.speedup.value",
        "best_lookup_low": "lookup.speedup.low",
        "best_lookup_high": "lookup.speedup.high",
    }
)
"""Where evidence stands in the facts, by its name in the headless contract; other names are the facts' own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the measurement table judges. Unknown is None; speeds in tokens per second, lengths in tokens."""

    mode: str
    draft_length: int
    """k; for n-gram modes the longest draft of the lookup."""
    p_min: float = 0.0
    speculating: bool | None = None
    draft_on_cpu_beside_gpu: bool = False
    gpu_unused: bool = False
    """Whether layers were asked to go to a GPU, and there is none that this server can use."""
    counted: bool = True
    """Whether passes and requests were counted; False for numbers that somebody states."""
    speed_stated: bool = False
    """Whether somebody stated the speedup, so that it has no interval and is taken as it is."""
    requests_known: bool = True
    """Whether finished requests were counted; False for a file of passes and for stated numbers."""
    bet: BetReading = field(default_factory=BetReading)
    drafting: float | None = None
    """Drafting of one pass in plain steps, where only c tells it and verification was not probed."""
    best: CurvePoint | None = None
    """Draft length with the largest speedup, predicted or measured; None where lengths cannot be predicted."""
    best_p_min: float | None = None
    """p_min with the largest measured speedup; it cannot be predicted."""
    best_p_min_speedup: float | None = None
    lookup: LookupPrediction | None = None
    """The n-gram lookup that is predicted fastest; None where none is."""
    restored_share: float | None = None
    """Share of passes after which the server rolled its state back."""
    gpu_free_gib: float | None = None
    slots: int = 1
    """Slots that were busy at once."""
    ratio_hides: bool = False
    """Whether only an acceptance ratio is known, of drafts that p_min cut."""
    repeated_prompts: int = 0
    """Requests whose prompt was answered before."""
    default_changed: str = ""
    """Which default of another build is at work; empty if none is known to be."""
    baseline_stale: str = ""
    """Why the baseline no longer counts; empty while it does."""
    baseline_problem: str = ""
    """Why the baseline could not be measured; empty where nobody tried or it was."""
    measuring_baseline: bool = False
    """Whether the plain speed is being measured, so that speculation is off for the moment only."""
    traffic: bool = False
    """Whether test traffic flows."""
    baseline_expected: bool = True
    """Whether a baseline can be measured; else it is given."""
    baseline_known: bool = False
    """Whether there is a baseline, so that it is the measured speed that is missing."""

    def evidence(self, name: str) -> Any:
        """A number that a finding rests on, by its name in the headless contract; None where it is unknown."""
        value: Any = self
        for part in _PLACES.get(name, name).split("."):
            value = None if value is None else getattr(value, part)
        return value

    @property
    def requests(self) -> int | None:
        """Finished requests; None where nobody counted them."""
        return self.bet.requests if self.requests_known else None

    @property
    def speedup(self) -> float | None:
        """The actual speedup."""
        return self.bet.speedup_actual.value if self.bet.speedup_actual else None

    @property
    def tokens_per_pass(self) -> float | None:
        """E, measured."""
        return self.bet.tokens_per_pass.value if self.bet.tokens_per_pass else None

    @property
    def draft_steps(self) -> float | None:
        """Drafting of one pass, in plain steps."""
        return self.bet.loss.drafting if self.bet.loss else self.drafting

    @property
    def is_on(self) -> bool:
        """Whether the settings ask for speculation."""
        return self.mode != "off"

    @property
    def ngram(self) -> bool:
        """Whether drafts come from a lookup."""
        return is_ngram(self.mode)

    @property
    def judged(self) -> bool:
        """Whether there is enough to judge the bet at all."""
        enough = self.bet.passes >= MIN_LIVE_PASSES or not self.counted
        return self.is_on and self.speedup is not None and enough

    @property
    def wins(self) -> bool:
        """Actual speedup at least 1.05, and its interval above 1 where it must have one.

        Nor does a bet win that hardly ever keeps a drafted token, however fast the machine is by now.
        """
        if not self.judged or self.speedup is None or self.speedup < WINNING_FROM:
            return False
        if self.counted and self.tokens_per_pass is not None and self.tokens_per_pass < WINNING_FROM:
            return False
        low = self.bet.speedup_actual.low if self.bet.speedup_actual else None
        return low > 1.0 if low is not None else self.speed_stated

    @property
    def at_most(self) -> float | None:
        """Upper end of the actual speedup; a stated one is taken as it is."""
        high = self.bet.speedup_actual.high if self.bet.speedup_actual else None
        return self.speedup if high is None and self.speed_stated else high

    @property
    def better_length(self) -> int | None:
        """A draft length that is predicted to win and to beat the running one; None if there is none."""
        best = self.best
        if best is None or best.draft_length == self.draft_length:
            return None
        return best.draft_length if self._worthwhile(best.speedup, best.low) else None

    @property
    def better_p_min(self) -> float | None:
        """A lower p_min that was measured to win and to beat the running one."""
        if self.best_p_min is None or self.best_p_min >= self.p_min:
            return None
        return self.best_p_min if self._worthwhile(self.best_p_min_speedup) else None

    @property
    def better_lookup(self) -> bool:
        """Whether an n-gram lookup is predicted to win, and to beat what runs and any other draft length."""
        enough = self.judged if self.is_on else self.bet.passes >= MIN_LIVE_PASSES
        if self.measuring_baseline or not enough or self.lookup is None:
            return False
        actual, predicted = self.bet.speedup_actual, self.lookup.speedup
        here = (actual.high or actual.value) if actual else 0.0
        return (
            predicted.value >= WINNING_FROM
            and predicted.low is not None
            and predicted.low > max(1.0, self.speedup or 0.0)
            and predicted.value > max(here, self.best.speedup if self.best else 0.0) * CLEARLY_BETTER
        )

    def _worthwhile(self, speedup: float | None, low: float | None = None) -> bool:
        return (
            speedup is not None
            and speedup >= WINNING_FROM
            and (low is None or low > 1)
            and speedup > (self.speedup or 0.0) * CLEARLY_BETTER
        )

    @property
    def implied_c(self) -> float | None:
        """(R - 1) / mean d: what a drafted token costs with all that comes along, in plain steps."""
        cost, drafted = self.bet.pass_cost, self.bet.drafted_per_pass
        return None if cost is None or drafted is None else implied_c(cost, drafted)

    @property
    def cause(self) -> str | None:
        """Code of the largest loss: against a perfect bet with full acceptance and free drafts.

        log(speedup) = log(d + 1) - log((d + 1) / E) - log R; log R is shared out by the parts of R. A bet that
        wins has a cause only where one cost stands out.
        """
        cost, drafted = self.bet.pass_cost, self.bet.drafted_per_pass
        if not self.judged or cost is None or drafted is None:
            return None
        if not self.wins and self.gpu_free_gib is not None and self.gpu_free_gib < LITTLE_GPU_MEMORY:
            return "memory-pressure"
        if self.bet.loss is None and (outstanding := self._outstanding_cost()):
            return outstanding
        if self.wins:
            return None
        losses = self._losses(cost, drafted)
        worst = max(losses, key=lambda code: losses[code])
        return worst if losses[worst] > 0 and worst != "" else None

    def _outstanding_cost(self) -> str | None:
        """Of a pass whose verification nobody measured: what its cost beyond drafting alone gives away."""
        cost, price = self.bet.pass_cost, self.implied_c
        if (
            cost is not None
            and cost - (self.draft_steps or 0.0) > DEAR_PASS
            and self.draft_length <= FEW_TOKENS
        ):
            return "overhead-unexplained"
        # With p_min the draft steps that were turned down are paid as well, so the price says nothing.
        dear = price is not None and self.p_min == 0 and price - (self.bet.c or 0.0) > DEAR_TOKEN
        return self._verification if dear else None

    @property
    def _verification(self) -> str:
        return "concurrency-saturated" if self.slots > 1 else "verification-expensive"

    def _losses(self, cost: float, drafted: float) -> dict[str, float]:
        """Loss by cause in logarithms; "" stands for what cannot be told apart."""
        loss = self.bet.loss
        parts = {
            "draft-too-slow": self.draft_steps or 0.0,
            self._verification: loss.verification if loss else 0.0,
            "overhead-unexplained": loss.overhead + max(0.0, loss.unexplained) if loss else 0.0,
        }
        parts[""] = 0.0 if loss else max(0.0, cost - 1 - math.fsum(parts.values()))
        total = math.fsum(parts.values())
        logarithm = max(0.0, math.log(cost)) if cost > 0 else 0.0
        losses = {code: logarithm * steps / total if total > 0 else 0.0 for code, steps in parts.items()}
        losses["acceptance-low"] = (
            math.log((drafted + 1) / self.tokens_per_pass) if self.tokens_per_pass else 0.0
        )
        return losses
