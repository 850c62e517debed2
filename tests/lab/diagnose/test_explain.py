from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spectui.cli.main import cli, main

LOGS = Path(__file__).parents[2] / "data" / "logs"


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *args])


def explained(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def codes(data: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in data["findings"]]


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *args])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def lines(tmp_path: Path, *text: str) -> str:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(text) + "\n")
    return str(path)


def test_the_contract_s_fields_are_always_there() -> None:
    data = explained("--baseline", "36", "--measured", "30.89", "--k", "8", "--ratio", "0.11")
    assert set(data) == {
        "alpha",
        "alpha_low",
        "alpha_high",
        "acceptance_ratio",
        "tokens_per_pass",
        "drafted_per_pass",
        "round_cost",
        "implied_c",
        "speedup_actual",
        "speedup_textbook",
        "speedup_predicted",
        "predictions",
        "best",
        "findings",
    }
    assert data["round_cost"] == pytest.approx(1.88 / (30.89 / 36))
    assert data["best"]["speedup"] == pytest.approx(1.30, abs=0.01)
    finding = data["findings"][0]
    assert finding["advice"] == "draft length 8 -> 2: predicted 1.30x"
    assert finding["evidence"]["draft_length"] == 8


def test_off_is_a_best_length_of_null_and_unknown_is_null_altogether() -> None:
    off = explained("--baseline", "30", "--measured", "15", "--k", "4", "--ratio", "0.1")
    assert off["best"] == {"k": None, "speedup": 1.0}
    unknown = explained("--k", "4", "--ratio", "0.5")
    assert unknown["best"] == {"k": None, "speedup": None}


def test_c_gives_the_textbook_and_v_the_full_prediction(tmp_path: Path) -> None:
    v = lines(tmp_path, '{"5": 1.5}')
    args = ("--baseline", "30", "--measured", "33", "--k", "4", "--ratio", "0.5", "--c", "0.1")
    assert explained(*args)["speedup_textbook"] == pytest.approx(3 / 1.4)
    assert explained(*args)["speedup_predicted"] is None
    assert explained(*args, "--v", v)["speedup_predicted"] == pytest.approx(3 / (1.5 + 0.5 + 0.1))


def test_a_log_with_traces_is_read_to_the_last_pass() -> None:
    data = explained("--log", str(LOGS / "b10434-draft.log"), "--baseline", "45")
    # The log's own totals: 200 drafted and 70 accepted in its statistics, three requests.
    assert data["acceptance_ratio"] == pytest.approx(70 / 200)
    assert data["drafted_per_pass"] == pytest.approx(200 / 51)
    assert data["alpha_low"] < data["alpha"] < data["alpha_high"]
    assert data["speedup_textbook"] == pytest.approx(0.89, abs=0.01), "c comes from the statistics line"
    assert codes(data)[0] == "run-too-short"


def test_a_log_of_several_servers_is_about_the_last_that_answered(tmp_path: Path) -> None:
    one, last = (LOGS / f"b10434-{name}.log" for name in ("draft-loaded-but-off", "draft"))
    started = [line for line in last.read_text().splitlines() if "build" in line][:1]
    several = lines(tmp_path, *one.read_text().splitlines(), *last.read_text().splitlines(), *started)
    alone = ("--log", str(last), "--baseline", "45")
    assert explained("--log", several, "--baseline", "45") == explained(*alone)
    said = CliRunner().invoke(cli, ["explain", "--log", several]).stderr
    assert said.startswith("3 servers wrote this log")


def test_a_log_with_p_min_and_one_of_a_lookup_predict_no_longer_drafts() -> None:
    for name in ("b10434-draft-pmin", "b10434-ngram"):
        data = explained("--log", str(LOGS / f"{name}.log"), "--baseline", "60")
        assert data["speedup_textbook"] is None
        assert max(p["k"] for p in data["predictions"]) == 8


def test_a_draft_that_is_loaded_and_idle_is_said_with_or_without_the_server_s_word(tmp_path: Path) -> None:
    whole = (LOGS / "b10434-draft-loaded-but-off.log").read_text()
    quiet = [line for line in whole.splitlines() if "no implementations" not in line]
    for path in (str(LOGS / "b10434-draft-loaded-but-off.log"), lines(tmp_path, *quiet)):
        finding = explained("--log", path)["findings"][0]
        assert finding["code"] == "speculation-off"
        assert "--spec-type draft-simple" in finding["message"]


def test_a_plain_server_s_log_is_no_failure(tmp_path: Path) -> None:
    log = lines(
        tmp_path,
        "0.00.423.933 I spec common_specu: no implementations specified for speculative decoding",
        "0.03.228.849 I slot print_timing: id  0 | task 65 |        eval time =     697.45 ms /    28 tokens",
    )
    assert explained("--log", log)["findings"] == []


def test_an_old_log_counts_generated_tokens_and_gives_no_alpha_where_p_min_is_unknown() -> None:
    data = explained("--log", str(LOGS / "b6xxx-draft-max.log"), "--k", "4")
    assert data["tokens_per_pass"] == pytest.approx(134 / 78)
    assert data["alpha"] is None
    assert codes(data)[0] == "baseline-missing"


def test_the_two_pass_era_is_known_by_its_build(tmp_path: Path) -> None:
    log = lines(
        tmp_path,
        "build: 5142 (80f19b41) with cc for x86_64-linux-gnu",
        "draft acceptance rate = 0.96855 (  154 accepted /   159 generated)",
    )
    data = explained("--log", log, "--predicted", "261", "--k", "3")
    assert data["tokens_per_pass"] == pytest.approx(260 / 106)
    assert data["alpha"] == pytest.approx(0.984, abs=0.002)


def test_repeated_prompts_show_in_the_log(tmp_path: Path) -> None:
    request = (
        "slot print_timing: prompt eval time = 10.0 ms / 40 tokens",
        "slot print_timing: eval time = 1000.0 ms / 100 tokens",
        "slot print_timing: draft acceptance = 0.60000 (   60 accepted /   100 generated)",
    )
    assert "prompts-repeated" in codes(explained("--log", lines(tmp_path, *request * 5)))


def test_other_lengths_than_expected_show_the_changed_default(tmp_path: Path) -> None:
    log = lines(
        tmp_path,
        "spec common_specu: adding speculative implementation 'draft-simple'",
        "spec common_specu: - n_max=3, n_min=0, p_min=0.000000",
        "draft acceptance = 0.50000 (   30 accepted /    60 generated)",
    )
    assert "default-changed" in codes(explained("--log", log, "--k", "16"))
    assert "default-changed" not in codes(explained("--log", log))


def test_passes_are_read_with_their_times(tmp_path: Path) -> None:
    one = [
        json.dumps({"drafted": 4, "accepted": a, "committed": a + 1, "ms": 50.0}) for a in (0, 1, 4, 2)
    ] * 60
    path = lines(tmp_path, *one, json.dumps({"drafted": 4, "accepted": 4, "committed": 2, "ms": 50.0}))
    data = explained("--passes", path, "--baseline", "40")
    assert data["tokens_per_pass"] == pytest.approx((60 * 11 + 2) / 241)
    assert data["speedup_actual"] == pytest.approx((60 * 11 + 2) / (241 * 0.05) / 40)
    assert data["alpha"] == pytest.approx((60 * 7 + 4) / (60 * 7 + 4 + 180))
    assert data["predictions"][0]["low"] < data["predictions"][0]["speedup"]
    assert codes(data)[0] == "winning"


def test_passes_without_times_or_committed_tokens_still_give_acceptance(tmp_path: Path) -> None:
    path = lines(tmp_path, *['{"drafted": 2, "accepted": 1}'] * 30, "")
    data = explained("--passes", path)
    assert data["tokens_per_pass"] == 2
    assert data["speedup_actual"] is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "line 1 is not JSON"),
        ("[1]", "line 1 is no object"),
        ('{"drafted": 1, "accepted": 2}', "accepted 2 is more than drafted 1"),
        ('{"drafted": 1.5, "accepted": 1}', "drafted must be a whole number"),
        ('{"drafted": 2, "accepted": 1, "committed": 5}', "committed 5 is more"),
        ('{"drafted": 2, "accepted": 1, "committed": 2, "ms": NaN}', "ms must be"),
        ("", "holds no passes"),
    ],
)
def test_a_bad_line_of_passes_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, said: str
) -> None:
    assert said in refused(capsys, "--passes", lines(tmp_path, line))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "explain needs numbers"),
        (("--ratio", "nan"), "no finite number"),
        (("--ratio", "1.2"), "not in the range"),
        (("--baseline", "0", "--measured", "1"), "not in the range"),
        (("--drafted", "5"), "--accepted is missing"),
        (("--drafted", "5", "--accepted", "6"), "check which is which"),
        (("--drafted", "50", "--accepted", "40", "--predicted", "41"), "leaves no token"),
        (("--log", "/nowhere/server.log"), "cannot be read"),
        (("--log", "a", "--passes", "b"), "not both"),
        (("--k", "4", "--ratio", "0.5", "--v", "/nowhere/v.json"), "cannot be read"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], said: str) -> None:
    assert said in refused(capsys, *args)


def test_a_file_that_is_no_log_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "says nothing about speculation" in refused(capsys, "--log", lines(tmp_path, "hello"))


def test_the_table_says_the_verdict_first() -> None:
    result = run("--baseline", "36", "--measured", "30.89", "--k", "8", "--ratio", "0.11")
    assert result.output.startswith("draft-too-long: 8 drafted tokens buy 0.88; draft length 8 -> 2")
    assert result.output.rstrip().endswith("best: draft length 2, 1.30x")
