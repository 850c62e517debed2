"""Sweeps for somebody who watches: the plan, kept sweeps, and each step of a running one -> immutable SweepViews.

What is computed for the eye is computed in a thread, between two cells, when no answer is being timed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from spectui.core.profile import OFF, TuningProfile, needs_draft_model
from spectui.core.sweep.defaults import REQUESTS
from spectui.core.sweep.grid import Cell, Pace, name_of
from spectui.core.text import one_line
from spectui.core.views.heatmap import heat_map
from spectui.core.views.sweep import ConditionMap, KeptSweep, SweepChoice, SweepPlan, SweepStage, SweepView
from spectui.errors import SpectuiError, StoreError
from spectui.lab.experiments.sweep import Sweeper, SweepWatcher
from spectui.lab.experiments.sweep_order import expected_pace, order_for
from spectui.lab.experiments.sweep_record import Found, SweepOrder, found_of, plan_of, recommendations
from spectui.lab.reports.history import local_time
from spectui.lab.reports.sweep import plan_to_json, recommendation_to_json, sentence
from spectui.lab.servers.launcher import Launcher
from spectui.lab.workloads.workloads import OWN, builtin_names
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore

OnView: TypeAlias = Callable[[SweepView], object]

_LISTED: Final = 50
"""Kept sweeps in a list at most, the newest."""


@dataclass(frozen=True, slots=True)
class PlannedSweep:
    """A sweep that could be started, and what is shown of it. number: of the kept one that it is."""

    view: SweepView
    order: SweepOrder
    number: int | None = None


async def planned(
    profile: TuningProfile,
    choice: SweepChoice | None,
    *,
    launcher: Launcher,
    results: ResultStore,
    baselines: BaselineStore,
) -> PlannedSweep:
    """The sweep of these axes, without any those that suit the profile; with what an unfinished one knows already.

    Raises SpectuiError for a choice that cannot be swept.
    """
    axes = choice or SweepChoice(workloads=(profile.traffic.workload,), modes=())
    order = await order_for(
        profile,
        launcher,
        workloads=axes.workloads,
        modes=axes.modes or None,
        ks=axes.ks,
        p_mins=axes.p_mins,
        requests=REQUESTS,
    )
    offered = (await launcher.capabilities(await launcher.binary(profile))).modes
    drafted = profile.speculation.draft_model is not None
    modes = tuple(m for m in offered if m != OFF and (drafted or not needs_draft_model(m)))
    own = (OWN,) if profile.traffic.prompts is not None else ()
    view = SweepView(
        choice=replace(axes, modes=order.grid.modes), modes=modes, workloads=(*builtin_names(), *own)
    )
    return await asyncio.to_thread(_planned, view, order, results, baselines)


async def reopened(
    number: int, view: SweepView, *, results: ResultStore, baselines: BaselineStore
) -> PlannedSweep:
    """A kept sweep, to be looked at or gone on with. Raises StoreError."""

    def read() -> PlannedSweep:
        found = found_of(results.sweep(number))
        grid = found.order.grid
        choice = SweepChoice(workloads=grid.workloads, modes=grid.modes, ks=grid.ks, p_mins=grid.p_mins)
        return _seen(replace(view, choice=choice), found, expected_pace(found.order.profile, baselines))

    return await asyncio.to_thread(read)


def kept_sweeps(results: ResultStore) -> tuple[KeptSweep, ...]:
    """The newest sweeps of the store. Raises StoreError."""
    rows = []
    for sweep in results.sweeps()[:_LISTED]:
        row = KeptSweep(number=sweep.id, started=local_time(sweep.started_at), state=sweep.state)
        try:
            found = found_of(sweep)
        except StoreError as error:
            rows.append(replace(row, problem=str(error)))
            continue
        order = found.order
        rows.append(
            replace(
                row,
                model=order.profile.server.model or "",
                workloads=order.grid.workloads,
                known=found.done,
                cells=len(order.grid.cells),
            )
        )
    return tuple(rows)


def maps_of(found: Found, now: Cell | None = None) -> tuple[ConditionMap, ...]:
    """The heat map of each condition. now: the cell that is being measured."""
    grid, known = found.order.grid, found.outcomes
    best = recommendations(found, known)
    maps = []
    for condition in grid.conditions:
        plain, use = found.baseline(condition), best[condition]
        name = one_line(name_of(condition, grid), 40)
        speed = plain.speed.aggregate.value if plain is not None and plain.speed is not None else None
        maps.append(
            ConditionMap(
                name=name,
                plain=speed,
                blocks=heat_map(condition, grid, known, failed=found.failed, now=now),
                best=use,
                said=sentence(name, None if use is None else recommendation_to_json(use)),
            )
        )
    return tuple(maps)


class WatchedSweep(SweepWatcher):
    """One run of a planned sweep; one task runs it, cancelling it ends it.

    `on_view` gets every new view; cache: folder where facts of model files are kept.
    """

    def __init__(
        self,
        sweep: PlannedSweep,
        *,
        launcher: Launcher,
        results: ResultStore,
        baselines: BaselineStore,
        on_view: OnView,
        cache: Path | None = None,
    ) -> None:
        self.view = sweep.view
        self._number = sweep.number
        if sweep.view.finished:
            # The next one begins anew: it has neither that one's number nor its cells.
            self._number, maps = None, maps_of(Found(order=sweep.order))
            self.view = replace(sweep.view, number=None, maps=maps, done=0, left=None)
        self._on_view = on_view
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._sweeper = Sweeper(
            sweep.order,
            launcher=launcher,
            results=results,
            baselines=baselines,
            progress=lambda line: self.show(note=one_line(line, 500)),
            watcher=self,
            cache=cache,
        )

    async def check(self) -> None:
        """Make sure that it can be started, before anything is stopped for it. Raises SpectuiError."""
        await self._sweeper.check(self._number)

    async def run(self) -> None:
        """Run to the end; what fails on the way is shown, not raised."""
        try:
            # What runs is what is shown: without a number it is a new one.
            await self._sweeper.run(number=self._number, fresh=self._number is None)
            await self._show_found(SweepStage.DONE, None)
        except asyncio.CancelledError:
            self.show(stage=SweepStage.STOPPED, note="", maps=await self._calm())
            raise
        except SpectuiError as error:
            problem = one_line(str(error))
            self.show(stage=SweepStage.FAILED, note="", problem=problem, maps=await self._calm())

    def pause(self) -> None:
        """Hold the sweep before its next cell; it keeps the device."""
        if self.view.stage is SweepStage.RUNNING:
            self._goes_on.clear()
            self.show(stage=SweepStage.PAUSING)

    def go_on(self) -> None:
        """Let it go on."""
        if self.view.stage in {SweepStage.PAUSING, SweepStage.PAUSED}:
            self._goes_on.set()
            self.show(stage=SweepStage.RUNNING)

    @property
    def ending(self) -> bool:
        """Whether it was told to stop."""
        return self.view.stage is SweepStage.STOPPING

    def failed(self, problem: str) -> None:
        """Say why it ended."""
        self.show(stage=SweepStage.FAILED, note="", problem=problem)

    def settle(self) -> None:
        """One that never began has stopped as well, such as one that a newer command took the device from."""
        if self.view.busy:
            self.show(stage=SweepStage.STOPPED, note="")

    def stopping(self) -> None:
        """Say that the sweep's server is being ended."""
        self.show(stage=SweepStage.STOPPING, note="ending the sweep's server")

    async def turn(self, sweeper: Sweeper, cell: Cell) -> None:
        """Wait while it is paused, then show which cell comes."""
        if not self._goes_on.is_set():
            await self._show_found(SweepStage.PAUSED, None)
            await self._goes_on.wait()
        where = f"{name_of(cell.condition, sweeper.found.order.grid)}, {cell.setting.label}"
        self.show(note=f"measuring {one_line(where, 200)}")
        await self._show_found(self.view.stage, cell)

    async def taken(self, sweeper: Sweeper) -> None:
        """Show what is known by now."""
        if self.view.stage is SweepStage.STARTING:
            self.show(stage=SweepStage.RUNNING)
        await self._show_found(self.view.stage, None)

    def show(self, **changes: object) -> None:
        """Hand over the view with these changes."""
        self.view = replace(self.view, unkept=self._sweeper.found.unkept, **changes)  # type: ignore[arg-type]
        self._on_view(self.view)

    async def _show_found(self, stage: SweepStage, now: Cell | None) -> None:
        """The stage may have changed while the maps were made: then that one holds, unless the sweep is done."""
        found, before = self._sweeper.found, self.view.stage
        maps = await asyncio.to_thread(maps_of, found, now)
        if self.view.stage is not before and stage is not SweepStage.DONE:
            stage = self.view.stage
        self.show(
            stage=stage,
            maps=maps,
            number=found.number,
            done=found.done,
            left=self._sweeper.left if stage is not SweepStage.DONE else None,
            note="" if stage is SweepStage.DONE else self.view.note,
        )

    async def _calm(self) -> tuple[ConditionMap, ...]:
        """The maps without a cell that is being measured."""
        return await asyncio.to_thread(maps_of, self._sweeper.found)


def _planned(
    view: SweepView, order: SweepOrder, results: ResultStore, baselines: BaselineStore
) -> PlannedSweep:
    """A sweep that would be resumed is shown with what it knows; a store that cannot be read costs only that."""
    try:
        kept = results.unfinished_sweep(plan_of(order))
        found = Found(order=order) if kept is None else found_of(kept)
    except StoreError:
        found = Found(order=order)
    return replace(_seen(view, found, expected_pace(order.profile, baselines)), order=order)


def _seen(view: SweepView, found: Found, pace: Pace) -> PlannedSweep:
    order = found.order
    data = plan_to_json(order, pace)
    starts, minutes = data["restarts"], data["minutes"]
    begun = bool(found.known)
    stage = SweepStage.DONE if found.finished else SweepStage.STOPPED if begun else SweepStage.READY
    left = order.expected_seconds(found.cells, pace)
    seen = replace(
        view,
        stage=stage,
        model=one_line(order.profile.server.model or "", 200),
        plan=SweepPlan(
            cells=len(data["cells"]),
            starts=(starts["least"], starts["most"]),
            seconds=(minutes["least"] * 60, minutes["most"] * 60),
            tokens=pace.tokens,
            speed=pace.speed,
            measured=pace.measured,
        ),
        number=found.number,
        maps=maps_of(found),
        done=found.done,
        left=left if begun and not found.finished else None,
        note="",
        problem="",
    )
    return PlannedSweep(seen, order, found.number)
