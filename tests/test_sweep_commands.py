"""What the sweep and export commands refuse, in one line and without leaving anything behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spectui.cli import main
from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.sweepaxes import REQUESTS
from spectui.core.sweepplan import Grid
from spectui.core.sweepview import SweepChoice
from spectui.lab.sweepfiles import SweepOrder, plan_of
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.sweep_commands import sweep

WRITER = Path(__file__).parent / "store" / "result_writer.py"


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
        (("--mode", "off"), "a sweep needs a draft model"),
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
    axes = {"workloads": ("code",), "temperatures": (0.0,), "modes": ("ngram-simple",), "ks": (4,)}
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
