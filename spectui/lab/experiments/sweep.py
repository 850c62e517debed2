"""A sweep: server starts, one setting each, that measure cells until the best setting of each condition is settled.

What comes next is decided in `core.sweep.planner` from what is known. Each finished cell is kept at once, so that a
sweep that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Cell, Pace, name_of
from spectui.core.sweep.planner import ServerStart, next_start
from spectui.core.text import counted, one_line
from spectui.errors import SpectuiError
from spectui.lab.experiments.sweep_cell import cells_on
from spectui.lab.experiments.sweep_keeper import SweepKeeper
from spectui.lab.experiments.sweep_order import require_sweepable
from spectui.lab.experiments.sweep_record import Found, Measured, SweepOrder, going_on
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.store.baselines import BaselineStore
from spectui.store.records import SweepState
from spectui.store.results import ResultStore


class Meter:
    """Seconds in which a server process existed; what was taken is not counted again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        self._kept = 0.0

    def begin(self) -> None:
        """A server starts."""
        self._since = self._clock()

    def end(self) -> None:
        """It is gone."""
        self._kept, self._since = self.take(), None

    def take(self) -> float:
        """Seconds since they were taken last."""
        if self._since is not None:
            now = self._clock()
            self._kept += now - self._since
            self._since = now
        taken, self._kept = self._kept, 0.0
        return taken


class SweepWatcher:
    """Told where a sweep is; this one looks away. The sweep waits for what it does."""

    async def turn(self, sweeper: Sweeper, cell: Cell) -> None:
        """A cell is about to be measured."""

    async def taken(self, sweeper: Sweeper) -> None:
        """The sweep began, or a cell is known."""


class Sweeper:
    """Sweeps one order; owns at most one server at a time. cache: folder where facts of model files are kept."""

    def __init__(
        self,
        order: SweepOrder,
        *,
        launcher: Launcher,
        results: ResultStore,
        baselines: BaselineStore,
        progress: Callable[[str], None],
        watcher: SweepWatcher | None = None,
        cache: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._order = order
        self._launcher = launcher
        self._baselines = baselines
        self._cache = cache
        self._progress = progress
        self._watcher = watcher or SweepWatcher()
        self._clock = clock
        self._meter = Meter(clock)
        self._found = Found(order=order)
        self._starts: list[float] = []
        self._keeper = SweepKeeper(self._found, results, say=progress, clock=wall)
        self._recorder = Recorder(results, say=self._keeper.tell, clock=wall)

    @property
    def found(self) -> Found:
        """All that is known so far; it goes on growing."""
        return self._found

    @property
    def left(self) -> tuple[float, float]:
        """Seconds that are left: for sure, and at most."""
        return self._order.expected_seconds(self._found.known, self._pace())

    async def run(
        self, *, budget: float | None = None, fresh: bool = False, number: int | None = None
    ) -> Found:
        """Sweep until everything is settled or the budget, in seconds, is used up.

        The sweep of that number, or an unfinished one of the same order, is resumed unless `fresh`; what failed
        in it is tried again. Raises SpectuiError as `check` does, before anything is started or kept, and when the
        server does not even run without speculation.
        """
        await self.check(number)
        await self._begin(fresh=fresh, number=number)
        await self._watcher.taken(self)
        state: SweepState = "stopped"
        limit = asyncio.timeout(budget)
        try:
            async with limit:
                while start := self._next():
                    await self._serve(start)
            state, self._found.finished = "done", True
        except TimeoutError:
            if not limit.expired():
                raise
            number = self._found.number
            how = "" if number is None else f"; {going_on(number)}"
            self._progress(f"the budget is used up: here is what is known{how}")
        finally:
            await self._end(state)
        return self._found

    def _next(self) -> ServerStart | None:
        order = self._order
        return next_start(order.grid, self._found.outcomes, order.requests, exhaustive=order.exhaustive)

    async def check(self, number: int | None = None) -> None:
        """Make sure that it can be started, which writes and starts nothing.

        Raises SpectuiError as `require_sweepable`, and for a sweep of that number that cannot be read or that
        another program runs.
        """
        await self._keeper.require_free(number)
        await require_sweepable(self._order, self._launcher, self._cache)

    async def _begin(self, *, fresh: bool, number: int | None) -> None:
        """Find the sweep to go on with, or begin one; a store that cannot be used costs only the keeping."""
        resumed, found = await self._keeper.begin(fresh=fresh, number=number), self._found
        if not self._keeper.usable:
            self._recorder = Recorder()
        if resumed:
            name = "the sweep" if found.number is None else f"sweep {found.number}"
            self._progress(f"resuming {name}: {counted(len(found.cells), 'cell')} known; {self._left()}")
        elif found.number is not None:
            self._progress(f"sweep {found.number}: {self._left()}")

    async def _end(self, state: SweepState) -> None:
        rest = Measured(requests=0, server_seconds=self._meter.take())
        self._found.server_seconds += rest.server_seconds
        await self._keeper.end(state, rest)

    async def _serve(self, start: ServerStart) -> None:
        """One server start with its cells; a setting whose server fails is noted and left."""
        plan = await self._launcher.plan(start.setting.applied_to(self._order.profile))
        server, runner = LaunchedServer(plan), None
        self._progress(f"starting {plan.command}")
        self._meter.begin()
        left = list(start.tasks)
        begun = self._clock()
        try:
            await server.start()
            self._starts.append(self._clock() - begun)
            runner = await cells_on(
                server, self._found, recorder=self._recorder, store=self._baselines, say=self._progress
            )
            while left:
                await self._watcher.turn(self, left[0].cell)
                measured = await runner.run(left[0])
                await self._store(left.pop(0).cell, measured, run=runner.number)
        except SpectuiError as error:
            if start.setting == PLAIN:
                raise await server.explain(error) from error
            text, run = str(await server.explain(error)), runner.number if runner else None
            for task in left:
                await self._store(task.cell, Measured(requests=task.requests, failure=text), run=run)
                run = None
        finally:
            try:
                await server.stop()
            finally:
                self._meter.end()

    async def _store(self, cell: Cell, measured: Measured, *, run: int | None) -> None:
        """Keep a finished run at once, and say how far the sweep is. run: its number in the results store."""
        measured = replace(measured, server_seconds=self._meter.take())
        self._found.take(cell, measured)
        await self._keeper.put(cell, measured, run=run)
        where = name_of(cell.condition, self._order.grid)
        self._progress(
            f"{where}, {cell.setting.label}: {_said(measured, self._found.speedup(cell))}; {self._left()}"
        )
        await self._watcher.taken(self)

    def _left(self) -> str:
        """Cells done and the time that is left, for a line of progress."""
        low, high = (f"{each / 60:.0f}" for each in self.left)
        several = high if low == high else f"{low} to {high}"
        cells = counted(len(self._order.grid.cells), "cell")
        return f"{self._found.done} of at most {cells}, about {several} min left"

    def _pace(self) -> Pace:
        """From what this sweep measured so far."""
        tokens = self._order.profile.traffic.max_tokens
        cells = self._found.cells.values()
        speeds = [m.speed.aggregate.value for m in cells if m.speed is not None]
        waits = [m.first_token_ms / 1000 for m in cells if m.first_token_ms is not None]
        known = Pace(tokens=tokens)
        return Pace(
            tokens=tokens,
            speed=fmean(speeds) if speeds else known.speed,
            start=fmean(self._starts) if self._starts else known.start,
            first_token=fmean(waits) if waits else known.first_token,
        )


def _said(measured: Measured, ratio: Estimate | None) -> str:
    """The result of a cell in a few words. ratio: over its baseline."""
    if measured.failure is not None:
        return f"failed: {one_line(measured.failure, 120)}"
    speed = f"{measured.speed.aggregate.value:.1f} tokens/s" if measured.speed else "no speed"
    if ratio is None:
        return speed
    span = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"{speed}, {ratio.value:.2f}x{span}"
