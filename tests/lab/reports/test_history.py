"""What is said of kept runs: stale or not, how two differ, and the same values in JSON, CSV and tables."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.estimates import BetReading, Cost, Costs, Estimate, Source
from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.lab.reports.history import (
    compare_runs,
    comparison_table,
    comparison_to_json,
    history_table,
    is_stale,
    run_table,
    run_to_json,
    runs_to_csv,
)
from spectui.lab.reports.run_json import bet_to_json
from spectui.store.baselines import FileIdentity
from spectui.store.records import Machine, Run, RunConditions, RunSummary

PROFILE = TuningProfile(
    server=ServerSettings(model="/m/big.gguf"),
    speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/small.gguf", draft_length=4),
)
COSTS = Costs(
    t1_ms=Cost(value=25.0, source=Source.MEASURED, low=24.0, high=26.0),
    c=Cost(value=0.1, source=Source.FITTED),
    v={2: Cost(value=1.07, source=Source.PROBED)},
)
RUN = Run(
    id=3,
    conditions=RunConditions(
        profile=PROFILE,
        build="b10434",
        argv=("llama-server", "-m", "/m/big.gguf"),
        machine=Machine(name="box", cpu="a fast one", cores=2, gpus=("H200",)),
    ),
    started_at=1.7e9,
    ended_at=1.7e9 + 60,
    summary=RunSummary(
        requests=10,
        passes=900,
        tokens=2000,
        drafted=3600,
        accepted=1100,
        tokens_per_second=Estimate(value=40.0, low=36.0, high=44.0),
        alpha=Estimate(value=0.7, low=0.65, high=0.75),
        survival=(0.7, 0.5),
        costs=COSTS,
        speedup_actual=Estimate(value=1.25),
    ),
)


def with_speed(speed: Estimate | None, **changes: Any) -> Run:
    summary = replace(RUN.summary, tokens_per_second=speed)
    return replace(RUN, summary=summary, **changes)


def test_a_run_has_the_names_of_a_measurement() -> None:
    data = run_to_json(RUN, stale=False)
    assert set(bet_to_json(BetReading(), None)) - {"loss", "outcome"} <= set(data)
    assert set(data["cost"]) == set(bet_to_json(BetReading(), None)["cost"])
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(data))
    assert (data["id"], data["mode"], data["k"], data["draft"]) == (3, "draft-simple", 4, "/m/small.gguf")
    assert (data["tokens_per_second"], data["tokens_per_second_low"]) == (40.0, 36.0)
    assert {n: data["cost"][n] for n in "cuv"} == {"c": 0.1, "u": None, "v": {"2": 1.07}}
    assert data["cost"]["sources"] == {"t1_ms": "measured", "c": "fitted", "v": "probed"}
    assert data["cost"]["intervals"]["t1_ms"] == [24.0, 26.0]
    assert data["machine"]["gpus"] == ["H200"]
    assert data["profile"]["speculation"]["draft_length"] == 4


def test_what_is_unknown_is_null() -> None:
    data = run_to_json(
        Run(id=1, conditions=RunConditions(profile=TuningProfile()), started_at=1.0), stale=None
    )
    known = {
        "id",
        "source",
        "started_at",
        "workload",
        "mode",
        "temperature",
        "concurrency",
        "profile",
        "cost",
    }
    counts = {"requests", "tokens", "passes", "drafted", "accepted", "stalled_passes"}
    assert {name for name, value in data.items() if value is not None} == known | counts
    assert [data["cost"][name] for name in ("t1_ms", "c", "u", "v")] == [None] * 4


def test_a_binary_that_changed_or_is_gone_makes_a_run_stale(tmp_path: Path) -> None:
    binary = tmp_path / "llama-server"
    binary.write_bytes(b"one")
    run = replace(RUN, conditions=replace(RUN.conditions, binary=FileIdentity.of(binary)))
    assert is_stale(run, {}) is False
    binary.write_bytes(b"another")
    assert is_stale(run, {}) is True
    binary.unlink()
    assert is_stale(run, {}) is True


@pytest.mark.parametrize("which", ["model", "draft"])
def test_a_model_that_changed_makes_a_run_stale(tmp_path: Path, which: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    run = replace(
        RUN, conditions=replace(RUN.conditions, **cast("dict[str, Any]", {which: FileIdentity.of(file)}))
    )
    assert is_stale(run, {}) is False
    file.write_bytes(b"another")
    assert is_stale(run, {}) is True


@pytest.mark.parametrize(
    ("build", "now", "stale"),
    [("b1", "b1", False), ("b1", "b2", True), ("b1", None, None), (None, "b2", None)],
)
def test_another_build_at_the_same_address_makes_a_run_stale(
    build: str | None, now: str | None, stale: bool | None
) -> None:
    profile = TuningProfile(server=ServerSettings(url="http://a:1"))
    run = replace(RUN, conditions=RunConditions(profile=profile, build=build))
    builds = {"http://b:1": "b9"} | ({} if now is None else {"http://a:1": now})
    assert is_stale(run, builds) is stale


def test_two_runs_differ_in_what_is_named() -> None:
    profile = PROFILE.with_speculation(draft_length=8).with_sampling(temperature=0.5)
    other = replace(
        RUN.conditions,
        profile=profile,
        build="b11000",
        argv=("llama-server", "--port", "1"),
        draft=FileIdentity("/m/small.gguf", 10, 1),
    )
    found = compare_runs(RUN, replace(RUN, id=4, conditions=other))
    assert found.differences == {
        "profile.speculation.draft_length": (4, 8),
        "profile.sampling.temperature": (0.0, 0.5),
        "build": ("b10434", "b11000"),
        "draft.path": (None, "/m/small.gguf"),
        "draft.size": (None, 10),
        "draft.mtime_ns": (None, 1),
    }
    assert compare_runs(RUN, RUN).differences == {}


def test_settings_that_neither_mode_uses_are_no_difference() -> None:
    def of(**speculation: Any) -> Run:
        profile = PROFILE.with_speculation(**speculation)
        return replace(RUN, conditions=replace(RUN.conditions, profile=profile))

    lookup = of(mode="ngram-simple", draft_model=None, draft_length=9, p_min=0.5, ngram_lookup=4)
    other = of(mode="ngram-simple", draft_models=("/m/x.gguf",), ngram_lookup=8)
    assert compare_runs(lookup, other).differences == {"profile.speculation.ngram_lookup": (4, 8)}
    assert set(compare_runs(of(mode="off", draft_length=9), other).differences) == {
        "profile.speculation.mode",
        "profile.speculation.ngram_lookup",
    }
    assert compare_runs(of(draft_length=9), lookup).differences["profile.speculation.p_min"] == (0.0, 0.5)


def test_another_build_or_file_is_said_beside_the_ratio() -> None:
    file = FileIdentity("/m/big.gguf", 10, 1)
    a = replace(RUN, conditions=replace(RUN.conditions, model=file, draft=file))
    changes: dict[str, Any] = {
        "build": "b1\x1b",
        "model": replace(file, mtime_ns=2),
        "draft": FileIdentity("/m/o", 10, 1),
    }
    b = replace(RUN, id=4, conditions=replace(a.conditions, **changes))
    data = comparison_to_json(compare_runs(a, b), {})
    builds, model = data["cautions"]
    assert "different builds, b10434 and b1" in builds
    assert model == "/m/big.gguf was changed between the runs"
    lines = comparison_table(data).splitlines()
    assert lines[-3:-1] == [f"careful: {builds}", f"careful: {model}"]
    assert "\x1b" not in "".join(lines)
    assert comparison_to_json(compare_runs(a, a), {})["cautions"] == []


def test_the_ratio_of_two_speeds_has_both_errors() -> None:
    slow = with_speed(Estimate(value=20.0, low=20.0 / 1.1, high=20.0 * 1.1))
    fast = with_speed(Estimate(value=30.0, low=30.0 / 1.2, high=30.0 * 1.2))
    ratio = compare_runs(slow, fast).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.value == pytest.approx(1.5)
    spread = math.exp(math.hypot(math.log(1.1), math.log(1.2)))
    assert (ratio.low, ratio.high) == pytest.approx((1.5 / spread, 1.5 * spread))
    assert compare_runs(slow, with_speed(Estimate(value=30.0))).ratio == Estimate(value=1.5)
    assert compare_runs(slow, with_speed(None)).ratio is None


positive = st.floats(0.01, 1e6)
speeds = st.builds(
    lambda value, width: Estimate(value=value, low=value / width, high=value * width),
    positive,
    st.floats(1.0, 3.0),
)


@given(speeds, speeds)
def test_turning_the_runs_around_turns_the_ratio_around(a: Estimate, b: Estimate) -> None:
    there, back = (
        compare_runs(with_speed(a), with_speed(b)).ratio,
        compare_runs(with_speed(b), with_speed(a)).ratio,
    )
    assert there is not None
    assert back is not None
    assert there.low is not None
    assert back.high is not None
    assert there.value * back.value == pytest.approx(1.0)
    assert there.low * back.high == pytest.approx(1.0)
    assert there.low <= there.value


def test_csv_holds_every_value() -> None:
    data = run_to_json(RUN, stale=None)
    (row,) = csv.DictReader(io.StringIO(runs_to_csv([data])))
    assert set(row) == (set(data) - {"cost"}) | {f"cost_{name}" for name in data["cost"]}
    assert (row["id"], row["tokens_per_second"], row["cost_c"], row["stale"]) == ("3", "40.0", "0.1", "")
    assert json.loads(row["survival"]) == [0.7, 0.5]
    assert json.loads(row["profile"]) == json.loads(json.dumps(data["profile"]))
    assert runs_to_csv([]) == runs_to_csv([data]).splitlines()[0]


def test_tables_are_plain_text_whatever_is_in_a_run() -> None:
    nasty = "\x1b[2Jx\ny"
    profile = PROFILE.with_server(model=nasty).with_traffic(workload=nasty)
    conditions = replace(RUN.conditions, profile=profile, build=nasty)
    run = replace(RUN, conditions=conditions, failure=nasty, ended_at=None)
    data = run_to_json(run, stale=True)
    tables = [
        history_table({"runs": [data]}),
        run_table(data),
        comparison_table(comparison_to_json(compare_runs(RUN, run), {})),
        runs_to_csv([data]),
    ]
    for table in tables:
        assert "\x1b" not in table
        assert "x\ny" not in table
    assert tables[0].splitlines()[1].endswith("stale, unfinished, failed: x y")


def test_a_run_is_shown_with_every_value_under_its_name() -> None:
    lines = run_table(run_to_json(replace(RUN, ended_at=None), stale=None)).splitlines()
    shown = dict(line.partition(": ")[::2] for line in lines[:-1])
    assert re.fullmatch(r"2023-11-1[45] \d\d:\d\d", shown["started_at"])
    assert (shown["ended_at"], shown["failure"], shown["cost.c"], shown["cost.v.2"]) == (
        "-",
        "-",
        "0.1",
        "1.07",
    )
    assert (shown["survival"], shown["machine.cpu"]) == ("0.700 0.500", "a fast one")
    assert shown["profile.speculation.draft_length"] == "4"
    assert lines[-1] == "unfinished"


def test_the_list_says_where_to_get_runs_from() -> None:
    assert history_table({"runs": []}) == (
        "no runs are kept; the dashboard and every measuring command keep theirs"
    )
    assert history_table({"runs": []}, others=True).startswith("no run matches")


def test_a_run_says_which_baseline_its_speedup_is_over() -> None:
    source = "the sweep's first baseline"
    summary = replace(RUN.summary, baseline=Estimate(value=32.0), baseline_source=source)
    lines = run_table(run_to_json(replace(RUN, summary=summary), stale=None)).splitlines()
    assert f"baseline_source: {source}" in lines


def test_the_comparison_says_the_ratio_in_words() -> None:
    other = with_speed(Estimate(value=20.0, low=19.0, high=21.0), id=4)
    lines = comparison_table(comparison_to_json(compare_runs(RUN, other), {})).splitlines()
    assert lines[0].split() == ["run", "3", "run", "4"]
    assert lines[1].split() == ["tokens_per_second", "40", "20"]
    assert lines[-1] == "run 4 has 0.50x the speed of run 3 (0.45 to 0.56)"
