"""Rows and pairs of the history screen, from a real store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spectui.core.bet.estimates import Estimate
from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.views.run_list import Difference, RunList
from spectui.errors import StoreError
from spectui.lab.views.run_list import newest_runs, side_by_side
from spectui.store.records import RunConditions, RunSummary
from spectui.store.results import ResultStore

PROFILE = TuningProfile(
    server=ServerSettings(model="/m/big.gguf"),
    speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/small.gguf", draft_length=4),
)
SPEED = Estimate(value=40.0, low=38.0, high=42.0)


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """Three runs: one unfinished, one of an older build, the newest with a name that is up to no good."""
    store = ResultStore(tmp_path / "results.sqlite3")
    url = PROFILE.with_server(url="http://h:1", model=None)
    summary = RunSummary(requests=10, tokens_per_second=SPEED, speedup_actual=Estimate(value=1.25))
    store.begin_run(RunConditions(profile=PROFILE), at=1.7e9)
    run = store.begin_run(RunConditions(profile=url, build="b1"), at=1.7e9 + 60)
    store.end_run(run, summary, at=1.7e9 + 90)
    evil = url.with_traffic(workload="prose\x1b[2J").with_speculation(draft_length=8)
    run = store.begin_run(RunConditions(profile=evil, build="b2"), at=1.7e9 + 120)
    store.end_run(run, replace(summary, tokens_per_second=Estimate(value=30.0)), at=1.7e9 + 150)
    return store


def test_an_empty_store_has_no_rows_and_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite3"
    assert newest_runs(ResultStore(path), 500) == RunList()
    assert not path.exists()


def test_rows_come_newest_first_with_what_must_be_known(store: ResultStore) -> None:
    found = newest_runs(store, 500)
    assert [row.id for row in found.rows] == [3, 2, 1]
    assert not found.cut
    newest, stale, unfinished = found.rows
    assert "\x1b" not in newest.text
    assert (newest.remark, stale.remark, unfinished.remark) == ("", "stale", "unfinished")
    assert (stale.tokens_per_second, stale.speedup, stale.requests) == (40.0, 1.25, 10)
    assert (stale.model, stale.build, stale.source) == ("http://h:1", "b1", "measure")
    assert (unfinished.model, unfinished.draft, unfinished.k) == ("big.gguf", "small.gguf", 4)
    assert unfinished.tokens_per_second is None


@pytest.mark.parametrize(("limit", "ids", "cut"), [(2, [3, 2], True), (3, [3, 2, 1], False)])
def test_rows_are_bounded_and_a_cut_is_said(
    store: ResultStore, limit: int, ids: list[int], *, cut: bool
) -> None:
    found = newest_runs(store, limit)
    assert ([row.id for row in found.rows], found.cut) == (ids, cut)


def test_two_runs_side_by_side(store: ResultStore) -> None:
    details = side_by_side(store, 2, 3)
    assert (details.a.id, details.b.id) == (2, 3)
    numbers = {each.name: each for each in details.numbers}
    assert numbers["tokens/s"].ratio == 0.75
    assert numbers["alpha"].ratio is None
    assert Difference(name="profile.speculation.draft_length", a="4", b="8") in details.differences
    assert all("\x1b" not in each.b for each in details.differences)
    assert details.sentence == "run 3 has 0.75x the speed of run 2"
    (caution,) = details.cautions
    assert "b1" in caution
    assert "b2" in caution
    assert side_by_side(store, 1, 2).sentence == ""
    with pytest.raises(StoreError, match="no run has the number 9"):
        side_by_side(store, 2, 9)
