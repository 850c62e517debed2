"""What the sweep and export commands say and refuse, in one line and without leaving anything behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spectui.cli.main import main
from spectui.cli.sweep import sweep
from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.sweep.defaults import REQUESTS
from spectui.core.sweep.grid import PLAIN, Grid
from spectui.core.sweep.planner import Task
from spectui.core.views.sweep import SweepChoice
from spectui.errors import ServerDied
from spectui.lab.demo import DemoPair
from spectui.lab.experiments.sweep_record import Measured, SweepOrder, plan_of
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.results import ResultStore
from tests.harness import pair_profile
from tests.sweep_play import half_as_fast_again, played_sweeps

WRITER = Path(__file__).parents[1] / "store" / "result_writer.py"


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.count("\n") == 1
    assert not Folders.default().results.exists()
    return err


@pytest.fixture
def profile_file(tmp_path: Path) -> str:
    path = tmp_path / "own.toml"
    save(
        TuningProfile(server=ServerSettings(model="/m/t.gguf", binary="/nowhere/server")),
        path,
        Folders.default(),
    )
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--k", "0"), "each number must be from 1 to 64"),
        (("--k", "two"), "is not a list of whole numbers"),
        (("--p-min", "0,1.5"), "each number must be from 0 to 1"),
        (("--p-min", "nan"), "each number must be from 0 to 1"),
        (("--temperature", "warm"), "is not a list of numbers"),
        (("--budget", "soon"), "is no time span"),
        (("--runs", "1"), "--runs"),
        (("--workload", "poetry"), "no workload"),
        (("--mode", "draft-simple"), "draft-simple needs a draft model"),
        (("--mode", "off"), "off is always measured"),
        (("--mode", "ngram-simple"), "/nowhere/server"),
    ],
)
def test_bad_axes(
    arguments: tuple[str, ...], expected: str, profile_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in failed(capsys, "sweep", profile_file, *arguments)


def test_a_foreign_server_is_not_swept(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a sweep restarts its server" in failed(capsys, "sweep", "http://127.0.0.1:1")


def test_a_profile_and_a_number_are_not_given_together(
    profile_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "give a profile, or --resume" in failed(capsys, "sweep")
    assert "give a profile, or --resume" in failed(capsys, "sweep", profile_file, "--resume", "1")


def test_a_sweep_that_another_program_runs_is_not_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    axes: dict[str, Any] = {
        "workloads": ("code",),
        "temperatures": (0.0,),
        "modes": ("ngram-simple",),
        "ks": (4,),
    }
    settings = ServerSettings(model="/m/t.gguf", binary="/nowhere/server")
    plan = plan_of(SweepOrder(profile=TuningProfile(server=settings), grid=Grid(**axes), requests=8))
    command = [sys.executable, str(WRITER), str(Folders.default().results), "hold", json.dumps(plan)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "sweep 1\n"
        with pytest.raises(SystemExit) as ended:
            main(["sweep", "--resume", "1"])
        out, err = capsys.readouterr()
        other.communicate()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert f"sweep 1 runs in another spectui, process {other.pid}: end it there first" in err


@pytest.mark.parametrize("only_plan", [(), ("--plan",)], ids=["start", "plan"])
def test_models_that_cannot_be_swept_are_refused_before_a_plan_and_a_start(
    *,
    only_plan: tuple[str, ...],
    quick_pair: DemoPair,
    mismatched_draft: Path,
    server_binary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut, text, good = tmp_path / "cut.gguf", tmp_path / "text.gguf", quick_pair.drafts[0]
    cut.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    text.write_text("no model")
    for target, draft, more, expected in (
        (quick_pair.target, good, ("--draft", "/none.gguf"), "the draft model /none.gguf does not exist"),
        (quick_pair.target, good, ("--draft", str(text)), "the draft text.gguf is no GGUF model file"),
        (quick_pair.target, cut, (), "the draft cut.gguf cannot be loaded"),
        (cut, good, ("--mode", "ngram-simple"), "the target cut.gguf cannot be loaded"),
        (quick_pair.target, mismatched_draft, (), "has another tokenizer than the target"),
        (quick_pair.target, good, ("--draft", str(good), "--draft", str(mismatched_draft)), "tokenizer"),
        (None, good, (), "the profile names no model"),
    ):
        profile = pair_profile(quick_pair.target, draft, server_binary)
        path = tmp_path / "own.toml"
        save(profile.with_server(model=None if target is None else str(target)), path, Folders.default())
        assert expected in failed(capsys, "sweep", str(path), *more, *only_plan)


@pytest.mark.parametrize("kept", [True, False])
def test_a_setting_that_fails_costs_no_other_and_ends_with_1(
    server_binary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    kept: bool,
) -> None:
    async def answer(task: Task) -> Measured:
        if task.cell.setting.ngram_length == 8:
            return Measured(requests=task.requests, failure="out of memory")
        return await half_as_fast_again(task)

    played_sweeps(monkeypatch).answer = answer
    if not kept:
        monkeypatch.setenv("XDG_DATA_HOME", os.devnull)
    path = tmp_path / "own.toml"
    settings = ServerSettings(model="/m/t.gguf", binary=str(server_binary))
    save(TuningProfile(server=settings), path, Folders.default())
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(path), "--lookup", "4", "--length", "8,16", "--runs", "2", "--exhaustive"])
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert "code: ngram-simple lookup 4 length 16: 1.50x (" in out
    assert "), not sure: from 2 requests only" in out
    assert out.splitlines()[-1].startswith("sweep 1: servers" if kept else "this sweep was not kept: servers")
    assert err.splitlines()[-1] == "spectui: code T=0 ngram-simple lookup=4 length=8: out of memory"


@pytest.mark.parametrize(
    ("fresh", "expected"),
    [
        ((), "sweep 1 is kept: the same command, or --resume 1, goes on"),
        (("--fresh",), "sweep 1 is kept: --resume 1 goes on"),
    ],
)
def test_an_interrupted_sweep_says_how_it_goes_on(
    *,
    fresh: tuple[str, ...],
    expected: str,
    server_binary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def answer(task: Task) -> Measured:
        if task.cell.setting != PLAIN:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        return await half_as_fast_again(task)

    played_sweeps(monkeypatch).answer = answer
    path = tmp_path / "own.toml"
    settings = ServerSettings(model="/m/t.gguf", binary=str(server_binary))
    save(TuningProfile(server=settings), path, Folders.default())
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(path), *fresh])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (130, "")
    assert expected in err.splitlines()
    assert [kept.state for kept in ResultStore.default(Folders.default()).sweeps()] == ["stopped"]


def test_a_sweep_whose_plain_server_dies_ends_with_1_and_says_how_it_goes_on(
    server_binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(task: Task) -> Measured:
        raise ServerDied("the server ended by itself (killed by SIGKILL)")

    played_sweeps(monkeypatch).answer = answer
    path = tmp_path / "own.toml"
    settings = ServerSettings(model="/m/t.gguf", binary=str(server_binary))
    save(TuningProfile(server=settings), path, Folders.default())
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(path)])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    assert err.splitlines()[-2:] == [
        "sweep 1 is kept: the same command, or --resume 1, goes on",
        "spectui: the server ended by itself (killed by SIGKILL)",
    ]
    assert [kept.state for kept in ResultStore.default(Folders.default()).sweeps()] == ["stopped"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("12", "--format", "csv"), "no sweep has the number 12"),
        (("9" * 400, "--format", "csv"), "profile name"),
        (("nothing", "--format", "shell"), "nothing"),
        (("12", "--format", "pdf"), "pdf"),
        (("12",), "--format"),
    ],
)
def test_exports_of_what_is_not_there(
    arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in failed(capsys, "export", *arguments)


def test_numbers_of_a_profile_that_was_never_swept(
    profile_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nothing was swept with this profile yet" in failed(
        capsys, "export", profile_file, "--format", "csv"
    )


def test_the_usual_axes_are_those_of_the_screen() -> None:
    axes = {"ks", "p_mins", "lookups", "lengths", "runs"}
    defaults = {p.name: p.type.convert(p.default, p, None) for p in sweep.params if p.name in axes}
    choice, grid = SweepChoice(workloads=(), modes=()), Grid(workloads=(), temperatures=(), modes=(), ks=())
    assert defaults["ks"] == choice.ks
    assert defaults["p_mins"] == choice.p_mins == grid.p_mins
    assert (defaults["lookups"], defaults["lengths"]) == (grid.lookups, grid.lengths)
    assert defaults["runs"] == REQUESTS
