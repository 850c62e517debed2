"""What is kept of an error that nobody expected, and what of it nobody may read."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import click
import pytest

from spectui.cli.main import cli, main
from spectui.store.fault_log import NAME, fault, log_more
from spectui.store.paths import Folders

KEY = "sk-canary-4711"


def raised(text: str) -> BaseException:
    try:
        raise RuntimeError(text)  # noqa: TRY301  it needs a traceback
    except RuntimeError as error:
        return error


def log() -> Path:
    return Folders.default().log / NAME


def test_the_line_names_the_file_that_has_the_traceback() -> None:
    line = fault(raised("a bug"))
    assert line == f"spectui itself failed: RuntimeError('a bug'); the log has more: {log()}"
    kept = log().read_text("utf-8")
    assert "Traceback (most recent call last)" in kept
    assert "raise RuntimeError(text)" in kept
    assert stat.S_IMODE(log().stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "said",
    [
        f"--api-key {KEY}",
        f"['llama-server', '--api-key', '{KEY}']",
        f"--api-key={KEY}",
        f"-hft {KEY}",
        f"LLAMA_API_KEY={KEY}",
        f"HF_TOKEN={KEY}",
        f"Authorization: Bearer {KEY}",
        f"http://user:{KEY}@host:1/v1",
        f"http://host/props?api_key={KEY}&x=1",
    ],
)
def test_no_secret_is_shown_or_kept(said: str) -> None:
    assert KEY not in fault(raised(said))
    assert KEY not in log().read_text("utf-8")


def test_a_log_that_cannot_be_written_is_said(isolated_home: Path) -> None:
    log().parent.parent.mkdir(parents=True)
    log().parent.write_text("a file")
    assert "its log cannot be written" in fault(raised("a bug"))


def test_a_log_stays_bounded() -> None:
    for _ in range(60):
        fault(raised("x" * 1_000_000))
    assert sum(each.stat().st_size for each in log().parent.iterdir()) < 4 * 1024 * 1024
    assert len(list(log().parent.iterdir())) == 3


def test_more_is_written_when_asked() -> None:
    log_more()
    assert log().exists()


def test_a_command_that_fails_says_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setitem(cli.commands, "broken", broken)
    with pytest.raises(SystemExit) as ended:
        main(["broken"])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("spectui: spectui itself failed: ZeroDivisionError")
    assert said.count("\n") == 1
    assert "ZeroDivisionError: a bug" in log().read_text("utf-8")
    assert sys.exc_info() == (None, None, None)
