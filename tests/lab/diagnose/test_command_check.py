from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spectui.cli.main import cli, main
from spectui.llama.binary.capabilities import Version, parse_help
from spectui.llama.binary.command_check import Checked, check_command
from spectui.llama.binary.pasted_command import split_command

HELP = Path(__file__).parents[2] / "data" / "help"
NEW, OLD = HELP / "b10434.txt", HELP / "b6xxx.txt"


def checked(command: str, saved: Path = NEW, **env: str) -> dict[str, Any]:
    argv = ["check", command, "--help-text", str(saved), "--json"]
    result = CliRunner().invoke(cli, argv, env=env)
    data: dict[str, Any] = json.loads(result.stdout)
    assert data["ok"] is (result.exit_code == 0)
    assert data["ok"] is not bool(data["findings"])
    return data


def codes(data: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in data["findings"]]


@pytest.mark.parametrize(
    ("command", "expected", "corrected"),
    [
        (
            "llama-server -m t -md d --draft-max 16 --draft-min 1",
            ["flag-removed", "flag-removed", "draft-type-missing"],
            "llama-server -m t -md d --spec-draft-n-max 16 --spec-draft-n-min 1 --spec-type draft-simple",
        ),
        (
            "llama-server -m t --draft-model d --spec-type draft",
            ["flag-unknown", "type-renamed"],
            "llama-server -m t --spec-draft-model d --spec-type draft-simple",
        ),
        (
            "llama-server -m t -md d --spec-type draft-simple -cd 1024 -c 8192",
            ["flag-unknown"],
            "llama-server -m t -md d --spec-type draft-simple -c 8192",
        ),
        (
            "llama-server -m t -md d --spec-type draft-simple --spec-draft-n-max 0 --port 80",
            ["n-max-zero"],
            "llama-server -m t --port 80",
        ),
        (
            "llama-server -m t -md d --spec-type draft-simple --spec-draft-n-min 5",
            ["n-min-above-n-max"],
            "llama-server -m t -md d --spec-type draft-simple --spec-draft-n-min 0",
        ),
        (
            "llama-server -m t --spec-type ngram-mod --draft-max 16",
            ["flag-removed", "n-min-above-n-max"],
            "llama-server -m t --spec-type ngram-mod --spec-ngram-mod-n-max 16 --spec-ngram-mod-n-min 0",
        ),
        (
            "llama-server -m t --spec-ngram-size-n 8 --spec-type ngram_simple",
            ["flag-removed", "type-renamed"],
            "llama-server -m t --spec-ngram-simple-size-n 8 --spec-type ngram-simple",
        ),
        (
            "llama-server -m t --port=80",
            ["flag-unknown"],
            "llama-server -m t --port 80",
        ),
        ("./llama-server -m t --spec-type draft-simple", ["draft-model-missing"], None),
        ("llama-server -m t --frobnicate 3", ["flag-unknown"], None),
        ("llama-server -m t stray", ["flag-unknown"], None),
        ("llama-server -m t -ngl many", ["flag-value"], None),
        ("llama-server -m t -ctk q9", ["flag-value"], None),
        ("llama-server -m t -c", ["flag-value"], None),
        ("llama-server -m t --port http", ["flag-value"], None),
        ("llama-server -m t --port 65536", ["flag-value"], None),
        ("llama-server -m t --port -1", ["flag-value"], None),
        ("llama-server -m t --port 65535 -np 1", [], "="),
        ("llama-server -m t --port 8080x", ["flag-value"], None),
        ("llama-server -m t -np 0", ["flag-value"], None),
        ("llama-server -m t --parallel -2", ["flag-value"], None),
        ("llama-server -m t --parallel -1", [], "="),
        ("llama-server -m t -np 2.5", ["flag-value"], None),
        ("llama-server -m t -md d --spec-type magic", ["flag-value"], None),
        ("llama-server -m t --spec-type none,draft-mtp -ngl all -fa 1 --temp 0.7", [], "="),
        ("llama-server -hf org/repo:Q4 -md d --spec-type none", [], "="),
    ],
)
def test_findings_and_the_corrected_line(command: str, expected: list[str], corrected: str | None) -> None:
    data = checked(command)
    assert codes(data) == expected
    if corrected is None:
        assert data["argv"] is None
    else:
        assert data["argv"] == shlex.split(command if corrected == "=" else corrected)
        assert checked(shlex.join(data["argv"]))["ok"], "a corrected line passes its own check"


def test_a_new_line_is_put_right_for_an_old_binary() -> None:
    data = checked("llama-server -m t -md d --spec-type draft-simple --spec-draft-n-max 4", OLD)
    assert codes(data) == ["flag-unknown", "flag-unknown"]
    assert data["argv"] == shlex.split("llama-server -m t -md d --draft-max 4")


def test_a_number_of_slots_that_the_help_does_not_name_is_said() -> None:
    (finding,) = checked("llama-server -m t -np -1", OLD)["findings"]
    assert finding["message"] == "-np takes a whole number from 1 to 2147483647, not -1"


def test_the_nearest_flag_is_named() -> None:
    (finding,) = checked("llama-server -m t --contxt-size 4096")["findings"]
    assert "--ctx-size" in finding["advice"]
    assert finding["evidence"] == {"flag": "--contxt-size", "nearest": "--ctx-size"}


def test_stale_variables_are_found_in_the_environment_and_in_the_command() -> None:
    command = "LLAMA_ARG_DRAFT_MAX=8 OMP_NUM_THREADS=2 llama-server -m t -md d --spec-type draft-simple"
    data = checked(command, LLAMA_ARG_DRAFT_P_MIN="0.75")
    assert codes(data) == ["env-stale", "env-stale"]
    assert "stops this binary" in data["findings"][0]["message"]
    assert "ignored" in data["findings"][1]["message"]
    assert data["argv"] == shlex.split(
        "env OMP_NUM_THREADS=2 llama-server -m t -md d --spec-type draft-simple "
        "--spec-draft-n-max 8 --spec-draft-p-min 0.75"
    )


def test_a_fatal_variable_of_the_environment_is_unset_in_the_corrected_line() -> None:
    data = checked("llama-server -m t", LLAMA_ARG_DRAFT_MIN="1")
    assert data["argv"][:4] == ["env", "-u", "LLAMA_ARG_DRAFT_MIN", "llama-server"]


def test_variables_that_the_binary_obeys_count_as_options() -> None:
    known: dict[str, Any] = {
        "LLAMA_ARG_SPEC_DRAFT_MODEL": "d",
        "LLAMA_ARG_CTX_SIZE": "4096",
        "LLAMA_ARG_NO_JINJA": "1",
    }
    assert codes(checked("llama-server -m t", **known)) == ["draft-type-missing"]
    assert checked("llama-server -m t", **known, LLAMA_ARG_SPEC_TYPE="draft-simple")["ok"]
    renamed = checked("llama-server -m t", **known, LLAMA_ARG_SPEC_TYPE="draft")
    assert codes(renamed) == ["type-renamed"]
    assert renamed["argv"][-2:] == ["--spec-type", "draft-simple"]


def with_build(command: str, build: int) -> Checked:
    caps = parse_help(NEW.read_text(), Version(build=build))
    return check_command(split_command(command), caps, {})


def test_a_known_bad_build_is_named_with_a_good_one() -> None:
    (finding,) = with_build("llama-server -m t --spec-type draft-mtp", 10742).findings
    assert finding.code == "known-bad-build"
    assert "b10749" in finding.advice
    assert with_build("llama-server -m t --spec-type draft-mtp", 10749).findings == ()
    assert with_build("llama-server -m t --spec-type ngram-simple", 10742).findings == ()


def test_builds_that_still_speculate_with_a_draft_alone_need_no_type() -> None:
    assert with_build("llama-server -m t -md d", 9300).findings == ()
    assert with_build("llama-server -m t -md d", 9464).findings[0].code == "draft-type-missing"
    assert with_build("llama-server -m t -md d", 1).findings[0].code == "draft-type-missing"


def test_control_characters_of_a_pasted_line_do_not_reach_the_terminal() -> None:
    data = checked("llama-server -m t $'--x' \x1b[31m--evil")
    assert "\x1b" not in json.dumps(data["findings"], ensure_ascii=False)


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nothing = tmp_path / "help.txt"
    nothing.write_text("nothing")
    for argv, said in (
        (["cat file"], "is no llama-server command"),
        (["llama-server 'open"], "check its quotes"),
        ([""], "is empty"),
        (["llama-server", "--help-text", "/nowhere"], "cannot be read"),
        (["llama-server", "--help-text", str(nothing)], "is no help text"),
        (["llama-server", "--server", "/nowhere/llama-server"], "there is no such llama-server"),
        (["llama-server", "--server", "a", "--help-text", "b"], "not both"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["check", *argv])
        assert ended.value.code == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1


def test_the_table_ends_with_the_corrected_line() -> None:
    result = CliRunner().invoke(
        cli, ["check", "llama-server -m 't 1' --draft-max 4", "--help-text", str(NEW)]
    )
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "corrected: llama-server -m 't 1' --spec-draft-n-max 4"


@pytest.mark.live
def test_model_files_are_looked_at_for_a_named_server(server_binary: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.gguf"
    target.touch()
    command = f"llama-server -m {target} -md {tmp_path}/d.gguf --spec-type draft-simple"
    result = CliRunner().invoke(cli, ["check", command, "--server", str(server_binary), "--json"])
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert codes(data) == ["draft-model-missing"]
    assert data["argv"] is None
    target_only = CliRunner().invoke(
        cli, ["check", f"llama-server -m {target}", "--server", str(server_binary), "--json"]
    )
    assert json.loads(target_only.stdout)["argv"][0] == str(server_binary)
