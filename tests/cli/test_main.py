"""The command line as a user meets it: exit status, one line for what is wrong, nothing else on the way."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from spectui import __version__
from spectui.__main__ import main as program
from spectui.cli.main import COMMANDS, cli, main
from spectui.cli.options import Duration
from spectui.cli.output import write
from spectui.store.paths import Folders, shipped_examples
from spectui.store.profiles import load
from tests.contract import printed
from tests.scripted_server import Failure, Script, ScriptedServer

NOWHERE = "http://127.0.0.1:1"
"""Nothing listens there: port 1 is reserved."""
SHIPPED = {"attach-remote", "code-draft", "mtp", "prose-off", "rewrite-ngram"}
TOO_LONG = "x" * 5000


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Runner:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, out, err)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runner:
    monkeypatch.chdir(tmp_path)
    return Runner(capsys)


def refused(ended: Ended, *words: str) -> None:
    """Bad input: status 2, one line on stderr that says `words`, and nothing else."""
    assert ended.status == 2
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("spectui: ")
    assert len(ended.err) < 600
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


PREDICT = ("predict", "--alpha", "0.7", "--c", "0.1")
EXPLAIN = ("explain", "--baseline", "36", "--measured", "30", "--k", "8", "--ratio", "0.11")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # predict
        (("predict",), "--alpha"),
        (("predict", "--alpha", "0.7"), "--c"),
        (("predict", "--alpha", "nan", "--c", "0.1"), "--alpha"),
        (("predict", "--alpha", "1.01", "--c", "0.1"), "--alpha"),
        (("predict", "--alpha", "-0.1", "--c", "0.1"), "--alpha"),
        (("predict", "--alpha", "many", "--c", "0.1"), "many"),
        (("predict", "--alpha", "0.7", "--c", "inf"), "--c"),
        (("predict", "--alpha", "0.7", "--c", "nan"), "--c"),
        ((*PREDICT, "--u", "nan"), "--u"),
        ((*PREDICT, "--u", "-1"), "--u"),
        ((*PREDICT, "--k", "0"), "from 1 to 64"),
        ((*PREDICT, "--k", "65"), "from 1 to 64"),
        ((*PREDICT, "--k", "1,two"), "whole numbers"),
        ((*PREDICT, "--k", "1.5"), "whole numbers"),
        ((*PREDICT, "--k", ""), "whole numbers"),
        ((*PREDICT, "--k", "1,,2"), "whole numbers"),
        ((*PREDICT, "--v", "nowhere.json"), "nowhere.json"),
        ((*PREDICT, "more"), "more"),
        ((*PREDICT, "--what"), "--what"),
        # measure and probe
        (("measure",), "PROFILE|URL"),
        (("measure", "nobody"), '"nobody"'),
        (("measure", "no/file.toml"), "no/file.toml"),
        (("measure", TOO_LONG), ""),
        (("measure", "http://"), "no server address"),
        (("measure", "http://h:99999"), "no server address"),
        (("measure", NOWHERE, "--workload", "bogus"), '"bogus"'),
        (("measure", NOWHERE, "--workload", "code,"), "workload"),
        (("measure", NOWHERE, "--workload", "own"), "prompt file"),
        (("measure", NOWHERE, "--runs", "0"), "--runs"),
        (("measure", NOWHERE, "--tokens", "1"), "--tokens"),
        (("measure", NOWHERE, "--temperature", "-1"), "--temperature"),
        (("measure", NOWHERE, "--temperature", "inf"), "--temperature"),
        (("measure", NOWHERE, "--temperature", "nan"), "--temperature"),
        (("measure", NOWHERE, "--concurrency", "0"), "--concurrency"),
        (("measure", NOWHERE, "--baseline", "nan"), "a speed is from"),
        (("measure", NOWHERE, "--baseline", "inf"), "a speed is from"),
        (("measure", NOWHERE, "--baseline", "0"), "a speed is from"),
        (("measure", NOWHERE, "--baseline", "ftp://h"), "only http and https"),
        (("doctor",), "PROFILE|URL"),
        (("doctor", "nobody"), '"nobody"'),
        (("doctor", "no/file.toml"), "no/file.toml"),
        (("doctor", "http://h:99999"), "no server address"),
        (("probe",), "PROFILE|URL"),
        (("probe", "nobody"), '"nobody"'),
        (("probe", NOWHERE, "--n", "0"), "from 1 to 512"),
        (("probe", NOWHERE, "--n", "one"), "whole numbers"),
        # ab
        (("ab", "code-draft"), "'B'"),
        (("ab", NOWHERE, "nobody"), '"nobody"'),
        (("ab", NOWHERE, NOWHERE, "--workload", "bogus"), '"bogus"'),
        (("ab", NOWHERE, NOWHERE, "--runs", "7"), "--runs"),
        (("ab", NOWHERE, NOWHERE, "--tokens", "1"), "--tokens"),
        (("ab", NOWHERE, NOWHERE, "--budget", "soon"), "no time span"),
        (("ab", NOWHERE, NOWHERE, "--budget", "0m"), "no time span"),
        (("ab", NOWHERE, NOWHERE, "--budget", ""), "no time span"),
        (("ab", NOWHERE, NOWHERE, "--budget", "1m1h"), "no time span"),
        (("ab", NOWHERE, NOWHERE, "--budget", "-5m"), "no time span"),
        # explain
        (("explain",), "--ratio"),
        ((*EXPLAIN, "--baseline", "nan"), "--baseline"),
        ((*EXPLAIN, "--measured", "inf"), "--measured"),
        ((*EXPLAIN, "--measured", "0"), "--measured"),
        ((*EXPLAIN, "--ratio", "1.5"), "--ratio"),
        ((*EXPLAIN, "--ratio", "nan"), "--ratio"),
        ((*EXPLAIN, "--k", "0"), "--k"),
        ((*EXPLAIN, "--c", "nan"), "--c"),
        ((*EXPLAIN, "--p-min", "2"), "--p-min"),
        ((*EXPLAIN, "--slots", "0"), "--slots"),
        ((*EXPLAIN, "--v", "nowhere.json"), "nowhere.json"),
        (("explain", "--log", "nowhere.log"), "nowhere.log"),
        (("explain", "--passes", "nowhere.jsonl"), "nowhere.jsonl"),
        (("explain", "--log", "a", "--passes", "b"), "not both"),
        # check
        (("check",), "COMMAND"),
        (("check", ""), "empty"),
        (("check", "ls -l"), "llama-server"),
        (("check", "llama-server -m 'open"), "quotes"),
        (("check", "llama-server -m t", "--help-text", "nowhere.txt"), "nowhere.txt"),
        (("check", "llama-server -m t", "--server", "no/llama-server"), "no/llama-server"),
        # profiles
        (("profiles", "show"), "NAME"),
        (("profiles", "show", "nobody"), '"nobody"'),
        (("profiles", "show", "../../etc/passwd"), "passwd"),
        (("profiles", "path", "nobody"), '"nobody"'),
        (("profiles", "bogus"), "bogus"),
        # the dashboard
        (("run",), "PROFILE"),
        (("run", "nobody"), '"nobody"'),
        (("run", "nobody\x1b[2J"), "nobody"),
        (("run", *["code-draft"] * 10), "10 sessions: there are keys for 9"),
        (("run", "code-draft", "nobody"), '"nobody"'),
        (("attach", *[NOWHERE] * 10), "10 sessions: there are keys for 9"),
        (("attach", NOWHERE, "gopher://h"), "gopher"),
        (("attach", NOWHERE, NOWHERE, "--baseline", "34"), "--baseline is the speed of one server"),
        (("attach",), "URL"),
        (("attach", "gopher://h"), "gopher"),
        (("attach", ""), "address"),
        (("attach", NOWHERE, "--baseline", "-5"), "a speed is from"),
        (("attach", NOWHERE, "--baseline", "fast://"), "fast"),
        (("demo", "more"), "more"),
        # anything else
        (("bogus",), "bogus"),
        (("--bogus",), "--bogus"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_status_2(run: Runner, arguments: tuple[str, ...], words: str) -> None:
    ended = run(*arguments)
    refused(ended, words)
    assert "\x1b" not in ended.err


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "no V(n)"),
        ("{}", "no V(n)"),
        ("7", "no V(n)"),
        ('{"zwei": 1.1}', "'zwei'"),
        ('{"0": 1.1}', "'0'"),
        ('{"-2": 1.1}', "'-2'"),
        ('{"2.5": 1.1}', "'2.5'"),
        ('{"\u00b2": 1.1}', "whole numbers"),
        ('{"2": 0}', "V(2)"),
        ('{"2": -1}', "V(2)"),
        ('{"2": "1.1"}', "V(2)"),
        ('{"2": null}', "V(2)"),
        ('{"2": true}', "V(2)"),
        ('{"2": NaN}', "V(2)"),
        ('{"2": Infinity}', "V(2)"),
        ('{"2": 1e999}', "V(2)"),
    ],
)
def test_a_bad_file_of_v_is_refused(run: Runner, tmp_path: Path, content: str, word: str) -> None:
    (tmp_path / "v.json").write_text(content, "utf-8")
    for arguments in (PREDICT, EXPLAIN):
        refused(run(*arguments, "--v", "v.json", "--json"), "v.json", word)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00" * 100])
def test_a_file_of_v_that_is_no_text_is_refused(run: Runner, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.json").write_bytes(content)
    refused(run(*PREDICT, "--v", "v.json"), "v.json")


def test_a_folder_is_no_file(run: Runner, tmp_path: Path) -> None:
    for arguments in ((*PREDICT, "--v", "."), ("explain", "--log", "."), ("explain", "--passes", ".")):
        refused(run(*arguments), ".")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "no pass"),
        ("nonsense", "line 1"),
        ('{"drafted": 4, "accepted": 5, "committed": 6, "ms": 9}', "line 1"),
        ('{"drafted": 4, "accepted": 1, "committed": 2, "ms": 9}\n{"drafted": -1}', "line 2"),
    ],
)
def test_a_bad_file_of_passes_is_refused(run: Runner, tmp_path: Path, content: str, word: str) -> None:
    (tmp_path / "p.jsonl").write_text(content)
    refused(run("explain", "--passes", "p.jsonl", "--json"), "p.jsonl", word)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("nonsense", "bad.toml"),
        ("[speculation]\ndraft_length = 0\n", "draft_length"),
        ("[speculation]\nlength = 4\n", "length"),
        ("[sampling]\ntemperature = nan\n", "temperature"),
        ("[sampling]\ntemperature = inf\n", "temperature"),
        ("schema_version = 99\n", "schema_version"),
    ],
)
@pytest.mark.parametrize("command", ["measure", "probe", "run"])
def test_a_bad_profile_is_refused(run: Runner, tmp_path: Path, command: str, content: str, word: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    refused(run(command, "bad.toml"), "bad.toml", word)


@pytest.mark.parametrize("command", ["measure", "probe"])
def test_nothing_at_an_address_is_bad_input(run: Runner, command: str) -> None:
    ended = run(command, NOWHERE, "--json")
    assert (ended.status, ended.out) == (2, "")
    progress, error = ended.err.splitlines()
    assert progress == f"attaching to {NOWHERE}"
    assert error.startswith(f"spectui: nothing answers at {NOWHERE}")


@pytest.mark.parametrize(
    ("alpha", "speedups", "best"),
    [
        ("0.32", [1.18, 1.15, 0.99, 0.75, 0.50], {"k": 1, "speedup": 1.18}),
        ("0.71", [1.53, 1.79, 1.91, 1.68, 1.18], {"k": 4, "speedup": 1.91}),
    ],
)
def test_predict_gives_the_classic_example(
    run: Runner, alpha: str, speedups: list[float], best: dict[str, float]
) -> None:
    """A 32B target with a 0.5B draft, c = 0.12, on prose and on code."""
    ended = run("predict", "--alpha", alpha, "--c", "0.12", "--k", "1,2,4,8,16", "--json")
    assert (ended.status, ended.err) == (0, "")
    data = ended.json
    assert set(data) == {"alpha", "c", "model", "rows", "best"}
    assert (data["alpha"], data["c"], data["model"]) == (float(alpha), 0.12, "textbook")
    assert [row["k"] for row in data["rows"]] == [1, 2, 4, 8, 16]
    assert [round(row["speedup"], 2) for row in data["rows"]] == speedups
    assert data["rows"][1]["expected_tokens"] == pytest.approx(1 + float(alpha) + float(alpha) ** 2)
    assert {"k": data["best"]["k"], "speedup": round(data["best"]["speedup"], 2)} == best
    for row in data["rows"]:
        at = run(
            "predict", "--alpha", str(row["break_even_alpha"]), "--c", "0.12", "--k", str(row["k"]), "--json"
        )
        assert at.json["rows"][0]["speedup"] == pytest.approx(1.0, abs=1e-6)


def test_predict_with_verification_and_a_rest(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{"2": 1.1, "5": 1.5}')
    data = run(*PREDICT, "--k", "4,1,4", "--v", "v.json", "--u", "0.2", "--json").json
    assert data["model"] == "full"
    assert [row["k"] for row in data["rows"]] == [4, 1]
    tokens = sum(0.7**j for j in range(5))
    assert data["rows"][0]["speedup"] == pytest.approx(tokens / (1.5 + 5 * 0.1 + 0.2))
    assert data["rows"][1]["speedup"] == pytest.approx(1.7 / (1.1 + 2 * 0.1 + 0.2))
    assert all(row["break_even_alpha"] is None for row in data["rows"])


def test_predict_advises_off_where_nothing_wins(run: Runner) -> None:
    ended = run("predict", "--alpha", "0.1", "--c", "0.9", "--json")
    assert ended.json["best"] == {"k": None, "speedup": 1.0}
    table = run("predict", "--alpha", "0.1", "--c", "0.9")
    assert table.out.splitlines()[-1] == "best: off, no length beats plain decoding (textbook form)"


def test_predict_prints_the_same_as_a_table(run: Runner) -> None:
    ended = run("predict", "--alpha", "0.71", "--c", "0.12", "--k", "1,4")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["length", "tokens", "per", "pass", "speedup", "break-even", "alpha"]
    assert [line.split()[:3] for line in lines[1:3]] == [["1", "1.71", "1.53x"], ["4", "2.83", "1.91x"]]
    assert lines[-1] == "best: draft length 4, 1.91x (textbook form)"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("1H", 3600), ("2m5s", 125)]
)
def test_a_time_span_in_seconds(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


def test_explain_prints_one_object(run: Runner) -> None:
    ended = run(*EXPLAIN, "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.json["speedup_actual"] == pytest.approx(30 / 36)
    assert ended.json["acceptance_ratio"] == 0.11
    assert ended.json["speedup_textbook"] is None


def test_an_unhealthy_command_is_status_1(run: Runner) -> None:
    help_text = Path(__file__).parents[1] / "data" / "help" / "b10434.txt"
    wrong = run("check", "llama-server -m t -md d --draft-max 4", "--help-text", str(help_text), "--json")
    assert (wrong.status, wrong.json["ok"]) == (1, False)
    right = run("check", "llama-server -m t", "--help-text", str(help_text), "--json")
    assert (right.status, right.json["ok"], right.json["findings"]) == (0, True, [])


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["table", "json"])
def test_a_command_that_is_no_utf_8_is_checked_like_any_other(run: Runner, as_json: tuple[str, ...]) -> None:
    help_text = Path(__file__).parents[1] / "data" / "help" / "b10434.txt"
    ended = run(
        "check", "llama-server -m /x/\udcff.gguf --draft-max 4", "--help-text", str(help_text), *as_json
    )
    assert (ended.status, ended.err) == (1, "")
    assert ".gguf" in ended.out


def test_what_the_output_has_no_character_for_is_replaced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a \udcff b")
    assert capsys.readouterr().out == "a ? b\n"
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    write("größer")
    assert ascii_only.buffer.getvalue() == b"gr??er\n"


def test_profiles_are_listed_own_ones_first(run: Runner, tmp_path: Path) -> None:
    folder = Folders.default().profiles
    folder.mkdir(parents=True)
    (folder / "zebra.toml").write_text('description = "mine"\n[speculation]\nmode = "off"\n')
    (folder / "broken.toml").write_text("[speculation]\ndraft_length = 0\n")
    ended = run("profiles", "list", "--json")
    assert (ended.status, ended.err) == (0, "")
    entries = ended.json["profiles"]
    assert [e["name"] for e in entries] == ["broken", "zebra", *sorted(SHIPPED)]
    assert [e["shipped"] for e in entries] == [False, False] + [True] * len(SHIPPED)
    assert entries[1] == {
        "name": "zebra",
        "description": "mine",
        "shipped": False,
        "path": str(folder / "zebra.toml"),
        "problem": None,
    }
    assert "draft_length" in entries[0]["problem"]
    assert all(e["problem"] is None and e["description"] for e in entries[1:])
    table = run("profiles", "list").out.splitlines()
    assert len(table) >= len(entries)
    assert any(line.split() == ["zebra", "own", "mine"] for line in table)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_profiles_are_shown_and_load(run: Runner, name: str) -> None:
    examples = shipped_examples()
    assert examples is not None
    file = examples / f"{name}.toml"
    assert run("profiles", "show", name) == Ended(0, file.read_text("utf-8"), "")
    assert run("profiles", "path", name) == Ended(0, f"{file}\n", "")
    assert load(name, Folders.default()).profile.description


def test_the_folder_of_own_profiles_is_named_before_it_exists(run: Runner, isolated_home: Path) -> None:
    folder = isolated_home / ".config" / "spectui" / "profiles"
    assert run("profiles", "path") == Ended(0, f"{folder}\n", "")
    assert not folder.exists()


def test_version_and_help_are_no_errors(run: Runner) -> None:
    version = run("--version")
    assert (version.status, version.err) == (0, "")
    assert version.out.split()[-1] == __version__
    for command in ((), ("predict",), ("measure",), ("ab",), ("profiles",), ("profiles", "list")):
        told = run(*command, "--help")
        assert (told.status, told.err) == (0, "")
        assert told.out.startswith("Usage: spectui")


def spectui(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spectui", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_program_itself_says_one_line() -> None:
    ended = spectui("predict", "--alpha", "2", "--c", "0.1", "--json")
    refused(Ended(ended.returncode, ended.stdout, ended.stderr), "--alpha")


def test_a_reader_that_went_away_is_told_nothing() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "spectui", "profiles", "list", "--json"]
    try:
        ended = subprocess.run(
            command, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    finally:
        os.close(writes)
    assert ended.stderr == ""
    assert ended.returncode in {0, 1}


async def test_measuring_somebody_elses_server_gives_one_object() -> None:
    async with ScriptedServer(Script(k=4, alpha=0.7, pass_ms=50.0)) as server:
        arguments = ("measure", server.url, "--runs", "3", "--tokens", "60", "--baseline", "40", "--json")
        ended = await asyncio.to_thread(spectui, *arguments)
    assert ended.returncode == 0, ended.stderr
    data = printed(ended.stdout, "measure")
    assert (data["build"], data["argv"]) == ("b10434", None)
    code = data["workloads"]["code"]
    assert (code["requests"], code["tokens"]) == (3, 3 * 59)
    assert code["pass_ms"] == pytest.approx(50.0)
    assert code["baseline_tokens_per_second"] == 40.0
    assert code["speedup_actual"] == pytest.approx(code["tokens_per_second"] / 40)
    assert code["round_cost"] == pytest.approx(2.0)
    assert len(code["survival"]) == 4
    assert ended.stderr.splitlines()[-1] == "code: 3 of 3 requests"


async def test_a_server_that_dies_is_status_1_with_what_was_measured() -> None:
    script = Script(k=4, failure=Failure.CUT, after=50)
    async with ScriptedServer(script) as server:
        ended = await asyncio.to_thread(
            spectui, "measure", server.url, "--runs", "3", "--tokens", "60", "--json"
        )
    assert ended.returncode == 1
    data = printed(ended.stdout, "measure")
    assert data["findings"][0]["code"] == "server-unreachable"
    assert ended.stderr.splitlines()[-1].startswith("spectui: ")
    assert "Traceback" not in ended.stderr


async def test_two_servers_are_compared_in_one_object() -> None:
    async with (
        ScriptedServer(Script(k=0, pass_ms=50.0)) as one,
        ScriptedServer(Script(k=0, pass_ms=40.0)) as other,
    ):
        arguments = ("ab", one.url, other.url, "--runs", "8", "--tokens", "20", "--json")
        ended = await asyncio.to_thread(spectui, *arguments)
    assert ended.returncode == 0, ended.stderr
    data = printed(ended.stdout, "ab")
    assert (data["verdict"], data["pairs"], data["identical_outputs"]) == ("b", 8, True)
    assert data["ratio"] == pytest.approx(1.25)
    assert ended.stderr.splitlines()[-1] == "code: 8 of at most 8 prompts"


async def test_a_comparison_that_a_server_ends_is_status_1() -> None:
    async with (
        ScriptedServer(Script(k=0)) as one,
        ScriptedServer(Script(k=0, failure=Failure.CUT, after=50)) as other,
    ):
        ended = await asyncio.to_thread(spectui, "ab", one.url, other.url, "--tokens", "60", "--json")
    assert ended.returncode == 1
    data = printed(ended.stdout, "ab")
    assert (data["ratio"], data["pairs"]) == (None, 0)
    assert data["b"]["findings"][0]["code"] == "server-unreachable"
    assert ended.stderr.splitlines()[-1].startswith("spectui: ")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "status", "words"),
    [
        (">&-", "predict --alpha 0.7 --c 0.1", 1, "the output cannot be written"),
        (">&-", "profiles path", 1, "the output cannot be written"),
        ("<&-", "attach 127.0.0.1:1", 2, "needs a terminal"),
        ("2>&-", "predict --alpha 0.7 --c 0.1", 0, ""),
        ("2>&-", "history show 999", 2, ""),
        ("2>/dev/full", "history show 999", 2, ""),
    ],
)
def test_closed_streams_are_answered_like_any_other(
    closed: str, arguments: str, status: int, words: str
) -> None:
    command = f'"{sys.executable}" -m spectui {arguments} {closed}'
    ended = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == status
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) <= 1


@pytest.mark.parametrize(
    ("command", "options", "status"),
    [
        ("measure", (), 2),
        ("probe", (), 2),
        ("concurrency", (), 2),
        ("sweep", ("--mode", "ngram-simple"), 2),
        ("export", ("--format", "shell"), 2),
        ("doctor", (), 1),
    ],
)
def test_a_binary_that_takes_long_to_answer_is_named(
    *,
    run: Runner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    options: tuple[str, ...],
    status: int,
) -> None:
    monkeypatch.setattr("spectui.llama.binary.find.PATIENCE", 0.0)
    slow = tmp_path / "slow-server"
    slow.write_text("#!/bin/sh\nsleep 0.3\nexit 1\n")
    slow.chmod(0o755)
    (tmp_path / "own.toml").write_text(
        f'schema_version = 1\n[server]\nbinary = "{slow}"\nmodel = "{slow}"\n'
        '[speculation]\nmode = "ngram-simple"\n'
    )
    ended = run(command, "own.toml", *options)
    assert ended.status == status
    assert ended.err.splitlines()[0] == "asking slow-server for its options"


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "--alpha", "0.5", "--c", "0.1", "--v"),
        ("explain", "--log"),
        ("explain", "--passes"),
        ("check", "llama-server -m t.gguf", "--help-text"),
    ],
)
def test_a_file_that_never_ends_is_refused(run: Runner, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        ended = run(*arguments, path)
        assert ended.status == 2
        assert "not a regular file" in ended.err
        assert len(ended.err.splitlines()) == 1


def test_an_interrupt_while_the_program_is_imported_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "spectui.cli.main", Interrupted("spectui.cli.main"))
    with pytest.raises(SystemExit) as ended:
        program()
    assert ended.value.code == 130


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(200) == COMMANDS[name][1]


def test_neither_help_nor_version_loads_a_command() -> None:
    for option in ("--help", "--version"):
        asked = f"import sys; from spectui.cli.main import cli; cli([{option!r}], standalone_mode=False)"
        script = (
            f"{asked}; print(*sorted(name for name in sys.modules if name.startswith('spectui')), sep='\\n')"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        loaded = done.stdout.partition("\nspectui\n")[2].splitlines()
        assert loaded == ["spectui.cli", "spectui.cli.main", "spectui.cli.output", "spectui.errors"]
