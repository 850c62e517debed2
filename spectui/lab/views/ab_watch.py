"""A/B runs for somebody who watches: each step of a run -> one immutable AbView.

What is computed for the eye is computed in a thread, between two blocks, when no answer is being timed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from spectui.core.ab.comparison import Comparison, Drift, Pair, Winner, compare, sentence
from spectui.core.bet.estimates import BetReading, Estimate
from spectui.core.text import counted, one_line
from spectui.core.views.ab import AbState, AbView, ArmName, OutputsView
from spectui.errors import SpectuiError
from spectui.lab.experiments.ab import AbOrder, AbResult, AbRun, Outputs, Watcher
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.machine import MachineMonitor

OnView: TypeAlias = Callable[[AbView], object]


class AbWatch(Watcher):
    """One run of the two arms of `view`. `on_view` gets every new view; one task runs it, cancelling it ends it."""

    def __init__(
        self,
        view: AbView,
        *,
        launcher: Launcher,
        on_view: OnView,
        api_keys: tuple[str | None, str | None] = (None, None),
        machine: MachineMonitor | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        if view.a is None or view.b is None:
            raise ValueError("a run takes two arms")
        self._arms = view.a, view.b
        self.view = AbView(a=replace(view.a, bet=BetReading()), b=replace(view.b, bet=BetReading()))
        self._planned = view.planned
        self._launcher = launcher
        self._on_view = on_view
        self._api_keys = api_keys
        self._machine = machine
        self._recorder = recorder

    async def check(self) -> None:
        """Make sure that both arms can be started, before anything is stopped for them. Raises SpectuiError."""
        for arm in self._arms:
            if not arm.profile.attached:
                await self._launcher.plan(arm.profile)

    async def run(self) -> None:
        """Run to the end; what fails on the way is shown, not raised."""
        self.show(state=AbState.STARTING, planned=self._planned)
        a, b = (arm.profile for arm in self._arms)
        workload = a.traffic.workload
        try:
            run = AbRun(
                a,
                b,
                launcher=self._launcher,
                api_keys=self._api_keys,
                progress=lambda line: self.show(note=one_line(line, 500)),
                watcher=self,
                machine=self._machine,
                recorder=self._recorder,
            )
            result = await run.run(AbOrder(workloads=(workload,), pairs=self._planned))
            await self._end(run, workload, result)
        except asyncio.CancelledError:
            self.settle()
            raise
        except SpectuiError as error:
            self.failed(one_line(str(error)))

    @property
    def ending(self) -> bool:
        """Whether it was told to stop."""
        return self.view.state is AbState.STOPPING

    def failed(self, problem: str) -> None:
        """Say why it ended."""
        self.show(state=AbState.FAILED, turn=None, note="", problem=problem)

    def settle(self) -> None:
        """One that never began has stopped as well, such as one that a newer command took the device from."""
        if self.view.busy:
            self.show(state=AbState.STOPPED, turn=None, note="")

    def stopping(self) -> None:
        """Say that the servers of the run are being ended."""
        self.show(state=AbState.STOPPING, turn=None, note="ending the servers of the run")

    def turn(self, arm: ArmName) -> None:
        """An arm answers."""
        if self.view.state is not AbState.STOPPING:
            self.show(state=AbState.RUNNING, turn=arm)

    async def block(self, run: AbRun, workload: str, result: AbResult) -> None:
        """Show what there is so far."""
        pairs = tuple(result.pairs[workload])
        found, bets = await asyncio.to_thread(
            lambda: (compare(pairs, between=result.between), run.bets(workload))
        )
        self.view = replace(self.view, planned=result.planned[workload])
        self._show_found(found, bets, pairs, result.outputs.get(workload))

    def show(self, **changes: object) -> None:
        """Hand over the view with these changes."""
        self.view = replace(self.view, **changes)  # type: ignore[arg-type]
        self._on_view(self.view)

    async def _end(self, run: AbRun, workload: str, result: AbResult) -> None:
        bets = await asyncio.to_thread(run.bets, workload)
        problem = one_line(str(result.failure)) if result.failure else ""
        state = AbState.FAILED if problem else AbState.ENDED
        self.view = replace(self.view, state=state, turn=None, note="", problem=problem)
        ended = result.ended.get(workload)
        if ended is None:
            self._on_view(self.view)
            return
        winner = ended.result.verdict
        faster: ArmName | None = "a" if winner is Winner.A else "b" if winner is Winner.B else None
        said = sentence(ended.result, one_line(workload))
        self.view = replace(self.view, faster=faster, sentence=said)
        short, outputs = result.short.get(workload, 0), result.outputs.get(workload)
        self._show_found(ended.result, bets, result.pairs[workload], outputs, short=short)

    def _show_found(
        self,
        found: Comparison,
        bets: tuple[BetReading | None, BetReading | None],
        pairs: Sequence[Pair],
        outputs: Outputs | None,
        *,
        short: int = 0,
    ) -> None:
        a, b = (replace(arm, bet=bet or BetReading()) for arm, bet in zip(self._arms, bets, strict=True))
        self.show(
            a=a,
            b=b,
            pairs=found.pairs,
            ratios=tuple(math.exp(pair.log_ratio) for pair in pairs),
            ratio=_estimate(found),
            remarks=_remarks(found.drift, short),
            outputs=_outputs(outputs),
        )


def _estimate(found: Comparison) -> Estimate | None:
    return None if found.ratio is None else Estimate(value=found.ratio, low=found.low, high=found.high)


def _remarks(drift: Drift, short: int) -> tuple[str, ...]:
    said: list[str] = []
    moved = [f"{name} {change.value - 1:+.0%}" for name, change in (("A", drift.a), ("B", drift.b)) if change]
    if drift.machine:
        said.append(f"the machine drifted, second half against first: {', '.join(moved)}")
    if drift.result and drift.ratio is not None:
        said.append(f"the ratio itself changed by {drift.ratio.value - 1:+.0%} on the way: repeat the run")
    if short:
        said.append(f"{counted(short, 'answer')} too short to time")
    return tuple(said)


def _outputs(outputs: Outputs | None) -> OutputsView | None:
    if outputs is None or not outputs.compared:
        return None
    prompt, first = outputs.first or ("", None)
    return OutputsView(
        compared=outputs.compared, different=outputs.different, prompt=one_line(prompt, 80), first=first
    )
