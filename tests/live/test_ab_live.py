"""`spectui ab` on the real b10434 server: both loaded, in turns, and interrupted."""

from __future__ import annotations

import os
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

from spectui.core.views.snapshot import MachineView
from spectui.lab.demo import DemoPair
from spectui.lab.experiments.ab import AbOrder, AbRun
from spectui.lab.reports.ab import ab_to_json
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.machine import MachineMonitor
from spectui.store.paths import Folders
from spectui.store.profiles import save
from tests.contract import printed
from tests.harness import pair_profile

# Minutes of traffic on real servers.
pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(300)]


class Full(MachineMonitor):
    """A machine whose memory is used up."""

    async def sample(self) -> MachineView:
        return MachineView(memory_used_gib=16.0, memory_total_gib=16.0)


@pytest.fixture
def profile_files(demo_pair: DemoPair, server_binary: Path, tmp_path: Path) -> tuple[Path, Path]:
    plain = pair_profile(demo_pair.target, None, server_binary).with_traffic(max_tokens=16, warmup=1)
    long = pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary, draft_length=16)
    files = tmp_path / "plain.toml", tmp_path / "long.toml"
    save(plain, files[0], Folders.default())
    save(long, files[1], Folders.default())
    return files


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spectui", "ab", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def servers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if "--port" in child.cmdline():
                found.append(child)
    return found


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until it is true; processes of others give no event to wait for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
    pytest.fail("never came")


def test_drafts_that_cost_far_more_than_they_bring_lose(profile_files: tuple[Path, Path]) -> None:
    process = started(*profile_files, "--workload", "code", "--runs", 12, "--json")
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    data = printed(out, "ab")
    assert data["verdict"] == "a"
    assert data["pairs"] in range(8, 13)
    assert data["low"] < data["ratio"] < data["high"] < 1
    assert data["identical_outputs"] in {True, False}
    assert "--spec-type" not in data["a"]["argv"]
    assert "--spec-type" in data["b"]["argv"]
    one, other = (data[arm]["workloads"]["code"] for arm in ("a", "b"))
    assert one["requests"] == other["requests"] == data["pairs"]
    assert other["baseline_tokens_per_second"] == pytest.approx(one["tokens_per_second"])
    assert other["cost"]["c"] > 0
    assert err.splitlines()[-1] == f"code: {data['pairs']} of at most 12 prompts"
    assert sum(line.startswith("starting ") for line in err.splitlines()) == 2


async def test_without_memory_for_both_they_take_turns(demo_pair: DemoPair, server_binary: Path) -> None:
    said: list[str] = []
    plain = pair_profile(demo_pair.target, None, server_binary).with_traffic(max_tokens=12, warmup=0)
    draft = pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary)
    draft = draft.with_traffic(max_tokens=12, warmup=0)
    run = AbRun(plain, draft, launcher=Launcher(), progress=said.append, machine=Full())
    result = await run.run(AbOrder(workloads=("json",), pairs=8))
    data = ab_to_json(result)
    assert data["pairs"] + data["workloads"]["json"]["short_answers"] == 8
    assert said[0].startswith("the servers take turns, each block starts both: they take about")
    starts = ["--spec-type" in line for line in said if line.startswith("starting ")]
    assert starts == [False, True, True, False]
    assert data["b"]["workloads"]["json"]["cost"]["c"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both_servers(profile_files: tuple[Path, Path], number: signal.Signals) -> None:
    process = started(*profile_files, "--workload", "code", "--runs", 500)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("code: 2 of"):
            break
    servers = servers_of(process)
    assert len(servers) == 2
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    until(lambda: not any(s.is_running() and s.status() != psutil.STATUS_ZOMBIE for s in servers))
