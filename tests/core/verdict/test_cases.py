"""Public reports as checks: each entry of data/cases/case_checks.json, run through the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spectui.cli.main import cli

DATA = Path(__file__).parents[2] / "data"
CASES: list[dict[str, Any]] = json.loads((DATA / "cases" / "case_checks.json").read_text("utf-8"))
SAMPLES = {
    "samples/b10434-draft-loaded-but-off/server.log": DATA / "logs" / "b10434-draft-loaded-but-off.log",
    "samples/help/b10434.txt": DATA / "help" / "b10434.txt",
}
OK_OR_UNHEALTHY = {"explain": {0}, "predict": {0}, "check": {0, 1}}


def arguments(case: dict[str, Any], folder: Path) -> list[str]:
    command, *rest = shlex.split(case["run"])
    if command == "check":
        return ["check", case["command"], "--help-text", str(SAMPLES[case["help"]])]
    if "v" in case:
        v = folder / "v.json"
        v.write_text(json.dumps(case["v"]))
        rest[rest.index("FILE")] = str(v)
    if "--log" in rest:
        log = SAMPLES.get(case.get("file", ""), folder / "server.log")
        if "lines" in case:
            log.write_text("\n".join(case["lines"]) + "\n")
        rest.insert(rest.index("--log") + 1, str(log))
    return [command, *rest, *shlex.split(case.get("args", ""))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    argv = arguments(case, tmp_path)
    result = CliRunner().invoke(cli, [*argv, "--json"], env=case.get("env", {}))
    assert result.exit_code in OK_OR_UNHEALTHY[argv[0]], result.output
    data = json.loads(result.stdout)
    codes = [finding["code"] for finding in data.get("findings", ())]
    if "first" in case:
        assert codes[0] in case["first"]
    if "codes" in case:
        assert set(case["codes"]) <= set(codes)
        assert case["codes"] or not codes
    for name, (value, tolerance) in case.get("near", {}).items():
        assert data[name] == pytest.approx(value, abs=tolerance), name
    if "best_k_between" in case:
        low, high = case["best_k_between"]
        assert low <= data["best"]["k"] <= high
    for name in case.get("null", ()):
        assert data[name] is None, name
    if "all_speedups_below" in case:
        assert all(row["speedup"] < case["all_speedups_below"] for row in data["rows"])
    if argv[0] == "check":
        assert data["ok"] is (result.exit_code == 0) is (not codes)
