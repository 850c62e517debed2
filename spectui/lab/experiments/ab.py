"""An A/B run: two configurations on the same prompts and seeds, interleaved A B B A, until the looks end it.

One server receives traffic at a time. Both stay loaded where memory allows, else each block starts them anew; the
machine's drift then meets both alike, and what a start brings along is noise of its block.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from spectui.core.ab.comparison import MIN_BLOCKS, Comparison, Pair, Reading, compare_together
from spectui.core.ab.divergence import Divergence, first_divergence
from spectui.core.ab.interim_looks import Ended, Looks, Reason
from spectui.core.bet.baseline import Baseline
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.intervals import TWO_STARTS_ERROR
from spectui.core.bet.passes import in_cycles
from spectui.core.profile import TuningProfile
from spectui.core.views.ab import ArmName
from spectui.errors import SpectuiError
from spectui.lab.experiments.ab_arm import Arm
from spectui.lab.measuring.attached_settings import first_prompt
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.machine import MachineMonitor
from spectui.lab.servers.memory import obstacle
from spectui.lab.servers.open import Progress
from spectui.lab.workloads.workloads import Prompt, PromptSequence, Workload, load_workload
from spectui.llama.binary.find import Device, list_devices

Answers: TypeAlias = Mapping[str, RequestResult]
"""Complete answers of one turn, by the prompt's id."""

MIN_TOKENS: Final = 8
"""An answer of fewer tokens in either arm times the clock rather than the arms, and makes no pair."""

_BLOCK: Final = 2
_BLOCK_WITH_START: Final = 4
"""Prompts per block where each block starts both servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbOrder:
    """What to compare. pairs: prompts per workload at most; budget: seconds for everything, None without end.

    Fewer pairs than an interval takes are planned up to that (see `AbResult.planned`).
    """

    workloads: tuple[str, ...]
    pairs: int = 24
    budget: float | None = None


@dataclass(slots=True, kw_only=True)
class Outputs:
    """What both arms wrote at temperature 0."""

    compared: int = 0
    different: int = 0
    first: tuple[str, Divergence] | None = None
    """The first prompt whose outputs part, and where."""

    def add(self, prompt: str, a: str, b: str) -> None:
        """Compare the outputs to one prompt."""
        self.compared += 1
        divergence = first_divergence(a, b)
        if divergence is not None:
            self.different += 1
            self.first = self.first or (prompt, divergence)

    @property
    def identical(self) -> bool | None:
        """Whether all were equal; None where nothing was compared."""
        return None if self.compared == 0 else self.different == 0


@dataclass(slots=True, kw_only=True)
class AbResult:
    """What came out; `failure` when a server died on the way, with what there was until then."""

    a: Arm
    b: Arm
    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)
    """Prompts per workload at most."""
    ended: dict[str, Ended] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    short: dict[str, int] = field(default_factory=dict)
    """Prompts per workload whose answers were too short for a pair."""
    failure: SpectuiError | None = None
    between: float = 0.0
    """As in `ab.comparison`: that of two server starts where each arm has one, 0 where every block starts both."""

    def take(self, workload: str, block: int, a: Answers, b: Answers) -> None:
        """Add the answers of a block, in the order of the prompts as A answered them."""
        pairs, outputs = self.pairs[workload], self.outputs.setdefault(workload, Outputs())
        for prompt in (p for p in a if p in b):
            one, other = _reading(a[prompt]), _reading(b[prompt])
            if one is None or other is None:
                self.short[workload] = self.short.get(workload, 0) + 1
            else:
                pairs.append(Pair(prompt, block, one, other))
            if self.a.greedy and self.b.greedy:
                outputs.add(prompt, a[prompt].text, b[prompt].text)

    @property
    def together(self) -> Comparison:
        """All workloads in one, each counting alike, at the least error that any of them was given."""
        if len(self.ended) == 1:
            return next(iter(self.ended.values())).result
        error = min(e.error for e in self.ended.values())
        return compare_together(self.pairs, error=error, between=self.between)


class Watcher:
    """Told where a run is; this one looks away. What it does in `block` holds the run up, so it is quick."""

    def turn(self, arm: ArmName) -> None:
        """An arm takes its turn."""

    async def block(self, run: AbRun, workload: str, result: AbResult) -> None:
        """Both arms answered the same prompts once more; `result` goes on growing."""


class AbRun:
    """Compares two arms; ends every server that it started."""

    def __init__(
        self,
        a: TuningProfile,
        b: TuningProfile,
        *,
        launcher: Launcher,
        api_keys: tuple[str | None, str | None] = (None, None),
        progress: Progress = lambda _line: None,
        watcher: Watcher | None = None,
        machine: MachineMonitor | None = None,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if b.traffic != a.traffic:
            progress("both arms get A's traffic: length, concurrency and depth of B's profile are not used")
        b = same_traffic(a, b)
        self._recorder = recorder or Recorder()
        self._a, self._b = (
            Arm(profile, launcher=launcher, api_key=key, progress=progress, recorder=self._recorder)
            for profile, key in zip((a, b), api_keys, strict=True)
        )
        self._launcher = launcher
        self._progress = progress
        self._watcher = watcher or Watcher()
        self._machine = machine or MachineMonitor()
        self._clock = clock
        self._together = True

    async def run(self, order: AbOrder) -> AbResult:
        """Compare. Raises SpectuiError while an arm cannot start; a server that dies later ends the run early."""
        begun = self._clock()
        traffic = self._a.profile
        workloads = [load_workload(traffic.with_traffic(workload=n).traffic) for n in order.workloads]
        result = AbResult(a=self._a, b=self._b)
        await self._choose_whether_together()
        result.between = TWO_STARTS_ERROR if self._together else 0.0
        try:
            if self._together:
                # An address that does not answer is known at once, a server of ours takes its time.
                for arm in sorted((self._a, self._b), key=lambda arm: arm.owned):
                    await arm.open(workloads[0])
            for number, workload in enumerate(workloads):
                until = None
                if order.budget is not None:
                    now = self._clock()
                    until = now + (begun + order.budget - now) / (len(workloads) - number)
                await self._compare(workload, order.pairs, until, result)
        except SpectuiError as error:
            if not (self._a.begun and self._b.begun):
                raise
            result.failure = error
        finally:
            try:
                await self._a.close()
            finally:
                try:
                    await self._b.close()
                finally:
                    await self._recorder.settled()
        return result

    async def _choose_whether_together(self) -> None:
        """Check both profiles, and decide whether both servers stay loaded. Raises SpectuiError."""
        owned = [arm.profile for arm in (self._a, self._b) if arm.owned]
        plans = [await self._launcher.plan(profile) for profile in owned]
        if len(owned) < 2:
            return
        devices: dict[str, Device] = {}
        for binary in {plan.binary for plan in plans}:
            devices |= {device.name: device for device in await list_devices(binary)}
        reason = obstacle(owned, await self._machine.sample(), tuple(devices.values()))
        self._together = reason is None
        if reason is not None:
            self._progress(f"the servers take turns, each block starts both: {reason}")

    async def _compare(self, workload: Workload, planned: int, until: float | None, result: AbResult) -> None:
        name, traffic = workload.name, self._a.profile.traffic
        start = max(first_prompt(arm.profile) for arm in (self._a, self._b))
        sequence = PromptSequence.under(self._a.profile, workload, start=start)
        warmup = [next(sequence) for _ in range(traffic.warmup)]
        pairs = result.pairs.setdefault(name, [])
        width = max(_BLOCK if self._together else _BLOCK_WITH_START, traffic.concurrency)
        planned = result.planned[name] = self._enough(name, planned, width)
        looks, sent, block = Looks(planned, between=result.between), 0, 0
        failure: str | None = "interrupted"
        try:
            if self._together:
                for arm in (self._a, self._b):
                    await arm.warm_up(workload, warmup)
            while name not in result.ended:
                began = self._clock()
                prompts = [next(sequence) for _ in range(min(width, planned - sent))]
                a, b = await self._block(workload, block, warmup, prompts)
                result.take(name, block, a, b)
                sent, block = sent + len(prompts), block + 1
                self._progress(f"{name}: {sent} of at most {planned} prompts")
                await self._watcher.block(self, name, result)
                last = Reason.PAIRS if sent >= planned else None
                if until is not None and 2 * self._clock() - began > until:
                    last = last or Reason.BUDGET
                if (end := await asyncio.to_thread(looks.after, pairs, last=last)) is not None:
                    result.ended[name] = end
            failure = None
        except SpectuiError as error:
            failure = str(error)
            if (end := looks.after(pairs, last=Reason.FAILED)) is not None:
                result.ended[name] = end
            raise
        finally:
            self._conclude(name, failure)

    def _enough(self, name: str, planned: int, width: int) -> int:
        """As many prompts as were asked for, and no fewer than blocks of this width decide with."""
        fewest = MIN_BLOCKS * width
        if planned < fewest:
            self._progress(
                f"{name}: at most {fewest} prompts in place of {planned}, since an interval takes {MIN_BLOCKS} "
                f"blocks, here of {width}"
            )
        return max(planned, fewest)

    async def _block(
        self, workload: Workload, number: int, warmup: Sequence[Prompt], prompts: Sequence[Prompt]
    ) -> tuple[Answers, Answers]:
        """Both arms on the same prompts, every other block B first. Raises SpectuiError."""
        if number % 2:
            b = await self._turn(self._b, workload, warmup, prompts)
            return await self._turn(self._a, workload, warmup, prompts), b
        a = await self._turn(self._a, workload, warmup, prompts)
        return a, await self._turn(self._b, workload, warmup, prompts)

    async def _turn(
        self, arm: Arm, workload: Workload, warmup: Sequence[Prompt], prompts: Sequence[Prompt]
    ) -> Answers:
        self._watcher.turn("a" if arm is self._a else "b")
        if self._together:
            return await arm.turn(workload, prompts)
        await arm.open(workload)
        try:
            await arm.warm_up(workload, warmup)
            return await arm.turn(workload, prompts)
        finally:
            await arm.close(workload.name)

    def bets(self, workload: str) -> tuple[BetReading | None, BetReading | None]:
        """What both arms have shown so far; None before an arm's first turn."""
        a = self._a.bet(workload, self._baseline(self._b, workload))
        return a, self._b.bet(workload, self._baseline(self._a, workload))

    def _baseline(self, arm: Arm, workload: str) -> Baseline | None:
        """An arm without speculation on the same target is what the other's bet is measured against."""
        name, other = ("arm a", self._b) if arm is self._a else ("arm b", self._a)
        speed = arm.speed(workload) if arm.is_baseline_of(other) else None
        return Baseline(speed, name) if speed else None

    def _conclude(self, workload: str, failure: str | None) -> None:
        for arm, other in ((self._a, self._b), (self._b, self._a)):
            arm.conclude(workload, self._baseline(other, workload), failure=failure)


def same_traffic(a: TuningProfile, b: TuningProfile) -> TuningProfile:
    """B with A's traffic and seed: only what is compared may differ."""
    return replace(b, traffic=a.traffic).with_sampling(seed=a.sampling.seed)


def _reading(answer: RequestResult) -> Reading | None:
    """Tokens and seconds of decoding; None where there is too little to time."""
    steps = [(p.committed, p.ms) for p in in_cycles(answer.passes).passes]
    tokens = sum(committed for committed, ms in steps if ms is not None)
    seconds = sum(ms for _, ms in steps if ms is not None) / 1000
    return Reading(tokens, seconds) if tokens >= MIN_TOKENS and seconds > 0 else None
