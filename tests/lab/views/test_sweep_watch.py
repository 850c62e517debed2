"""A sweep as it is watched: the plan, kept sweeps, and its steps, with the servers' part played by the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Cell, Condition
from spectui.core.sweep.planner import Task
from spectui.core.views.heatmap import CellState
from spectui.core.views.sweep import ConditionMap, SweepChoice, SweepStage, SweepView
from spectui.errors import ServerError, StoreError, UsageError
from spectui.lab.experiments.sweep_record import Found, Measured, plan_of, stored, stored_key
from spectui.lab.views import sweep_watch
from spectui.lab.views.sweep_watch import PlannedSweep, WatchedSweep, kept_sweeps, maps_of, planned, reopened
from spectui.store.results import ResultStore
from tests.sweep_play import PlayedSweeps, SweepDesk, half_as_fast_again, ran

CHOICE = SweepChoice(workloads=("code", "prose"), modes=("draft-simple",), ks=(1, 4), p_mins=(0.0,))
CODE = Condition("code", 0.0)


class Desk(SweepDesk):
    """A profile with a store, and what the sweep of it showed."""

    def __init__(self, binary: Path, folder: Path) -> None:
        super().__init__(binary, folder)
        self.views: list[SweepView] = []

    async def planned(self, choice: SweepChoice | None = CHOICE) -> PlannedSweep:
        return await planned(
            self.profile, choice, launcher=self.launcher, results=self.results, baselines=self.baselines
        )

    def watched(self, sweep: PlannedSweep) -> WatchedSweep:
        return WatchedSweep(
            sweep,
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


async def test_without_a_choice_the_plan_suits_the_profile(desk: Desk) -> None:
    view = (await desk.planned(None)).view
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
    view = (await desk.planned()).view
    assert view.plan is not None
    assert (view.plan.cells, view.plan.starts) == (4, (2, 4))
    assert view.plan.seconds[0] < view.plan.seconds[1]
    assert [each.name for each in view.maps] == ["code", "prose"]
    assert view.number is None
    assert desk.results.sweeps() == ()


async def test_without_a_draft_no_mode_is_offered_that_needs_one(desk: Desk) -> None:
    desk.profile = desk.profile.with_speculation(mode="off", draft_model=None)
    view = (await desk.planned(None)).view
    assert "draft-simple" not in view.modes
    assert "ngram-simple" in view.modes
    with pytest.raises(UsageError, match="needs a draft model"):
        await desk.planned(CHOICE)


async def test_cells_fill_the_map_and_the_end_recommends(desk: Desk, played: PlayedSweeps) -> None:
    async def answer(task: Task) -> Measured:
        plain = task.cell.setting == PLAIN
        predicted = {} if plain else {1: Estimate(value=1.2)}
        return ran(1.0 if plain else 1.5, requests=task.requests, predicted=predicted)

    played.answer = answer
    sweep = desk.watched(await desk.planned())
    sweep.show(stage=SweepStage.STARTING)
    await sweep.run()
    stages = list(dict.fromkeys(view.stage for view in desk.views))
    assert stages == [SweepStage.STARTING, SweepStage.RUNNING, SweepStage.DONE]
    marked = [view for view in desk.views if view.maps and view.maps[0].blocks[0].rows[0].cells[1].now]
    assert marked
    assert "code, draft-simple d.gguf k 4" in marked[0].note
    first_done = next(view for view in desk.views if view.done)
    assert first_done.stage is SweepStage.RUNNING
    # Shown at once, not when the next cell begins.
    assert "prose" not in first_done.note
    assert first_done.maps[0].top == pytest.approx(1.5)
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


async def test_before_anything_but_the_baseline_is_known_nothing_is_recommended(
    desk: Desk, played: PlayedSweeps
) -> None:
    sweep = desk.watched(await desk.planned())
    sweep.show(stage=SweepStage.STARTING)
    await sweep.run()
    begun = [view.maps[0] for view in desk.views if view.maps[0].plain is not None]
    untried = [each for each in begun if each.top is None]
    assert untried
    assert {each.best for each in untried} == {None}
    assert begun[-1].best is not None


async def test_a_pause_holds_it_before_the_next_cell(desk: Desk, played: PlayedSweeps) -> None:
    async def answer(task: Task) -> Measured:
        if task.cell == Cell(CODE, PLAIN):
            sweep.pause()
        return await half_as_fast_again(task)

    played.answer = answer
    sweep = desk.watched(await desk.planned(replace(CHOICE, ks=(4,))))
    sweep.show(stage=SweepStage.STARTING)
    sweep.pause()
    began = sweep.view
    assert began.stage is SweepStage.STARTING
    task = asyncio.create_task(sweep.run())
    async with asyncio.timeout(20):
        while sweep.view.stage is not SweepStage.PAUSED:  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0)
    assert SweepStage.PAUSING in {view.stage for view in desk.views}
    assert played.cells == [Cell(CODE, PLAIN)]
    played.answer = half_as_fast_again
    sweep.go_on()
    await task
    assert len(played.cells) > 1
    ended = sweep.view
    assert ended.stage is SweepStage.DONE


async def test_stopped_it_keeps_its_cells_and_the_next_plan_shows_them(
    desk: Desk, played: PlayedSweeps
) -> None:
    held = asyncio.Event()

    async def answer(task: Task) -> Measured:
        if task.cell.setting != PLAIN and task.cell.condition != CODE:
            held.set()
            await asyncio.Event().wait()
        return await half_as_fast_again(task)

    played.answer = answer
    sweep = desk.watched(await desk.planned())
    sweep.show(stage=SweepStage.STARTING)
    task = asyncio.create_task(sweep.run())
    await held.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert desk.last.stage is SweepStage.STOPPED
    again = await desk.planned()
    assert (again.view.stage, again.view.number, again.view.done) == (SweepStage.STOPPED, 1, 1)
    assert again.number == 1
    assert again.view.left is not None
    assert again.view.maps[0].top == pytest.approx(1.5)
    other = await desk.planned(SweepChoice(workloads=("code",), modes=("draft-simple",), ks=(1, 4)))
    assert (other.view.stage, other.number) == (SweepStage.READY, None)


async def test_a_failure_is_shown_not_raised(desk: Desk, played: PlayedSweeps) -> None:
    async def answer(_task: Task) -> Measured:
        raise ServerError("the server ended with status 1: \x1b[31mout of memory")

    played.answer = answer
    sweep = desk.watched(await desk.planned())
    sweep.show(stage=SweepStage.STARTING)
    await sweep.run()
    assert desk.last.stage is SweepStage.FAILED
    assert "out of memory" in desk.last.problem
    assert "\x1b" not in desk.last.problem


async def test_kept_sweeps_are_listed_and_opened_as_the_command_line_left_them(desk: Desk) -> None:
    assert kept_sweeps(desk.results) == ()
    order = (await desk.planned()).order
    first = desk.results.begin_sweep(plan_of(order), at=1.7e9)
    cell, measured = Cell(CODE, order.grid.fixed[0][1]), ran(1.4)
    desk.results.put_cell(
        first, stored_key(Cell(CODE, PLAIN), ran(1.0), at=1.7e9), stored(ran(1.0)), at=1.7e9
    )
    desk.results.put_cell(first, stored_key(cell, measured, at=1.7e9), stored(measured), at=1.7e9)
    strange = desk.results.begin_sweep({"of": "another version"}, at=1.8e9)
    newest, oldest = kept_sweeps(desk.results)
    assert (newest.number, bool(newest.problem)) == (strange, True)
    assert (oldest.number, oldest.state, oldest.known, oldest.cells) == (first, "running", 1, 4)
    assert (oldest.model, oldest.workloads) == ("/m/t.gguf", ("code", "prose"))
    shown = await reopened(first, SweepView(), results=desk.results, baselines=desk.baselines)
    assert (shown.number, shown.view.stage, shown.view.done) == (first, SweepStage.STOPPED, 1)
    assert shown.view.choice == CHOICE
    with pytest.raises(StoreError, match="another version"):
        await reopened(strange, SweepView(), results=desk.results, baselines=desk.baselines)
    with pytest.raises(StoreError, match="no sweep has the number 99"):
        await reopened(99, SweepView(), results=desk.results, baselines=desk.baselines)


async def test_a_finished_sweep_is_begun_anew_not_gone_on_with(desk: Desk, played: PlayedSweeps) -> None:
    sweep = desk.watched(await desk.planned())
    await sweep.run()
    shown = await reopened(1, SweepView(), results=desk.results, baselines=desk.baselines)
    assert shown.view.stage is SweepStage.DONE
    asked = len(played.cells)
    again = desk.watched(shown)
    assert (again.view.number, again.view.done, again.view.maps[0].plain) == (None, 0, None)
    await again.run()
    assert len(played.cells) == 2 * asked
    assert [(kept.id, kept.state) for kept in desk.results.sweeps()] == [(2, "done"), (1, "done")]


async def test_a_finished_sweep_is_begun_anew_also_beside_an_unfinished_one_of_the_same_plan(
    desk: Desk, played: PlayedSweeps
) -> None:
    sweep = desk.watched(await desk.planned())
    await sweep.run()
    unfinished = desk.results.begin_sweep(plan_of((await desk.planned()).order), at=1.8e9)
    shown = await reopened(1, SweepView(), results=desk.results, baselines=desk.baselines)
    await desk.watched(shown).run()
    assert desk.last.number not in {1, unfinished}
    assert desk.results.sweep(unfinished).cells == ()


@pytest.mark.parametrize("end", ["pause", "stop", "failure"])
async def test_maps_are_made_off_the_event_loop(
    desk: Desk, played: PlayedSweeps, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    made: list[threading.Thread] = []
    held = asyncio.Event()

    def maps(found: Found, now: Cell | None = None) -> tuple[ConditionMap, ...]:
        made.append(threading.current_thread())
        return maps_of(found, now)

    async def answer(task: Task) -> Measured:
        if end == "failure":
            raise ServerError("the server ended")
        sweep.pause()
        if end == "stop":
            held.set()
            await asyncio.Event().wait()
        return await half_as_fast_again(task)

    monkeypatch.setattr(sweep_watch, "maps_of", maps)
    played.answer = answer
    sweep = desk.watched(await desk.planned())
    made.clear()
    sweep.show(stage=SweepStage.STARTING)
    task = asyncio.create_task(sweep.run())
    wanted = {"pause": SweepStage.PAUSED, "stop": SweepStage.STOPPED, "failure": SweepStage.FAILED}[end]
    if end == "stop":
        await held.wait()
        task.cancel()
    async with asyncio.timeout(20):
        while sweep.view.stage is not wanted:  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert made
    assert threading.main_thread() not in made


@pytest.mark.parametrize("step", ["begin_sweep", "put_cell", "end_sweep"])
async def test_what_is_not_kept_stays_on_screen(
    desk: Desk, played: PlayedSweeps, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object, **__: Any) -> None:
        raise StoreError("results.sqlite3: the disk is full")

    monkeypatch.setattr(ResultStore, step, full)
    await desk.watched(await desk.planned()).run()
    said = "how this sweep ended is not kept" if step == "end_sweep" else "this sweep is not kept"
    assert desk.last.stage is SweepStage.DONE
    assert desk.last.unkept == f"{said}: results.sqlite3: the disk is full"
    assert (desk.last.number is None) == (step != "end_sweep")
    since = next(index for index, view in enumerate(desk.views) if view.unkept)
    assert all(view.unkept for view in desk.views[since:])


async def test_a_sweep_that_was_pruned_meanwhile_is_not_measured_all_over(
    desk: Desk, played: PlayedSweeps
) -> None:
    order = (await desk.planned()).order
    number = desk.results.begin_sweep(plan_of(order), at=1.7e9)
    desk.results.put_cell(
        number, stored_key(Cell(CODE, PLAIN), ran(1.0), at=1.7e9), stored(ran(1.0)), at=1.7e9
    )
    shown = await desk.planned()
    assert shown.number == number
    desk.results.prune(keep=0, at=1.8e9)
    await desk.watched(shown).run()
    assert desk.last.stage is SweepStage.FAILED
    assert "no sweep has the number" in desk.last.problem
    assert played.cells == []
    assert desk.results.sweeps() == ()
