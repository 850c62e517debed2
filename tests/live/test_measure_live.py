"""`spectui measure` and `spectui probe` as a user runs them, on the real b10434 server."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectui.lab.demo import DemoPair
from spectui.store.baselines import FileIdentity
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.results import ResultStore
from tests.contract import printed
from tests.harness import pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@pytest.fixture
def profile_file(quick_pair: DemoPair, server_binary: Path, tmp_path: Path) -> Path:
    profile = pair_profile(quick_pair.target, quick_pair.drafts[0], server_binary)
    path = tmp_path / "pair.toml"
    save(profile.with_traffic(max_tokens=16, warmup=1), path, Folders.default())
    return path


def spectui(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spectui", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def answered(*arguments: object) -> tuple[int, dict[str, Any], str]:
    process = spectui(*arguments, "--json")
    out, err = process.communicate(timeout=200)
    return process.returncode, printed(out, *arguments), err


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until it is true; processes of others give no event to wait for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
    pytest.fail("never came")


def gone(process: psutil.Process) -> bool:
    """Whether it has ended; a dead process without a parent that collects it still has an entry."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def server_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.Error):
            if "--port" in child.cmdline():
                return child
    return None


def test_a_measurement_has_every_number_of_the_contract(profile_file: Path) -> None:
    status, data, _ = answered("measure", profile_file, "--workload", "code,json", "--runs", 2, "--baseline")
    assert status == 0
    assert set(data) == {"build", "argv", "workloads", "findings"}
    assert "--spec-type" in data["argv"]
    assert set(data["workloads"]) == {"code", "json"}
    for found in data["workloads"].values():
        assert found["passes"] > 0
        assert found["drafted"] >= found["accepted"] >= 0
        assert found["alpha_low"] <= found["alpha"] <= found["alpha_high"]
        assert found["acceptance_ratio"] == pytest.approx(found["accepted"] / found["drafted"])
        assert found["tokens_per_pass"] == pytest.approx(found["tokens"] / found["passes"])
        assert found["survival"] == sorted(found["survival"], reverse=True)
        actual = found["tokens_per_second"] / found["baseline_tokens_per_second"]
        assert found["speedup_actual"] == pytest.approx(actual)
        assert found["speedup_textbook"] == pytest.approx(
            found["tokens_per_pass"] / (1 + 4 * found["cost"]["c"])
        )
        assert found["speedup_predicted"] > 0
        assert found["cost"]["v"]["1"] == 1.0
        parts = found["loss"]
        spent = sum(parts[k] for k in ("target", "drafting", "verification", "overhead", "unexplained"))
        assert spent == pytest.approx(found["round_cost"])
    assert {f["evidence"]["workload"] for f in data["findings"]} <= {"code", "json"}


def test_a_server_killed_on_the_way_leaves_what_was_measured(profile_file: Path) -> None:
    process = spectui("measure", profile_file, "--workload", "code", "--runs", 500, "--json")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("code: 2 of"):
            break
    server = server_of(process)
    assert server is not None
    server.kill()
    out, err = process.communicate(timeout=60)
    data = printed(out, "measure")
    assert process.returncode == 1
    assert data["workloads"]["code"]["requests"] >= 2
    assert data["findings"][0]["code"] == "server-crashed"
    assert "SIGKILL" in err.strip().splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_too(profile_file: Path, number: signal.Signals) -> None:
    process = spectui("measure", profile_file, "--workload", "code", "--runs", 500)
    server = until(lambda: server_of(process))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not server.is_running()
    assert "Traceback" not in err


def test_a_killed_spectui_leaves_no_server(profile_file: Path) -> None:
    process = spectui("measure", profile_file, "--workload", "code", "--runs", 500)
    server = until(lambda: server_of(process))
    process.kill()
    process.communicate(timeout=60)
    until(lambda: gone(server))


def test_a_killed_spectui_keeps_the_requests_that_ended(
    profile_file: Path, quick_pair: DemoPair, server_binary: Path
) -> None:
    process = spectui("measure", profile_file, "--workload", "code", "--runs", 500)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("code: 4 of"):
            break
    process.kill()
    process.communicate(timeout=60)
    (run,) = ResultStore.default(Folders.default()).runs()
    assert run.ended_at is None
    assert run.summary.requests >= 3
    assert run.summary.tokens_per_second is not None
    assert run.summary.alpha is not None
    conditions = run.conditions
    assert conditions.binary == FileIdentity.of(server_binary)
    assert conditions.model == FileIdentity.of(quick_pair.target)
    assert conditions.draft == FileIdentity.of(quick_pair.drafts[0])
    assert conditions.build
    assert "--spec-type" in conditions.argv
    assert conditions.machine is not None
    assert conditions.machine.name == platform.node()


def test_the_probe_prints_v(profile_file: Path) -> None:
    status, data, _ = answered("probe", profile_file, "--n", "1,2,4")
    assert status == 0
    assert set(data) == {"t1_ms", "v"}
    assert set(data["v"]) == {"1", "2", "4"}
    assert data["v"]["1"] == 1.0
    assert data["t1_ms"] > 0


def test_a_killed_spectui_leaves_no_server_behind_a_wrapper(
    quick_pair: DemoPair, server_binary: Path, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapped-llama-server"
    wrapper.write_text(f'#!/bin/sh\n"{server_binary}" "$@"\nexit $?\n')
    wrapper.chmod(0o755)
    profile = pair_profile(quick_pair.target, quick_pair.drafts[0], wrapper)
    path = tmp_path / "wrapped.toml"
    save(profile, path, Folders.default())
    process = spectui("measure", path, "--runs", 500)
    outer = until(lambda: server_of(process))
    inner = until(outer.children)[0]
    process.kill()
    process.communicate(timeout=60)
    until(lambda: gone(inner))


def test_results_survive_a_terminal_that_is_gone(profile_file: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "spectui",
        "measure",
        str(profile_file),
        "--workload",
        "code",
        "--runs",
        "1",
        "--json",
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=full, text=True, check=False, timeout=120
        )
    assert printed(done.stdout, "measure")["workloads"]["code"]["requests"] == 1
    assert done.returncode == 0


def test_the_bet_by_requests_at_once(profile_file: Path) -> None:
    status, data, err = answered(
        "concurrency", profile_file, "--levels", "2,1", "--workload", "json", "--runs", 2
    )
    assert status == 0
    assert [row["concurrency"] for row in data["rows"]] == [1, 2]
    for row in data["rows"]:
        assert row["low"] < row["speedup_actual"] < row["high"]
        assert row["speedup_predicted"] > 0
        assert row["tokens_per_pass"] > 1
    assert 1 < data["rows"][1]["streams"] <= 2
    assert data["message"]
    assert "-np 2" in err or "--parallel 2" in err
