"""A sweep as it is watched: the plan, kept sweeps, and its steps, with the servers' part played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from spectui.core.heatmap import CellState
from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.segment import SpeedEstimate
from spectui.core.snapshot import Estimate
from spectui.core.sweepplan import PLAIN, Cell, Condition
from spectui.core.sweepview import SweepChoice, SweepStage, SweepView
from spectui.errors import ServerError, StoreError, UsageError
from spectui.lab.launcher import Launcher
from spectui.lab.sweep import Sweeper
from spectui.lab.sweepfiles import Measured, stored, stored_key
from spectui.lab.sweepwatch import Draft, WatchedSweep, kept_sweeps, planned, reopened
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore

CHOICE = SweepChoice(workloads=("code", "prose"), modes=("draft-simple",), ks=(1, 4), p_mins=(0.0,))
CODE = Condition("code", 0.0)


def ran(value: float, **more: object) -> Measured:
    speed = SpeedEstimate(per_stream=Estimate(value=20 * value), streams=1.0, relative_error=0.01)
    return Measured(requests=10, speed=speed, baseline=20.0, **more)  # type: ignore[arg-type]


class Desk:
    """A profile with a store, and what the sweep of it showed."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.profile = TuningProfile(
            server=ServerSettings(binary=str(binary), model="/m/t.gguf"),
            speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/d.gguf"),
        )
        self.launcher = Launcher()
        self.results = ResultStore(folder / "results.sqlite3")
        self.baselines = BaselineStore(folder / "baselines.json")
        self.views: list[SweepView] = []

    async def draft(self, choice: SweepChoice | None = CHOICE) -> Draft:
        return await planned(
            self.profile, choice, launcher=self.launcher, results=self.results, baselines=self.baselines
        )

    def watched(self, draft: Draft) -> WatchedSweep:
        return WatchedSweep(
            draft,
            launcher=self.launcher,
            results=self.results,
            baselines=self.baselines,
            on_view=self.views.append,
        )

    @property
    def last(self) -> SweepView:
        return self.views[-1]


@pytest.fixture
async def desk(server_binary: Path, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(server_binary, tmp_path)
    yield desk
    await desk.launcher.aclose()


def playing(
    monkeypatch: pytest.MonkeyPatch, script: Callable[[Sweeper], Awaitable[None]]
) -> list[int | None]:
    """Let the test play what a sweep does; the numbers that it was asked to go on with."""
    numbers: list[int | None] = []

    async def run(self: Sweeper, *, number: int | None = None) -> object:
        numbers.append(number)
        await self._begin(fresh=False, number=number)
        await self._watcher.taken(self)
        state = "stopped"
        try:
            await script(self)
            state = "done"
        finally:
            await self._end(state)  # type: ignore[arg-type]
        return self.found

    monkeypatch.setattr(Sweeper, "run", run)
    return numbers


async def test_without_a_choice_the_plan_suits_the_profile(desk: Desk) -> None:
    view = (await desk.draft(None)).view
    assert view.choice is not None
    assert view.choice.workloads == ("code",)
    assert view.choice.modes == ("draft-simple", "ngram-simple")
    assert view.choice.ks == (1, 2, 3, 4, 6, 8, 12, 16)
    assert view.stage is SweepStage.READY
    assert "draft-simple" in view.modes
    assert "off" not in view.modes
    assert "prose" in view.workloads
    assert "own" not in view.workloads
    assert view.plan is not None
    assert view.plan.cells == 8 + 16
    assert not view.plan.measured
    assert view.startable


async def test_the_plan_counts_what_was_chosen_and_nothing_is_kept_by_it(desk: Desk) -> None:
    view = (await desk.draft()).view
    assert view.plan is not None
    assert (view.plan.cells, view.plan.starts) == (4, (2, 4))
    assert view.plan.seconds[0] < view.plan.seconds[1]
    assert [each.name for each in view.maps] == ["code", "prose"]
    assert view.number is None
    assert desk.results.sweeps() == ()


async def test_without_a_draft_no_mode_is_offered_that_needs_one(desk: Desk) -> None:
    desk.profile = desk.profile.with_speculation(mode="off", draft_model=None)
    view = (await desk.draft(None)).view
    assert "draft-simple" not in view.modes
    assert "ngram-simple" in view.modes
    with pytest.raises(UsageError, match="needs a draft model"):
        await desk.draft(CHOICE)


async def test_cells_fill_the_map_and_the_end_recommends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(sweeper: Sweeper) -> None:
        row = sweeper.found.order.grid.fixed[0]
        for condition in sweeper.found.order.grid.conditions:
            await sweeper.watcher_turn_and_take(Cell(condition, PLAIN), ran(1.0))
            await sweeper.watcher_turn_and_take(
                Cell(condition, row[1]), ran(1.5, predicted={1: Estimate(value=1.2)})
            )

    async def turn_and_take(self: Sweeper, cell: Cell, measured: Measured) -> None:
        await self._watcher.turn(self, cell)
        await self._take(cell, measured)

    monkeypatch.setattr(Sweeper, "watcher_turn_and_take", turn_and_take, raising=False)
    playing(monkeypatch, script)
    sweep = desk.watched(await desk.draft())
    sweep.show(stage=SweepStage.STARTING)
    await sweep.run()
    stages = list(dict.fromkeys(view.stage for view in desk.views))
    assert stages == [SweepStage.STARTING, SweepStage.RUNNING, SweepStage.DONE]
    marked = [view for view in desk.views if view.maps and view.maps[0].blocks[0].rows[0].cells[1].now]
    assert marked
    assert "code, draft-simple d.gguf k 4" in marked[0].note
    last = desk.last
    assert (last.number, last.done, last.left, last.note) == (1, 2, None, "")
    assert last.maps[0].plain == 20.0
    first, second = last.maps[0].blocks[0].rows[0].cells
    assert (first.state, second.state) == (CellState.PREDICTED, CellState.MEASURED)
    assert not second.now
    assert last.maps[0].said.startswith("code: use draft-simple d.gguf k 4: 1.50x (")
    assert last.maps[0].best is not None
    assert not last.maps[0].best.off
    assert [sweep.state for sweep in desk.results.sweeps()] == ["done"]


async def test_a_pause_holds_it_before_the_next_cell(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    async def script(sweeper: Sweeper) -> None:
        await sweeper._take(Cell(CODE, PLAIN), ran(1.0))
        sweep.pause()
        await sweeper._watcher.turn(sweeper, Cell(CODE, PLAIN))
        reached.append("next")

    playing(monkeypatch, script)
    sweep = desk.watched(await desk.draft())
    sweep.show(stage=SweepStage.STARTING)
    sweep.pause()
    assert sweep.view.stage is SweepStage.STARTING
    task = asyncio.create_task(sweep.run())
    async with asyncio.timeout(20):
        while sweep.view.stage is not SweepStage.PAUSED:  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0)
    assert SweepStage.PAUSING in {view.stage for view in desk.views}
    assert reached == []
    sweep.go_on()
    await task
    assert reached == ["next"]
    assert sweep.view.stage is SweepStage.DONE


async def test_stopped_it_keeps_its_cells_and_the_next_plan_shows_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def script(sweeper: Sweeper) -> None:
        await sweeper._take(Cell(CODE, PLAIN), ran(1.0))
        await sweeper._take(Cell(CODE, sweeper.found.order.grid.fixed[0][1]), ran(1.5))
        held.set()
        await asyncio.Event().wait()

    numbers = playing(monkeypatch, script)
    sweep = desk.watched(await desk.draft())
    sweep.show(stage=SweepStage.STARTING)
    task = asyncio.create_task(sweep.run())
    await held.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert desk.last.stage is SweepStage.STOPPED
    again = await desk.draft()
    assert (again.view.stage, again.view.number, again.view.done) == (SweepStage.STOPPED, 1, 1)
    assert again.number == 1
    assert again.view.left is not None
    assert again.view.maps[0].top == pytest.approx(1.5)
    other = await desk.draft(SweepChoice(workloads=("code",), modes=("draft-simple",), ks=(1, 4)))
    assert (other.view.stage, other.number) == (SweepStage.READY, None)
    assert numbers == [None]


async def test_a_failure_is_shown_not_raised(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(_sweeper: Sweeper) -> None:
        raise ServerError("the server ended with status 1: \x1b[31mout of memory")

    playing(monkeypatch, script)
    sweep = desk.watched(await desk.draft())
    sweep.show(stage=SweepStage.STARTING)
    await sweep.run()
    assert desk.last.stage is SweepStage.FAILED
    assert "out of memory" in desk.last.problem
    assert "\x1b" not in desk.last.problem


async def test_kept_sweeps_are_listed_and_opened_as_the_command_line_left_them(desk: Desk) -> None:
    assert kept_sweeps(desk.results) == ()
    from spectui.lab.sweepfiles import plan_of

    order = (await desk.draft()).order
    first = desk.results.begin_sweep(plan_of(order), at=1.7e9)
    cell, measured = Cell(CODE, order.grid.fixed[0][1]), ran(1.4)
    desk.results.put_cell(first, stored_key(Cell(CODE, PLAIN), ran(1.0)), stored(ran(1.0)), at=1.7e9)
    desk.results.put_cell(first, stored_key(cell, measured), stored(measured), at=1.7e9)
    strange = desk.results.begin_sweep({"of": "another version"}, at=1.8e9)
    newest, oldest = kept_sweeps(desk.results)
    assert (newest.number, bool(newest.problem)) == (strange, True)
    assert (oldest.number, oldest.state, oldest.known, oldest.cells) == (first, "running", 1, 4)
    assert (oldest.model, oldest.workloads) == ("/m/t.gguf", ("code", "prose"))
    draft = await reopened(first, SweepView(), results=desk.results, baselines=desk.baselines)
    assert (draft.number, draft.view.stage, draft.view.done) == (first, SweepStage.STOPPED, 1)
    assert draft.view.choice == CHOICE
    with pytest.raises(StoreError, match="another version"):
        await reopened(strange, SweepView(), results=desk.results, baselines=desk.baselines)
    with pytest.raises(StoreError, match="no sweep has the number 99"):
        await reopened(99, SweepView(), results=desk.results, baselines=desk.baselines)


async def test_a_finished_sweep_is_begun_anew_not_gone_on_with(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spectui.lab.sweepfiles import plan_of

    order = (await desk.draft()).order
    number = desk.results.begin_sweep(plan_of(order), at=1.7e9)
    desk.results.end_sweep(number, "done", at=1.7e9)
    draft = await reopened(number, SweepView(), results=desk.results, baselines=desk.baselines)
    assert draft.view.stage is SweepStage.DONE

    async def script(_sweeper: Sweeper) -> None:
        return None

    numbers = playing(monkeypatch, script)
    await desk.watched(draft).run()
    assert numbers == [None]
    assert len(desk.results.sweeps()) == 2
