"""A sweep and an A/B run on the real b10434 server, as small as they get: seconds, for every run of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import save
from tests.contract import printed
from tests.harness import pair_profile
from tests.sweep_runs import kept, kept_keys, spectui, swept

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@pytest.fixture
def profile_file(quick_pair: DemoPair, server_binary: Path, tmp_path: Path) -> Path:
    profile = pair_profile(quick_pair.target, quick_pair.drafts[0], server_binary)
    path = tmp_path / "pair.toml"
    save(profile.with_traffic(max_tokens=10, warmup=1), path, Folders.default())
    return path


def asked(*arguments: object) -> dict[str, Any]:
    status, out, err = spectui(*arguments, "--json")
    assert status == 0, err
    data: dict[str, Any] = printed(out, *arguments)
    return data


def test_the_cells_of_a_sweep_are_measured_kept_and_shown_alike_everywhere(profile_file: Path) -> None:
    axes = ("--mode", "draft-simple", "--k", "1,3", "--workload", "code", "--exhaustive")
    data, err = swept(profile_file, *axes, "--runs", 2, "--tokens", 10)
    assert data["finished"]
    cells = {cell["k"]: cell for cell in data["cells"]}
    assert [(k, cell["measured"], cell["failure"]) for k, cell in cells.items()] == [
        (1, True, None),
        (3, True, None),
    ]
    for cell in cells.values():
        assert 0 < cell["low"] < cell["speedup_actual"] < cell["high"]
        assert 1 <= cell["tokens_per_pass"] <= 1 + cell["k"]
    measured = {key.partition(" k=")[2] for key in kept_keys(kept()[0]) if "off" not in key}
    assert measured >= {"1 p_min=0 requests=2", "3 p_min=0 requests=2"}
    assert "could not be probed" not in err
    shown = {run["id"]: run for run in asked("history", "--source", "sweep")["runs"]}
    by_length: dict[int | None, list[int]] = {}
    for number, run in shown.items():
        by_length.setdefault(run["k"], []).append(number)
    baselines = [shown[number]["tokens_per_second"] for number in by_length[None]]
    assert data["baselines"][0]["tokens_per_second"] == pytest.approx(
        baselines[0] if len(baselines) == 1 else (baselines[0] * baselines[1]) ** 0.5
    )
    for k, cell in cells.items():
        # The newest run of a cell is the longest, and the one that counts.
        run = asked("history", "show", max(by_length[k]))
        assert run == shown[run["id"]]
        assert (run["speedup_actual"], run["speedup_low"], run["speedup_high"]) == (
            cell["speedup_actual"],
            cell["low"],
            cell["high"],
        )
        assert run["baseline_tokens_per_second"] == data["baselines"][0]["tokens_per_second"]
        assert run["speedup_predicted"] > 0
    status, out, err = spectui("export", data["sweep"], "--format", "json")
    assert status == 0, err
    assert printed(out, "export")["cells"] == data["cells"]


def test_a_b_runs_both_arms_in_turns(
    profile_file: Path, quick_pair: DemoPair, server_binary: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.toml"
    off = pair_profile(quick_pair.target, None, server_binary).with_traffic(max_tokens=10, warmup=1)
    save(off, plain, Folders.default())
    data = asked("ab", plain, profile_file, "--workload", "code", "--runs", 8)
    one, other = (data[arm]["workloads"]["code"] for arm in ("a", "b"))
    assert one["requests"] == other["requests"] == 8
    assert data["pairs"] + data["workloads"]["code"]["short_answers"] == 8
    assert data["verdict"] in {"a", "b", "neither"}
    assert data["ratio"] > 0
    assert "--spec-type" not in data["a"]["argv"]
    assert "--spec-type" in data["b"]["argv"]
    assert other["baseline_tokens_per_second"] == pytest.approx(one["tokens_per_second"])
    assert other["cost"]["c"] > 0
    kept_arms = asked("history", "--source", "ab")["runs"]
    assert [(run["mode"], run["requests"], run["failure"]) for run in kept_arms] == [
        ("draft-simple", 8, None),
        ("off", 8, None),
    ]
    assert kept_arms[0]["speedup_actual"] == pytest.approx(other["speedup_actual"])
