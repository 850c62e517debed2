"""What the measurement table judges: the numbers of one stretch, whether the bet wins, and what loses most.

Apart from the table, so that whoever measures fills in values and needs no wording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

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
    requests: int | None = 0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    tokens_per_pass: float | None = None
    drafted_per_pass: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    best_length: int | None = None
    """Draft length with the largest predicted speedup; None where lengths cannot be predicted."""
    best_speedup: float | None = None
    best_low: float | None = None
    best_high: float | None = None
    best_measured: bool = False
    """Whether that speedup was measured in this session and not predicted."""
    best_p_min: float | None = None
    """p_min with the largest measured speedup; it cannot be predicted."""
    best_p_min_speedup: float | None = None
    best_lookup: int | None = None
    """Tokens that must match, of the n-gram lookup that is predicted fastest; None where none is."""
    best_lookup_length: int | None = None
    """Tokens that it drafts."""
    best_lookup_speedup: float | None = None
    best_lookup_low: float | None = None
    best_lookup_high: float | None = None
    c: float | None = None
    """A draft step in plain steps."""
    draft_steps: float | None = None
    """Drafting of one pass, in plain steps; as the next three a part of the pass cost R beyond 1."""
    verification_steps: float | None = None
    """V(d+1) - 1."""
    overhead_steps: float | None = None
    """u, the usual fixed rest."""
    rest_steps: float | None = None
    """What is left of R and unexplained."""
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
    two_pass_server: bool = False
    measuring_baseline: bool = False
    """Whether the plain speed is being measured, so that speculation is off for the moment only."""
    traffic: bool = False
    """Whether test traffic flows."""
    baseline_expected: bool = True
    """Whether a baseline can be measured; else it is given."""
    baseline_known: bool = False
    """Whether there is a baseline, so that it is the measured speed that is missing."""

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
        enough = self.passes >= MIN_LIVE_PASSES or not self.counted
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
        return self.speedup_low > 1.0 if self.speedup_low is not None else self.speed_stated

    @property
    def at_most(self) -> float | None:
        """Upper end of the actual speedup; a stated one is taken as it is."""
        return self.speedup if self.speedup_high is None and self.speed_stated else self.speedup_high

    @property
    def better_length(self) -> int | None:
        """A draft length that is predicted to win and to beat the running one; None if there is none."""
        if self.best_length is None or self.best_length == self.draft_length:
            return None
        return self.best_length if self._worthwhile(self.best_speedup, self.best_low) else None

    @property
    def better_p_min(self) -> float | None:
        """A lower p_min that was measured to win and to beat the running one."""
        if self.best_p_min is None or self.best_p_min >= self.p_min:
            return None
        return self.best_p_min if self._worthwhile(self.best_p_min_speedup) else None

    @property
    def better_lookup(self) -> bool:
        """Whether an n-gram lookup is predicted to win, and to beat what runs and any other draft length."""
        value, low = self.best_lookup_speedup, self.best_lookup_low
        if self.measuring_baseline or not (self.judged if self.is_on else self.passes >= MIN_LIVE_PASSES):
            return False
        others = max(self.speedup_high or self.speedup or 0.0, self.best_speedup or 0.0)
        return (
            value is not None
            and value >= WINNING_FROM
            and low is not None
            and low > max(1.0, self.speedup or 0.0)
            and value > others * CLEARLY_BETTER
        )

    def _worthwhile(self, speedup: float | None, low: float | None = None) -> bool:
        return (
            speedup is not None
            and speedup >= WINNING_FROM
            and (low is None or low > 1)
            and speedup > (self.speedup or 0.0) * CLEARLY_BETTER
        )

    @property
    def pass_cost(self) -> float | None:
        """R, in plain steps: tokens per pass over the actual speedup."""
        return self.tokens_per_pass / self.speedup if self.tokens_per_pass and self.speedup else None

    @property
    def implied_c(self) -> float | None:
        """(R - 1) / mean d: what a drafted token costs with all that comes along, in plain steps."""
        cost = self.pass_cost
        return (
            None if cost is None or not self.drafted_per_pass else max(0.0, cost - 1) / self.drafted_per_pass
        )

    @property
    def cause(self) -> str | None:
        """Code of the largest loss: against a perfect bet with full acceptance and free drafts.

        log(speedup) = log(d + 1) - log((d + 1) / E) - log R; log R is shared out by the parts of R. A bet that
        wins has a cause only where one cost stands out.
        """
        if not self.judged or self.pass_cost is None or self.drafted_per_pass is None:
            return None
        if not self.wins and self.gpu_free_gib is not None and self.gpu_free_gib < LITTLE_GPU_MEMORY:
            return "memory-pressure"
        if self.verification_steps is None and (outstanding := self._outstanding_cost()):
            return outstanding
        if self.wins:
            return None
        losses = self._losses(self.pass_cost, self.drafted_per_pass)
        worst = max(losses, key=lambda code: losses[code])
        return worst if losses[worst] > 0 and worst != "" else None

    def _outstanding_cost(self) -> str | None:
        """Of a pass whose verification nobody measured: what its cost beyond drafting alone gives away."""
        cost, price = self.pass_cost, self.implied_c
        if (
            cost is not None
            and cost - (self.draft_steps or 0.0) > DEAR_PASS
            and self.draft_length <= FEW_TOKENS
        ):
            return "overhead-unexplained"
        # With p_min the draft steps that were turned down are paid as well, so the price says nothing.
        dear = price is not None and self.p_min == 0 and price - (self.c or 0.0) > DEAR_TOKEN
        return self._verification if dear else None

    @property
    def _verification(self) -> str:
        return "concurrency-saturated" if self.slots > 1 else "verification-expensive"

    def _losses(self, cost: float, drafted: float) -> dict[str, float]:
        """Loss by cause in logarithms; "" stands for what cannot be told apart."""
        parts = {
            "draft-too-slow": self.draft_steps or 0.0,
            self._verification: self.verification_steps or 0.0,
            "": 0.0,
            "overhead-unexplained": (self.overhead_steps or 0.0) + max(0.0, self.rest_steps or 0.0),
        }
        known = math.fsum(parts.values())
        if self.verification_steps is None:
            parts[""], parts["overhead-unexplained"] = max(0.0, cost - 1 - known), 0.0
        total = math.fsum(parts.values())
        logarithm = max(0.0, math.log(cost)) if cost > 0 else 0.0
        losses = {code: logarithm * steps / total if total > 0 else 0.0 for code, steps in parts.items()}
        losses["acceptance-low"] = (
            math.log((drafted + 1) / self.tokens_per_pass) if self.tokens_per_pass else 0.0
        )
        return losses
