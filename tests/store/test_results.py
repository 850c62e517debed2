"""What is kept is what is read back, under every condition that a query can name."""

from __future__ import annotations

import os
import sqlite3
import string
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectui.core.bet.estimates import Cost, Costs, Estimate, Source
from spectui.core.profile import (
    BaselineSettings,
    SamplingSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.errors import RecordError, StoreError
from spectui.store.baselines import FileIdentity
from spectui.store.paths import Folders
from spectui.store.records import Machine, RunConditions, RunFilter, RunSummary
from spectui.store.results import ResultStore
from tests.store import result_writer

WRITER = Path(result_writer.__file__)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
maybe_text = st.none() | text
number = st.floats(allow_nan=False, allow_infinity=False)
maybe_number = st.none() | number
moment = st.floats(0, 2.5e11)
count = st.integers(0, 10**15)
estimate = st.none() | st.builds(Estimate, value=number, low=maybe_number, high=maybe_number)
cost = st.builds(Cost, value=number, source=st.sampled_from(Source), low=maybe_number, high=maybe_number)
file = st.none() | st.builds(FileIdentity, text, count, st.integers(0, 2**70))
profiles = st.builds(
    TuningProfile,
    description=text,
    server=st.builds(
        ServerSettings,
        url=maybe_text,
        model=maybe_text,
        gpu_layers=st.none() | st.integers(0, 99) | st.sampled_from(["auto", "all"]),
        extra_args=st.lists(st.text(string.ascii_letters, max_size=9), max_size=3).map(tuple),
    ),
    speculation=st.builds(
        SpeculationSettings,
        mode=st.sampled_from(["off", "draft-simple", "ngram-simple"]),
        draft_model=maybe_text,
        draft_models=st.lists(text, max_size=2).map(tuple),
        draft_length=st.integers(1, 64),
        p_min=st.floats(0, 1),
    ),
    sampling=st.builds(SamplingSettings, temperature=st.floats(0, 5), seed=st.integers(0, 2**31 - 1)),
    traffic=st.builds(TrafficSettings, workload=text.filter(bool), concurrency=st.integers(1, 64)),
    baseline=st.builds(BaselineSettings, tokens_per_second=st.none() | st.floats(0.001, 1e7)),
)
machines = st.builds(
    Machine, name=text, cpu=maybe_text, cores=st.none() | st.integers(1, 999), gpus=st.tuples(text, text)
)
conditions = st.builds(
    RunConditions,
    profile=profiles,
    build=maybe_text,
    argv=st.lists(text, max_size=4).map(tuple),
    binary=file,
    model=file,
    draft=file,
    machine=st.none() | machines,
)
summaries = st.builds(
    RunSummary,
    requests=count,
    passes=count,
    tokens=count,
    drafted=count,
    accepted=count,
    tokens_per_second=estimate,
    alpha=estimate,
    acceptance_ratio=maybe_number,
    survival=st.lists(st.floats(0, 1), max_size=5).map(tuple),
    costs=st.builds(
        Costs,
        t1_ms=st.none() | cost,
        c=st.none() | cost,
        v=st.dictionaries(st.integers(1, 600), cost, max_size=3),
        inseparable=text,
    ),
    baseline=estimate,
    baseline_source=text,
    speedup_actual=estimate,
    speedup_predicted=maybe_number,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, values, max_size=4)
LATER = 200_000.0
"""More than a day after everything here began."""


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "data" / "results.sqlite3")


def begin(store: ResultStore, at: float = 1.0, build: str | None = None, **changes: Any) -> int:
    """A run that began; changes: workload, mode, model, draft_model, url."""
    profile = TuningProfile(
        server=ServerSettings(model=changes.get("model"), url=changes.get("url")),
        speculation=SpeculationSettings(
            mode=changes.get("mode", "off"),
            draft_model=changes.get("draft_model"),
        ),
        traffic=TrafficSettings(workload=changes.get("workload", "code")),
    )
    return store.begin_run(RunConditions(profile=profile, build=build), at=at)


@settings(deadline=None, max_examples=60)
@given(conditions, summaries, maybe_text, moment, moment)
def test_a_run_reads_back_as_it_was_kept(
    kept: RunConditions, summary: RunSummary, failure: str | None, began: float, ended: float
) -> None:
    with TemporaryDirectory() as folder:
        store = ResultStore(Path(folder) / "r")
        number = store.begin_run(kept, at=began)
        first = store.run(number)
        assert (first.conditions, first.started_at, first.ended_at) == (kept, began, None)
        assert first.summary == RunSummary()
        store.update_run(number, summary)
        assert store.run(number) == replace(first, summary=summary)
        store.end_run(number, summary, at=ended, failure=failure)
        assert store.run(number) == replace(first, summary=summary, ended_at=ended, failure=failure)
        assert store.runs() == (store.run(number),)


@settings(deadline=None, max_examples=60)
@given(objects, st.dictionaries(text, objects, max_size=4))
def test_a_sweep_reads_back_as_it_was_kept(
    plan: dict[str, object], cells: dict[str, dict[str, object]]
) -> None:
    with TemporaryDirectory() as folder:
        store = ResultStore(Path(folder) / "r")
        number = store.begin_sweep(plan, at=1.0)
        for key, result in cells.items():
            assert store.put_cell(number, key, result, at=2.0)
        found = store.unfinished_sweep(dict(reversed(plan.items())))
        assert found is not None
        assert (found.id, found.plan, found.state, found.ended_at) == (number, plan, "running", None)
        assert [(cell.key, cell.result) for cell in found.cells] == list(cells.items())
        store.end_sweep(number, "done", at=3.0)
        assert store.unfinished_sweep(plan) is None
        assert store.sweeps() == (replace(found, state="done", ended_at=3.0),)


def test_nothing_is_made_by_looking(store: ResultStore, tmp_path: Path) -> None:
    assert (store.runs(), store.sweeps(), store.unfinished_sweep({}), store.builds()) == ((), (), None, {})
    assert store.prune(at=LATER, keep=0) == (0, 0)
    with pytest.raises(StoreError, match="no run has the number 7"):
        store.run(7)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_this_users_alone(store: ResultStore, tmp_path: Path) -> None:
    begin(store)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["results.sqlite3"]
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "results.sqlite3").stat().st_mode & 0o777 == 0o600


def test_the_default_store_lies_in_the_data_folder(isolated_home: Path) -> None:
    begin(ResultStore.default(Folders.default()))
    assert (isolated_home / ".local" / "share" / "spectui" / "results.sqlite3").is_file()


def test_no_secret_is_kept(store: ResultStore, tmp_path: Path) -> None:
    profile = TuningProfile(server=ServerSettings(extra_args=("--api-key", "sk-1", "--jinja")))
    argv = ("llama-server", "--api-key", "sk-2", "--hf-token=sk-3")
    run = store.run(store.begin_run(RunConditions(profile=profile, argv=argv), at=1.0))
    assert run.conditions.profile.server.extra_args == ("--jinja",)
    assert b"sk-" not in (tmp_path / "data" / "results.sqlite3").read_bytes()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (RunFilter(), [4, 3, 2, 1]),
        (RunFilter(workload="prose"), [2]),
        (RunFilter(workload="pro"), []),
        (RunFilter(mode="draft-simple"), [3]),
        (RunFilter(model="big"), [4, 3]),
        (RunFilter(model="%"), []),
        (RunFilter(draft="small"), [3]),
        (RunFilter(build="b2"), [4, 2]),
        (RunFilter(since=3.0), [4, 3]),
        (RunFilter(limit=2), [4, 3]),
        (RunFilter(limit=0), []),
        (RunFilter(build="b2", since=3.0), [4]),
        (RunFilter(workload="' OR 1=1 --"), []),
    ],
    ids=repr,
)
def test_runs_are_found_by_their_conditions(store: ResultStore, wanted: RunFilter, found: list[int]) -> None:
    begin(store, 1.0, "b1")
    begin(store, 2.0, "b2", workload="prose")
    begin(store, 3.0, "b1", model="/m/big.gguf", mode="draft-simple", draft_model="/m/small.gguf")
    begin(store, 4.0, "b2", model="/m/big.gguf", mode="ngram-simple", draft_model="/m/small.gguf")
    assert [run.id for run in store.runs(wanted)] == found


def test_the_build_of_a_place_is_the_one_seen_last(store: ResultStore) -> None:
    begin(store, 2.0, "b2", url="http://a:1")
    begin(store, 1.0, "b1", url="http://a:1")
    begin(store, 3.0, None, url="http://a:1")
    begin(store, 3.0, "b9", url="http://b:1")
    begin(store, 3.0, "b7")
    assert store.builds() == {"http://a:1": "b2", "http://b:1": "b9"}


def test_pruning_keeps_the_newest_and_never_gives_a_number_twice(store: ResultStore, tmp_path: Path) -> None:
    for at in range(1, 41):
        begin(store, at)
    sweep = store.begin_sweep({"k": [1]}, at=5.0)
    store.put_cell(sweep, "1", {}, at=6.0)
    size = (tmp_path / "data" / "results.sqlite3").stat().st_size
    assert store.prune(at=LATER, before=11.0) == (10, 1)
    assert [run.started_at for run in store.runs()] == [float(at) for at in range(40, 10, -1)]
    assert store.prune(at=LATER, keep=2, before=40.0) == (29, 0)
    assert [run.id for run in store.runs()] == [40]
    assert store.prune(at=LATER) == (0, 0)
    assert store.prune(at=LATER, keep=0) == (1, 0)
    assert (tmp_path / "data" / "results.sqlite3").stat().st_size < size
    assert begin(store, 1.0) == 41
    assert store.begin_sweep({"k": [1]}, at=5.0) == sweep + 1
    assert store.sweeps()[0].cells == ()


def test_what_was_pruned_meanwhile_is_said(store: ResultStore) -> None:
    run, sweep = begin(store), store.begin_sweep({}, at=1.0)
    store.prune(at=LATER, keep=0)
    for change in (
        lambda: store.update_run(run, RunSummary()),
        lambda: store.end_run(run, RunSummary(), at=2.0),
        lambda: store.put_cell(sweep, "a", {}, at=2.0),
        lambda: store.end_sweep(sweep, "done", at=2.0),
    ):
        with pytest.raises(RecordError, match="any more; it was pruned"):
            change()


def test_pruning_spares_what_may_go_on(store: ResultStore) -> None:
    now, day = 1_000_000.0, 86_400.0
    dead, ended, alive = begin(store, now - day - 1), begin(store, now - 7200), begin(store, now - 7200)
    store.end_run(ended, RunSummary(), at=now - 3600)
    sweep, old = store.begin_sweep({}, at=now - 7200), store.begin_sweep({}, at=now - 7200)
    store.end_sweep(old, "stopped", at=now - 3600)
    assert store.prune(at=now, before=now - 3600) == (2, 1)
    assert [run.id for run in store.runs()] == [alive]
    assert [kept.id for kept in store.sweeps()] == [sweep]
    assert dead < alive
    assert store.prune(at=now, keep=0) == (0, 0)
    store.update_run(alive, RunSummary(requests=1))
    assert store.put_cell(sweep, "a", {}, at=now)
    assert store.prune(at=now + day, keep=0) == (1, 1)


def test_pruning_spares_a_sweep_that_another_program_runs_however_old(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite3"
    store = ResultStore(file)
    command = [sys.executable, str(WRITER), str(file), "hold", "{}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "sweep 1\n"
        store.end_sweep(store.begin_sweep({"k": 1}, at=1.0), "stopped", at=2.0)
        assert store.prune(at=LATER, keep=0) == (0, 1)
        assert [kept.id for kept in store.sweeps()] == [1]
        other.communicate()
    assert store.prune(at=LATER, before=LATER) == (0, 1)


def test_a_cell_is_kept_once(store: ResultStore) -> None:
    one, other = store.begin_sweep({"k": 1}, at=1.0), store.begin_sweep({"k": 2}, at=1.0)
    assert store.put_cell(one, "a", {"speed": 1.0}, at=2.0)
    assert not store.put_cell(one, "a", {"speed": 2.0}, at=3.0)
    assert store.put_cell(other, "a", {"speed": 3.0}, at=3.0)
    found = store.unfinished_sweep({"k": 1})
    assert found is not None
    assert [(cell.result, cell.done_at) for cell in found.cells] == [({"speed": 1.0}, 2.0)]


def test_a_stopped_sweep_can_be_resumed_and_the_newest_is(store: ResultStore) -> None:
    first, second = store.begin_sweep({"k": 1}, at=1.0), store.begin_sweep({"k": 1}, at=2.0)
    store.end_sweep(second, "stopped", at=3.0)
    found = store.unfinished_sweep({"k": 1})
    assert found is not None
    assert (found.id, found.state) == (second, "stopped")
    assert first != second
    assert store.unfinished_sweep({"k": 2}) is None


def test_a_sweep_belongs_to_the_program_that_runs_it_until_that_one_is_killed(
    store: ResultStore, tmp_path: Path
) -> None:
    older = store.begin_sweep({"k": 1}, at=1.0)
    file = tmp_path / "data" / "results.sqlite3"
    command = [sys.executable, result_writer.__file__, str(file), "hold", '{"k": 1}']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        number = int(other.stdout.readline().split()[1])
        found, owner = store.unfinished_sweep({"k": 1}), store.owner_of(number)
        assert found is not None
        assert found.id == older
        assert owner is not None
        assert owner.pid == other.pid
        assert store.take_sweep(number) == owner
        other.kill()
        # Dead, but its parent has not asked for it yet.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert store.owner_of(number) is None
        found = store.unfinished_sweep({"k": 1})
        assert found is not None
        assert (found.id, found.state) == (number, "running")
    assert store.take_sweep(number) is None


def test_who_goes_on_with_a_sweep_runs_it(store: ResultStore) -> None:
    number = store.begin_sweep({}, at=1.0)
    store.end_sweep(number, "stopped", at=2.0)
    assert store.take_sweep(number) is None
    kept = store.sweep(number)
    assert (kept.state, kept.ended_at, store.owner_of(number)) == ("running", None, None)
    store.end_sweep(number, "stopped", at=3.0)
    with pytest.raises(RecordError, match="holds no sweep 9 any more"):
        store.take_sweep(9)
    with pytest.raises(StoreError, match="no sweep has the number 9"):
        store.owner_of(9)


def test_an_owner_that_cannot_be_understood_is_said(store: ResultStore, tmp_path: Path) -> None:
    number = store.begin_sweep({}, at=1.0)
    with closing(sqlite3.connect(tmp_path / "data" / "results.sqlite3")) as db:
        db.execute("UPDATE sweep SET owner = '{}'")
        db.commit()
    with pytest.raises(StoreError, match="is damaged"):
        store.owner_of(number)


@pytest.mark.parametrize(
    "summary",
    [
        RunSummary(tokens_per_second=Estimate(value=float("nan"))),
        RunSummary(survival=(float("inf"),)),
        RunSummary(requests=-1),
        RunSummary(baseline_source="\udc80"),
    ],
    ids=["nan", "inf", "negative", "surrogate"],
)
def test_what_cannot_be_read_back_is_not_kept(store: ResultStore, summary: RunSummary) -> None:
    run = begin(store)
    with pytest.raises(RecordError, match="this result cannot be kept") as refused:
        store.update_run(run, summary)
    assert "\n" not in str(refused.value)
    assert store.run(run).summary == RunSummary()
