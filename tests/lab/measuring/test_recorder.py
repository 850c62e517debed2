"""What is measured is kept while it is measured, and a store that fails costs no measurement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spectui.core.bet.estimates import Cost, Estimate, Source
from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.errors import StoreBusy, StoreError
from spectui.lab.experiments.measure import Measurement, Measurer, Order
from spectui.lab.measuring.recorder import Recorder, RunRecord
from spectui.lab.reports.run_json import bet_to_json
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.records import RunConditions, RunSummary
from spectui.store.results import STEPS, ResultStore
from tests.scripted_server import Failure, Script, ScriptedServer


@dataclass
class Watched(ResultStore):
    """A real store that also notes the summaries it is given, and fails from the change on that a test names."""

    path: Path
    fails_at: int = 1000
    seen: list[RunSummary] = field(default_factory=list)
    changes: int = 0

    def __post_init__(self) -> None:
        ResultStore.__init__(self, self.path)

    def _count(self) -> None:
        self.changes += 1
        if self.changes >= self.fails_at:
            raise StoreError("the disk is full")

    def begin_run(self, conditions: RunConditions, summary: RunSummary | None = None, **how: Any) -> int:
        self._count()
        self.seen.append(summary or RunSummary())
        return super().begin_run(conditions, summary, **how)

    def update_run(self, run: int, summary: RunSummary) -> None:
        self._count()
        self.seen.append(summary)
        super().update_run(run, summary)

    def end_run(self, run: int, summary: RunSummary, **how: Any) -> None:
        self._count()
        super().end_run(run, summary, **how)


@dataclass
class Busy(Watched):
    """A store that another program keeps busy, until a test says otherwise."""

    busy: bool = True

    def _count(self) -> None:
        if self.busy:
            raise StoreBusy("another program has it")


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "results.sqlite3")


def measurer(store: ResultStore, tmp_path: Path, said: list[str]) -> Measurer:
    return Measurer(
        launcher=Launcher(environ={}),
        store=BaselineStore(tmp_path / "b.json"),
        results=store,
        progress=said.append,
    )


def profile_of(server: ScriptedServer, **traffic: Any) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=server.url),
        speculation=SpeculationSettings(mode="draft-simple", draft_length=4),
        traffic=TrafficSettings(**{"max_tokens": 40, "warmup": 0, **traffic}),
        baseline=BaselineSettings(tokens_per_second=40.0),
    )


async def measured(
    store: ResultStore, tmp_path: Path, script: Script, said: list[str] | None = None, **traffic: Any
) -> Measurement:
    async with ScriptedServer(script) as server:
        order = Order(workloads=("code", "prose"), requests=4, baseline=True)
        return await measurer(store, tmp_path, said if said is not None else []).measure(
            profile_of(server, **traffic), order
        )


async def test_each_workload_is_a_run_with_the_numbers_that_are_printed(
    store: Watched, tmp_path: Path
) -> None:
    result = await measured(store, tmp_path, Script(k=4, alpha=0.7))
    prose, code = store.runs()
    for run, name in ((code, "code"), (prose, "prose")):
        bet = bet_to_json(result.bets[name], result.outcomes.get(name))
        summary = run.summary
        assert run.conditions.profile.traffic.workload == name
        assert run.conditions.profile.speculation.draft_length == 4
        assert run.conditions.build == "b10434"
        assert (run.conditions.argv, run.conditions.binary, run.conditions.machine) == ((), None, None)
        assert run.ended_at is not None
        assert run.ended_at >= run.started_at
        assert run.failure is None
        assert (summary.requests, summary.tokens, summary.drafted) == (4, bet["tokens"], bet["drafted"])
        assert summary.tokens_per_second is not None
        assert summary.tokens_per_second.value == bet["tokens_per_second"]
        assert summary.tokens_per_second.low is not None
        assert summary.alpha == result.bets[name].alpha
        assert list(summary.survival) == bet["survival"]
        assert summary.speedup_actual == result.bets[name].speedup_actual
        assert summary.costs == result.bets[name].costs
        assert summary.costs.t1_ms == Cost(value=25.0, source=Source.GIVEN)
        assert summary.round_cost == bet["round_cost"]


async def test_every_request_is_kept_as_it_ends(store: Watched, tmp_path: Path) -> None:
    await measured(store, tmp_path, Script(k=4, rate=400.0))
    assert [s.requests for s in store.seen] == [1, 2, 3, 4] * 2
    assert [s.tokens for s in store.seen] == [39, 78, 117, 156] * 2


async def test_several_streams_are_kept_with_their_joint_speed(store: Watched, tmp_path: Path) -> None:
    await measured(store, tmp_path, Script(k=4, rate=200.0, slots=2), concurrency=2)
    last = store.runs()[0].summary
    early = [s for s in store.seen if s.requests == 3][-1]
    assert last.tokens_per_second is not None
    assert early.tokens_per_second is not None
    assert early.pass_ms is not None
    one_stream = 1000 * early.tokens / early.passes / early.pass_ms
    assert early.tokens_per_second.value > 1.1 * one_stream


@pytest.mark.parametrize("fails_at", [1, 2, 3, 6])
async def test_a_store_that_fails_is_said_once_and_costs_nothing(
    store: Watched, tmp_path: Path, fails_at: int
) -> None:
    store.fails_at = fails_at
    said: list[str] = []
    result = await measured(store, tmp_path, Script(k=4, rate=400.0), said)
    assert [bet.requests for bet in result.bets.values()] == [4, 4]
    assert result.failure is None
    assert said.count("results are not kept: the disk is full") == 1
    assert store.changes == fails_at


async def test_a_file_of_a_newer_spectui_is_said_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite3"
    ResultStore(file, steps=(*STEPS, ())).begin_run(RunConditions(profile=TuningProfile()), at=1.0)
    before = file.read_bytes()
    said: list[str] = []
    result = await measured(ResultStore(file), tmp_path, Script(k=4), said)
    assert [bet.requests for bet in result.bets.values()] == [4, 4]
    assert sum("was written by a newer spectui" in line for line in said) == 1
    assert file.read_bytes() == before


async def test_a_server_that_dies_leaves_its_run_with_the_reason(store: Watched, tmp_path: Path) -> None:
    async with ScriptedServer(Script(k=4)) as server:

        def say(line: str) -> None:
            if line.startswith("code: 2 of"):
                server.script.failure = Failure.CUT

        work = measurer(store, tmp_path, [])
        work._progress = say
        result = await work.measure(profile_of(server), Order(workloads=("code",), requests=10))
    (run,) = store.runs()
    assert run.failure == str(result.failure)
    assert run.ended_at is not None
    assert run.summary.requests == result.bets["code"].requests >= 2


async def test_a_run_without_a_request_leaves_nothing(store: Watched, tmp_path: Path) -> None:
    result = await measured(store, tmp_path, Script(k=4, failure=Failure.CUT, after=20))
    assert result.failure is not None
    assert store.runs() == ()


async def test_an_interrupted_run_says_so(store: Watched, tmp_path: Path) -> None:
    said: list[str] = []
    begun = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("code: 1 of"):
            begun.set()

    async with ScriptedServer(Script(k=4, rate=200.0)) as server:
        work = measurer(store, tmp_path, said)
        work._progress = say
        order = Order(workloads=("code",), requests=1000)
        task = asyncio.create_task(work.measure(profile_of(server), order))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (run,) = store.runs()
    assert run.failure == "interrupted"
    assert run.summary.requests >= 1


def record_of(
    store: ResultStore, read: Callable[[], RunSummary], recorder: Recorder | None = None
) -> RunRecord:
    recorder = recorder or Recorder(store, clock=lambda: 5.0)
    return RunRecord(recorder, lambda: RunConditions(profile=TuningProfile()), read, source="dashboard")


async def test_changes_that_come_faster_than_the_disk_are_joined(store: Watched) -> None:
    done = 0
    record = record_of(store, lambda: RunSummary(requests=done))
    for done in range(1, 100):  # noqa: B007  read by the record
        record.update()
        await asyncio.sleep(0)
    done = 100
    await record.end()
    (run,) = store.runs()
    assert (run.summary.requests, run.started_at, run.ended_at) == (100, 5.0, 5.0)
    assert run.source == "dashboard"
    assert len(store.seen) < 99


async def test_what_a_run_yielded_is_read_when_it_ends_and_not_when_that_is_written(store: Watched) -> None:
    done = 3
    record = record_of(store, lambda: RunSummary(requests=done))
    record.update()
    ending = record.end(failure="the server is gone")
    done = 0
    await ending
    (run,) = store.runs()
    assert (run.summary.requests, run.failure) == (3, "the server is gone")


async def test_a_dropped_run_leaves_nothing(store: Watched) -> None:
    record = record_of(store, lambda: RunSummary(requests=1))
    record.update()
    await asyncio.sleep(0)
    await record.drop()
    assert store.runs() == ()
    assert store.seen


async def written(record: RunRecord) -> None:
    record.update()
    await record._written()


async def test_a_run_that_was_pruned_costs_no_other(store: Watched) -> None:
    said: list[str] = []
    recorder = Recorder(store, say=said.append, clock=lambda: 5.0)
    pruned = record_of(store, lambda: RunSummary(requests=1), recorder)
    await written(pruned)
    assert store.prune(at=200_000.0, keep=0) == (1, 0)
    await written(pruned)
    await pruned.end()
    assert said == [f"this run is not kept: {store.path}: holds no run 1 any more; it was pruned"]
    await record_of(store, lambda: RunSummary(requests=2), recorder).end()
    assert [(run.id, run.summary.requests) for run in store.runs()] == [(2, 2)]
    await pruned.drop()
    assert len(said) == 1


async def test_a_value_that_cannot_be_kept_costs_no_other(store: Watched) -> None:
    said: list[str] = []
    recorder = Recorder(store, say=said.append, clock=lambda: 5.0)
    speed: Estimate | None = None
    record = record_of(store, lambda: RunSummary(requests=1, tokens_per_second=speed), recorder)
    await written(record)
    for speed in (Estimate(value=float("nan")), Estimate(value=float("inf"))):  # noqa: B007  read by the record
        await written(record)
    assert len(said) == 1
    assert said[0].startswith(f"this run is not kept: {store.path}: this result cannot be kept")
    speed = Estimate(value=30.0)
    await record.end()
    (run,) = store.runs()
    assert (run.summary.tokens_per_second, run.ended_at) == (speed, 5.0)


async def test_a_busy_store_is_said_once_and_tried_again(store: Watched) -> None:
    said: list[str] = []
    recorder = Recorder(store, say=said.append, clock=lambda: 5.0)
    busy = Busy(store.path)
    recorder._store = busy
    done = 1
    record = record_of(store, lambda: RunSummary(requests=done), recorder)
    await written(record)
    await written(record)
    assert said == ["results are not kept for now: another program has it"]
    busy.busy = False
    done = 3
    await written(record)
    busy.busy = True
    await written(record)
    assert len(said) == 2
    busy.busy = False
    done = 5
    await record.end()
    (run,) = store.runs()
    assert (run.summary.requests, run.ended_at) == (5, 5.0)
