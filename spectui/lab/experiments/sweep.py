"""A sweep: server starts, one setting each, that measure cells until the best setting of each condition is settled.

What comes next is decided in `core.sweep.planner` from what is known. Each finished cell is kept at once, so that a
sweep that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean

from spectui.core.bet.baseline import Baseline, pooled
from spectui.core.bet.curves import curve_of
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.sweep.grid import PLAIN, WARMUP, Cell, Pace, name_of
from spectui.core.sweep.planner import ServerStart, Task, next_start
from spectui.core.text import counted, one_line
from spectui.errors import ServerError, SpectuiError, UsageError
from spectui.lab.experiments.sweep_keeper import SweepKeeper
from spectui.lab.experiments.sweep_order import first_prompt, require_sweepable
from spectui.lab.experiments.sweep_record import Found, Measured, SweepOrder, going_on
from spectui.lab.measuring import baseline
from spectui.lab.measuring.measured_run import MeasuredRun
from spectui.lab.measuring.ngram_replay import replays_of, rows_of, sizes_for
from spectui.lab.measuring.probe import ProbeResult, probe_if_possible, probe_points
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from spectui.store.baselines import BaselineKey, BaselineStore
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
        if self._since is not None:
            self._kept += self._clock() - self._since
        self._since = None

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
        server = LaunchedServer(plan)
        self._progress(f"starting {plan.command}")
        self._meter.begin()
        left = list(start.tasks)
        begun = self._clock()
        try:
            await server.start()
            self._starts.append(self._clock() - begun)
            if start.setting != PLAIN and server.speculating is False:
                reason = next((f.text for f in server.failures), "the server does not speculate")
                raise ServerError(reason)
            probed = await self._probe(server) if start.setting == PLAIN else ProbeResult()
            while left:
                await self._watcher.turn(self, left[0].cell)
                await self._cell(server, left[0], probed)
                left.pop(0)
        except SpectuiError as error:
            if start.setting == PLAIN:
                raise await server.explain(error) from error
            text = str(await server.explain(error))
            for task in left:
                await self._take(task.cell, Measured(requests=task.requests, failure=text))
        finally:
            try:
                await server.stop()
            finally:
                self._meter.end()

    async def _cell(self, server: LaunchedServer, task: Task, probed: ProbeResult) -> None:
        condition = task.cell.condition
        slots = server.plan.profile.traffic.concurrency
        profile = server.plan.profile.with_sampling(temperature=condition.temperature)
        profile = profile.with_traffic(workload=condition.workload, warmup=max(WARMUP, slots))
        workload = load_workload(profile.traffic)
        start = first_prompt(self._order, condition, profile.traffic)
        prompts = PromptSequence(
            workload, seed=profile.sampling.seed, depth=profile.traffic.depth, start=start
        )
        # Slots that wait for company say nothing about a full house.
        known = self._found.plain(condition) if task.cell.setting == PLAIN else None
        requests = max(task.requests - (known.requests if known else 0), 2 * slots if slots > 1 else 1)
        answers: list[RequestResult] = []
        run = MeasuredRun(
            server,
            profile,
            plain=self._against(task.cell),
            on_request=lambda _count: None,
            on_answer=answers.append if task.cell.setting == PLAIN else None,
        )
        await run.send(prompts, requests=requests, recorder=self._recorder, source="sweep")
        speed = run.segment.speed()
        if speed is None and task.cell.setting == PLAIN:
            raise UsageError(f"workload {workload.name}: no answer was long enough to measure a speed on")
        if speed is None:
            measured = Measured(requests=requests, failure="no answer was long enough to measure a speed on")
        elif task.cell.setting == PLAIN:
            waited = run.segment.bet().time_to_first_token_ms
            measured = _plain(task, speed, known, probed, first_token_ms=waited)
            # Every setting is measured on the prompts of the first baseline.
            replayed = known.replayed if known else await self._replayed(server, answers, probed)
            measured = replace(measured, replayed=replayed)
            key = baseline.key_for(replace(server.plan, profile=profile), workload)
            self._remember(key, measured, run.segment)
        else:
            measured = replace(self._read(run, task.cell), requests=requests)
        await self._take(task.cell, measured)

    async def _replayed(
        self, server: LaunchedServer, answers: Sequence[RequestResult], probed: ProbeResult
    ) -> tuple[Replay, ...]:
        """What lookups make of the baseline's answers."""
        sizes = self._sizes(server)
        return await replays_of(server.client, answers, sizes, probed.v, on_problem=self._progress)

    def _against(self, cell: Cell) -> Baseline | None:
        """What a cell is measured against: what is known of its baseline by now; None for the baseline itself."""
        plain = self._found.plain(cell.condition) if cell.setting != PLAIN else None
        if plain is None or plain.speed is None:
            return None
        # A run is kept with the baseline of its time, and the report counts both.
        source = "the sweep's first baseline" if plain.drift is None else "both baselines of the sweep"
        return Baseline(plain.speed, source, plain.v, plain.v_error)

    def _read(self, run: MeasuredRun, cell: Cell) -> Measured:
        """What a cell yielded, with what it predicts for other lengths."""
        plain, bet, segment = self._found.plain(cell.condition), run.bet(), run.segment
        v = plain.v if plain else {}
        rng = Random(1)  # noqa: S311  reproducible, no secret
        curve = curve_of(segment, bet, v, rng, self._order.grid.ks)
        return Measured(
            requests=segment.requests,
            speed=segment.speed(),
            first_token_ms=bet.time_to_first_token_ms,
            baseline=bet.baseline.value if bet.baseline else None,
            tokens_per_pass=bet.tokens_per_pass.value if bet.tokens_per_pass else None,
            drafted_per_pass=bet.drafted_per_pass,
            acceptance_ratio=bet.acceptance_ratio,
            speedup_predicted=bet.speedup_predicted,
            predicted={p.draft_length: Estimate(value=p.speedup, low=p.low, high=p.high) for p in curve},
        )

    def _remember(self, key: BaselineKey, measured: Measured, segment: Segment) -> None:
        if measured.speed is None:
            return
        plain = Baseline(measured.speed, "measured", measured.v, measured.v_error, measured.replayed)
        try:
            baseline.remember(self._baselines, key, plain, segment)
        except SpectuiError as error:
            self._progress(str(error))

    def _sizes(self, server: LaunchedServer) -> tuple[tuple[int, int], ...]:
        """Lookups and lengths of the grid that can be replayed."""
        wanted = [
            (s.ngram_lookup, s.ngram_length)
            for s in self._order.grid.settings
            if s.mode == NGRAM_SIMPLE and s.ngram_lookup and s.ngram_length
        ]
        return sizes_for(server, server.plan.profile.traffic, wanted)

    async def _probe(self, server: LaunchedServer) -> ProbeResult:
        """V(n), once: it does not depend on the prompts. A resumed sweep may have it already."""
        profile, grid = server.plan.profile, self._order.grid
        longest = max(grid.ks) if grid.fixed else 1
        usual = probe_points(profile.with_speculation(draft_length=longest))
        points = {*usual, longest + 1, *rows_of(self._sizes(server))}
        for known in self._found.cells.values():
            if known.replayed or (known.v and max(known.v) >= max(points)):
                return ProbeResult(v=dict(known.v), error=dict(known.v_error))
        self._progress("probing what verification costs")
        return await probe_if_possible(server.client, sorted(points), on_problem=self._progress)

    async def _take(self, cell: Cell, measured: Measured) -> None:
        """Keep a finished run at once, and say how far the sweep is."""
        measured = replace(measured, server_seconds=self._meter.take())
        self._found.take(cell, measured)
        await self._keeper.put(cell, measured)
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


def _plain(
    task: Task,
    speed: SpeedEstimate,
    known: Measured | None,
    probed: ProbeResult,
    *,
    first_token_ms: float | None,
) -> Measured:
    """A baseline, with what was measured of it before."""
    drift = None
    if known is not None and known.speed is not None:
        drift = speed.aggregate.value / known.speed.aggregate.value
        speed = pooled(known.speed, speed)
    return Measured(
        requests=task.requests,
        drift=drift,
        speed=speed,
        first_token_ms=first_token_ms,
        v=probed.v,
        v_error=probed.error,
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
