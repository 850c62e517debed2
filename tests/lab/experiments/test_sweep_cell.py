"""Cells of a sweep on scripted servers: what is sent, what is kept of it, and that all reports of it agree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spectui.core.profile import OFF, ServerSettings, TrafficSettings, TuningProfile
from spectui.core.sweep.grid import PLAIN, Cell, Grid
from spectui.errors import UsageError
from spectui.lab.experiments import sweep
from spectui.lab.experiments.sweep import Sweeper, SweepWatcher
from spectui.lab.experiments.sweep_record import Found, SweepOrder, found_of
from spectui.lab.reports.history import compare_runs, comparison_to_json, kept_run, kept_runs, run_to_json
from spectui.lab.reports.sweep import sweep_to_json
from spectui.lab.servers.launcher import Launcher, LaunchPlan
from spectui.lab.views.run_list import newest_runs, side_by_side
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore
from tests.scripted_server import Failure, Request, Script, ScriptedServer
from tests.unlaunched import Started, plan_for

GRID = Grid(
    workloads=("code", "prose"),
    temperatures=(0.0,),
    modes=("draft-simple",),
    ks=(4,),
    p_mins=(0.0,),
    drafts=("/m/d.gguf",),
)


class Mortal(ScriptedServer):
    """Dies in the middle of an answer, of that number, where one is named."""

    dies_at = 0
    answers = 0

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.answers += 1
        if self.answers == self.dies_at:
            self.script.failure = Failure.DIE
        await super()._stream(request, writer)


class Desk(SweepWatcher):
    """Two scripted servers, one for the baseline and one that speculates, and the stores of their sweeps."""

    def __init__(self, plain: ScriptedServer, drafting: Mortal, folder: Path) -> None:
        self.plain = plain
        self.drafting = drafting
        self.results = ResultStore(folder / "results.sqlite3")
        self.baselines = BaselineStore(folder / "baselines.json")
        model = folder / "t.gguf"
        model.write_bytes(b"GGUF")
        self.order = SweepOrder(
            profile=TuningProfile(
                server=ServerSettings(model=str(model)), traffic=TrafficSettings(max_tokens=40)
            ),
            grid=GRID,
            requests=6,
        )
        self.said: list[str] = []

    def server(self, plan: LaunchPlan) -> Started:
        """In place of a process."""
        asked = self.plain if plan.profile.speculation.mode == OFF else self.drafting
        server = Started(plan.profile.with_server(url=asked.url), api_key=None)
        server.plan = plan  # type: ignore[attr-defined]
        return server

    async def turn(self, sweeper: Sweeper, cell: Cell) -> None:
        """The machine is slower when the baseline is measured again."""
        if cell in sweeper.found.cells and cell.setting == PLAIN:
            self.plain.script.pass_ms = 28.0

    async def swept(self) -> Found:
        sweeper = Sweeper(
            self.order,
            launcher=Launcher(environ={}),
            results=self.results,
            baselines=self.baselines,
            progress=self.said.append,
            watcher=self,
        )
        return await sweeper.run()


@asynccontextmanager
async def desk_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    async def plan(_launcher: Launcher, profile: TuningProfile) -> LaunchPlan:
        return plan_for(profile)

    async def check(*_: object) -> None:
        """Nothing of it is a file."""

    monkeypatch.setattr(Launcher, "plan", plan)
    monkeypatch.setattr(sweep, "require_sweepable", check)
    async with (
        ScriptedServer(Script(k=0, pass_ms=25.0)) as plain,
        Mortal(Script(k=4, pass_ms=40.0)) as drafting,
    ):
        desk = Desk(plain, drafting, folder)
        monkeypatch.setattr(sweep, "LaunchedServer", desk.server)
        yield desk


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    async with desk_in(tmp_path, monkeypatch) as found:
        yield found


async def test_history_and_the_report_have_one_speedup_for_one_cell(desk: Desk) -> None:
    found = await desk.swept()
    assert found.finished
    report = sweep_to_json(found)
    assert report == sweep_to_json(found_of(desk.results.sweep(1)))
    assert [base["drift"] for base in report["baselines"]] == [pytest.approx(25 / 28)] * 2
    cells = {cell["workload"]: cell for cell in report["cells"]}
    assert all(cell["measured"] for cell in cells.values())
    runs = [r for r in kept_runs(desk.results) if r.conditions.profile.speculation.mode != OFF]
    assert [run.conditions.profile.traffic.workload for run in runs] == ["prose", "code"]
    for run in runs:
        cell, shown = cells[run.conditions.profile.traffic.workload], run_to_json(run, stale=None)
        for name, same in (
            ("speedup_actual", "speedup_actual"),
            ("low", "speedup_low"),
            ("high", "speedup_high"),
        ):
            assert cell[name] == shown[same]
        assert shown["tokens_per_second"] == cell["tokens_per_second"]
        assert shown["baseline_tokens_per_second"] == pytest.approx(1000 / (25 * 28) ** 0.5)
        assert shown["baseline_source"] == "both baselines of the sweep"
        # It was measured against the first baseline alone.
        kept = desk.results.run(run.id).summary.speedup_actual
        assert kept is not None
        assert shown["speedup_actual"] == pytest.approx(kept.value * (28 / 25) ** 0.5)
        assert kept_run(desk.results, run.id) == run
    one, other = runs
    beside = comparison_to_json(compare_runs(kept_run(desk.results, one.id), other), {})
    details = side_by_side(desk.results, one.id, other.id)
    rows = {row.id: row for row in newest_runs(desk.results, 10).rows}
    for side, run, row in (("a", one, details.a), ("b", other, details.b)):
        speedup = cells[run.conditions.profile.traffic.workload]["speedup_actual"]
        assert beside[side]["speedup_actual"] == row.speedup == rows[run.id].speedup == speedup


async def test_each_cell_is_linked_with_the_run_that_it_comes_from(desk: Desk) -> None:
    await desk.swept()
    cells = [cell for cell in desk.results.sweep(1).cells if not cell.key.startswith("rest ")]
    assert [(cell.key, cell.run) for cell in cells] == [
        ("code T=0 off requests=6", 1),
        ("prose T=0 off requests=6", 2),
        ("code T=0 draft-simple draft=/m/d.gguf k=4 p_min=0 requests=6", 3),
        ("prose T=0 draft-simple draft=/m/d.gguf k=4 p_min=0 requests=6", 4),
        ("code T=0 off requests=12", 5),
        ("prose T=0 off requests=12", 6),
    ]
    assert {run.sweep for run in desk.results.runs()} == {1}
    desk.results.remove_run(3)
    assert [cell.run for cell in desk.results.sweep(1).cells][:4] == [1, 2, None, 4]
    assert [run.id for run in kept_runs(desk.results)] == [6, 5, 4, 2, 1]


async def test_a_run_of_a_sweep_that_is_gone_has_the_speedup_of_its_time(desk: Desk) -> None:
    await desk.swept()
    before = desk.results.runs()
    assert kept_runs(desk.results) != before
    # The sweep began before the first of its runs.
    assert desk.results.prune(at=4e9, before=before[-1].started_at) == (0, 1)
    assert kept_runs(desk.results) == tuple(replace(run, sweep=None) for run in before)


async def test_baselines_of_a_sweep_are_remembered_with_all_that_is_known_of_them(desk: Desk) -> None:
    await desk.swept()
    known = {key.workload: kept for key, kept in desk.baselines.all()}
    assert set(known) == {"code", "prose"}
    for kept in known.values():
        assert kept.tokens_per_second == pytest.approx(1000 / (25 * 28) ** 0.5)
        assert kept.requests == 6
    # The verification of a server that cannot be probed is asked for once in each process.
    assert sum("verification could not be probed" in line for line in desk.said) == 2


async def test_a_cell_whose_server_dies_is_linked_with_its_broken_run(desk: Desk) -> None:
    desk.drafting.dies_at = 4
    found = await desk.swept()
    assert not [cell for cell in found.cells if cell.setting != PLAIN]
    runs = {run.id: run for run in kept_runs(desk.results)}
    failed = [cell for cell in desk.results.sweep(1).cells if " failed=" in cell.key]
    assert [cell.key.partition(" ")[0] for cell in failed] == ["code", "prose"]
    assert failed[0].run is not None
    assert runs[failed[0].run].failure is not None
    assert failed[1].run is None


async def test_a_server_that_speculates_all_the_same_is_no_baseline(desk: Desk) -> None:
    desk.plain.script.k = 4
    with pytest.raises(UsageError, match=r"take that out of server\.extra_args"):
        await desk.swept()
    assert desk.results.runs() == ()


async def test_answers_of_one_token_end_a_sweep_with_its_reason(desk: Desk) -> None:
    desk.order = replace(desk.order, profile=desk.order.profile.with_traffic(max_tokens=1))
    with pytest.raises(UsageError, match="workload code: no answer was long enough to measure a speed on"):
        await desk.swept()
