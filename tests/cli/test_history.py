"""`spectui history` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from spectui.cli.main import main
from spectui.core.bet.estimates import Estimate
from spectui.core.profile import TuningProfile
from spectui.core.views.run_list import RunSource
from spectui.store.paths import Folders
from spectui.store.records import RunConditions, RunSummary
from spectui.store.results import STEPS, ResultStore

DAY = 86_400


class Runner:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["history", *arguments])
        out, err = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    def json(self, *arguments: str) -> Any:
        status, out, err = self(*arguments, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def file() -> Path:
    return Folders.default().results


@pytest.fixture
def kept(file: Path) -> ResultStore:
    """Three runs: code a hundred days ago, prose ten days ago, and code now, which still runs."""
    store = ResultStore(file)
    now = time.time()
    for days, workload, speed in ((100, "code", 30.0), (10, "prose", 20.0), (0, "code", 40.0)):
        conditions = RunConditions(profile=TuningProfile().with_traffic(workload=workload), build="b10434")
        number = store.begin_run(conditions, at=now - days * DAY)
        summary = RunSummary(requests=5, tokens_per_second=Estimate(value=speed))
        store.update_run(number, summary)
        if days:
            store.end_run(number, summary, at=now - days * DAY + 60)
    return store


@pytest.mark.usefixtures("kept")
def test_runs_are_listed_the_newest_first(run: Runner) -> None:
    runs = run.json()["runs"]
    assert [(r["id"], r["workload"], r["tokens_per_second"]) for r in runs] == [
        (3, "code", 40.0),
        (2, "prose", 20.0),
        (1, "code", 30.0),
    ]
    status, out, err = run()
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "3", "2", "1"]
    assert out.splitlines()[1].endswith("unfinished")


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--workload", "code"), [3, 1]),
        (("--limit", "1"), [3]),
        (("--since", "20d"), [3, 2]),
        (("--since", "2h"), [3]),
        (("--build", "b1"), []),
        (("--mode", "off", "--workload", "prose"), [2]),
        (("--source", "measure", "--limit", "1"), [3]),
        (("--source", "ab"), []),
    ],
)
def test_runs_are_found_by_options(run: Runner, options: tuple[str, ...], found: list[int]) -> None:
    assert [r["id"] for r in run.json(*options)["runs"]] == found
    status, out, _ = run("export", *options)
    assert status == 0
    assert [int(row["id"]) for row in csv.DictReader(io.StringIO(out))] == found


def test_every_source_can_be_asked_for(run: Runner) -> None:
    for source in get_args(RunSource):
        assert run("--source", source)[0] == 0
    assert run("--source", "sleep")[0] == 2


@pytest.mark.usefixtures("kept")
def test_no_run_that_matches_is_not_no_run_at_all(run: Runner) -> None:
    said = "no run matches; without options spectui history lists every run\n"
    assert run("--workload", "nope") == (0, said, "")


def test_no_run_at_all_is_said_whatever_was_asked_for(run: Runner) -> None:
    for options in ((), ("--workload", "nope")):
        assert run(*options)[1].startswith("no runs are kept")


@pytest.mark.parametrize("command", [(), ("show", "1"), ("export",), ("prune", "--keep", "0")], ids=str)
def test_a_data_folder_that_can_never_be_one_is_one_line(
    run: Runner, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", os.devnull)
    status, out, err = run(*command)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "cannot be read or written: Not a directory" in err


@pytest.mark.usefixtures("kept")
def test_one_run_is_shown_in_full(run: Runner) -> None:
    shown = run.json("show", "2")
    assert shown == run.json("--workload", "prose")["runs"][0]
    status, out, _ = run("show", "2")
    assert status == 0
    assert "profile.traffic.workload: prose" in out.splitlines()


@pytest.mark.usefixtures("kept")
def test_two_runs_are_compared(run: Runner) -> None:
    found = run.json("compare", "1", "2")
    assert (found["a"]["id"], found["b"]["id"]) == (1, 2)
    assert found["differences"] == {"profile.traffic.workload": {"a": "code", "b": "prose"}}
    assert (found["ratio"], found["low"], found["high"]) == (pytest.approx(2 / 3), None, None)
    assert run("compare", "1", "2")[1].splitlines()[-1] == "run 2 has 0.67x the speed of run 1"


@pytest.mark.usefixtures("kept")
def test_export_gives_json_as_well(run: Runner) -> None:
    status, out, err = run("export", "--format", "json")
    assert (status, err) == (0, "")
    assert json.loads(out) == run.json()


def test_pruning_says_what_went(run: Runner, kept: ResultStore) -> None:
    kept.begin_sweep({}, at=1.0)
    assert run("prune", "--older-than", "90d") == (0, "removed 1 run and 1 sweep\n", "")
    assert run.json("prune", "--keep", "1") == {"removed": {"runs": 1, "sweeps": 0}}
    assert [r.id for r in kept.runs()] == [3]


def test_pruning_spares_a_run_that_goes_on(run: Runner, kept: ResultStore) -> None:
    assert run("prune", "--keep", "0") == (0, "removed 2 runs and 0 sweeps\n", "")
    assert [(r.id, r.ended_at) for r in kept.runs()] == [(3, None)]


def test_nothing_kept_is_no_error_and_makes_no_file(run: Runner, file: Path) -> None:
    assert run.json() == {"runs": []}
    assert run("prune", "--keep", "0") == (0, "removed 0 runs and 0 sweeps\n", "")
    assert run("export")[0] == 0
    assert not file.parent.exists()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("show", "9"), "no run has the number 9"),
        (("show", "0"), "RUN"),
        (("show", "99999999999999999999"), "RUN"),
        (("show",), "RUN"),
        (("compare", "1"), "B"),
        (("compare", "1", "9"), "no run has the number 9"),
        (("prune",), "--keep N"),
        (("prune", "--keep", "-1"), "--keep"),
        (("prune", "--older-than", "90"), "90d, 12h or 4w"),
        (("prune", "--older-than", "9999999d"), "90d, 12h or 4w"),
        (("--workload", "code", "prune", "--keep", "0"), "come after its name"),
        (("--json", "show", "1"), "come after its name"),
        (("--since", "yesterday"), "yesterday"),
        (("--limit", "0"), "--limit"),
        (("--source", "nobody"), "--source"),
        (("export", "--format", "xml"), "xml"),
        (("bogus",), "bogus"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_changes_nothing(
    run: Runner, file: Path, arguments: tuple[str, ...], word: str
) -> None:
    before = file.read_bytes()
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("spectui: ")
    assert err.count("\n") == 1
    assert word in err
    assert file.read_bytes() == before


@pytest.mark.parametrize("command", [(), ("show", "1"), ("export",), ("prune", "--keep", "0")], ids=str)
@pytest.mark.parametrize("word", ["is damaged", "newer spectui"])
def test_a_file_that_cannot_be_used_is_one_line(
    run: Runner, file: Path, command: tuple[str, ...], word: str
) -> None:
    if word == "is damaged":
        file.parent.mkdir(parents=True)
        file.write_bytes(b"no database at all\n" * 100)
    else:
        ResultStore(file, steps=(*STEPS, ())).begin_run(RunConditions(profile=TuningProfile()), at=1.0)
    before = file.read_bytes()
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    assert err.startswith(f"spectui: {file}: ")
    assert err.count("\n") == 1
    assert word in err
    assert file.read_bytes() == before
