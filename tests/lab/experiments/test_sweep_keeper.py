"""What of a sweep is kept while its store is busy, what is tried again, and whose it is; its servers are played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spectui.core.sweep.grid import PLAIN
from spectui.core.sweep.planner import Task
from spectui.errors import ServerError, StoreBusy, UsageError
from spectui.lab.experiments.sweep import Sweeper
from spectui.lab.experiments.sweep_order import order_for
from spectui.lab.experiments.sweep_record import Measured, plan_of
from spectui.lab.reports.export import kept_sweep
from spectui.store.results import ResultStore
from tests.sweep_play import PlayedSweeps, SweepDesk, half_as_fast_again

WRITER = Path(__file__).parents[2] / "store" / "result_writer.py"
PLAIN_KEY, FOUR_KEY = "code T=0 off", "code T=0 draft-simple draft=/m/d.gguf k=4 p_min=0"
KEYS = [f"{PLAIN_KEY} requests=8", f"{FOUR_KEY} requests=8", f"{PLAIN_KEY} requests=16"]


class BusyStore(ResultStore):
    """Another program keeps it busy for so many changes."""

    beginnings = 0
    cells = 0

    def begin_sweep(self, plan: Mapping[str, Any], *, at: float) -> int:
        if self.beginnings:
            self.beginnings -= 1
            raise StoreBusy("results.sqlite3: another program keeps it busy; try again")
        return super().begin_sweep(plan, at=at)

    def put_cell(self, sweep: int, key: str, result: Mapping[str, Any], **how: Any) -> bool:
        if self.cells:
            self.cells -= 1
            raise StoreBusy("results.sqlite3: another program keeps it busy; try again")
        return super().put_cell(sweep, key, result, **how)


@contextmanager
def held(file: Path, plan: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """Another program that runs sweep 1, which has this plan."""
    command = [sys.executable, str(WRITER), str(file), "hold", json.dumps(plan)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "sweep 1\n"
        yield other


def killed(process: subprocess.Popen[str]) -> None:
    """Dead, though its parent has not asked for it yet."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


class Desk(SweepDesk):
    """Sweeps of one order, the store that they share, and what they said."""

    def __init__(self, binary: Path, folder: Path) -> None:
        super().__init__(binary, folder)
        self.file = folder / "results.sqlite3"
        self.results: BusyStore = BusyStore(self.file)
        self.axes: dict[str, Any] = {"modes": ("draft-simple",), "ks": (1, 4), "p_mins": (0.0,)}
        self.axes |= {"workloads": ("code",), "lookups": (4,), "lengths": (8,)}
        self.said: list[str] = []

    async def sweeper(self) -> Sweeper:
        return Sweeper(
            await order_for(self.profile, self.launcher, requests=8, **self.axes),
            launcher=self.launcher,
            results=self.results,
            baselines=self.baselines,
            progress=self.said.append,
        )

    def keys(self, number: int = 1) -> list[str]:
        return [cell.key for cell in self.results.sweep(number).cells if not cell.key.startswith("rest ")]


@pytest.fixture
async def desk(server_binary: Path, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(server_binary, tmp_path)
    yield desk
    await desk.launcher.aclose()


@pytest.mark.parametrize(("beginnings", "cells"), [(0, 1), (0, 2), (1, 0), (2, 1)])
async def test_a_store_that_is_busy_for_a_while_loses_nothing(
    desk: Desk, played: PlayedSweeps, beginnings: int, cells: int
) -> None:
    desk.results.beginnings, desk.results.cells = beginnings, cells
    found = await (await desk.sweeper()).run()
    assert desk.keys() == KEYS
    assert [sweep.state for sweep in desk.results.sweeps()] == ["done"]
    assert (found.number, found.unkept) == (1, "")
    assert sum("not kept for now" in line for line in desk.said) == 1


async def test_what_a_busy_store_does_not_take_to_the_end_is_said_and_measured_again(
    desk: Desk, played: PlayedSweeps
) -> None:
    desk.results.cells = 99
    found = await (await desk.sweeper()).run()
    assert found.finished
    assert found.unkept.startswith("the last of this sweep is not kept: results.sqlite3: another program")
    assert desk.results.sweep(1).state == "running"
    desk.results.cells = 0
    found = await (await desk.sweeper()).run()
    assert (found.number, found.unkept, desk.keys()) == (1, "", KEYS)


async def test_what_failed_is_tried_again_when_the_sweep_goes_on(desk: Desk, played: PlayedSweeps) -> None:
    async def answer(task: Task) -> Measured:
        if task.requests > 8:
            raise ServerError("the server ended")
        if task.cell.setting.k == 1:
            return Measured(requests=task.requests, failure="out of memory")
        return await half_as_fast_again(task)

    played.answer = answer
    desk.axes["exhaustive"] = True
    with pytest.raises(ServerError, match="the server ended"):
        await (await desk.sweeper()).run()
    before = kept_sweep(desk.results, 1)
    assert list(before.failures.values()) == ["out of memory"]
    asked = len(played.cells)
    played.answer = half_as_fast_again
    found = await (await desk.sweeper()).run()
    assert [cell.setting.k for cell in played.cells[asked:]] == [1, None]
    assert (found.number, found.finished, found.failures) == (1, True, {})
    back = kept_sweep(desk.results, 1)
    assert (back.cells, back.failed) == (found.cells, {})


async def test_a_whole_run_that_fails_is_not_tried_for_ever_and_leaves_the_short_one(
    desk: Desk, played: PlayedSweeps
) -> None:
    async def answer(task: Task) -> Measured:
        if task.cell.setting != PLAIN and task.requests == 8:
            return Measured(requests=8, failure="out of memory")
        return await half_as_fast_again(task)

    played.answer = answer
    desk.axes["modes"] = ("ngram-simple",)
    found = await (await desk.sweeper()).run()
    (cell,) = {cell for cell in played.cells if cell.setting != PLAIN}
    assert played.cells.count(cell) == 2
    assert (found.finished, found.cells[cell].requests) == (True, 2)
    speedup = found.speedup(cell)
    assert speedup is not None
    assert speedup.value == pytest.approx(1.5)
    assert found.failures == {cell.key: "out of memory"}


async def test_a_sweep_that_another_program_runs_is_its_own_until_that_is_killed(
    desk: Desk, played: PlayedSweeps
) -> None:
    order = await order_for(desk.profile, desk.launcher, requests=8, **desk.axes)
    with held(desk.file, plan_of(order)) as other:
        refusal = f"sweep 1 runs in another spectui, process {other.pid}: end it there first"
        for refused in ((await desk.sweeper()).check(1), (await desk.sweeper()).run(number=1)):
            with pytest.raises(UsageError, match=refusal):
                await refused
        assert played.cells == []
        assert (await (await desk.sweeper()).run()).number == 2
        assert desk.keys() == []
        killed(other)
        found = await (await desk.sweeper()).run(number=1)
    assert (found.number, found.finished, desk.keys()) == (1, True, KEYS)
