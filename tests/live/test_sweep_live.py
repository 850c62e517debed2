"""`spectui sweep` and `spectui export` as a user runs them, on the real b10434 server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from random import Random

import httpx
import pytest

from spectui.lab.demo import DemoPair
from spectui.lab.servers.launcher import HOST
from spectui.llama.http.client import LlamaClient
from spectui.llama.process.process import ServerProcess
from spectui.llama.process.ready import free_port, wait_ready
from spectui.store.paths import Folders
from spectui.store.profiles import save
from tests.harness import pair_profile
from tests.sweep_runs import SMALL, command, kept, kept_keys, killed_and_resumed, saved_pair, spectui, swept

# Minutes of traffic on real servers.
pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(300)]

CELL = {"workload", "mode", "k", "p_min", "tokens_per_second", "speedup_actual", "speedup_predicted"}
CELL |= {"low", "high", "measured"}


@pytest.fixture
def profile_file(demo_pair: DemoPair, server_binary: Path, tmp_path: Path) -> Path:
    return saved_pair(demo_pair, server_binary, tmp_path / "pair.toml")


def test_an_adaptive_sweep_predicts_what_it_does_not_measure(profile_file: Path) -> None:
    data, err = swept(profile_file, *SMALL[:-4], "--runs", 3, "--tokens", 16)
    cells = {cell["k"]: cell for cell in data["cells"]}
    assert list(cells) == [1, 2, 4]
    assert set(cells[4]) >= CELL
    assert cells[4]["measured"]
    assert cells[4]["speedup_actual"] > 0
    assert cells[4]["tokens_per_second"] > 0
    for cell in cells.values():
        assert cell["speedup_predicted"] is not None
        if not cell["measured"]:
            assert cell["speedup_actual"] is None
            assert cell["low"] < cell["speedup_predicted"] < cell["high"]
    assert set(data["recommendation"]) == {"code"}
    assert {"mode", "k", "p_min", "speedup", "low", "high"} <= set(data["recommendation"]["code"])
    measured = [key for key in kept_keys(kept()[0]) if "off" not in key]
    assert len(measured) >= sum(cell["measured"] for cell in cells.values())
    assert err.count("\nstarting ") == 1 + len(measured)
    assert data["server_seconds"] > 0
    assert "of at most 3 cells" in err
    assert kept()[0].state == "done"


def test_lookups_are_predicted_from_the_plain_run(profile_file: Path) -> None:
    axes = ("--lookup", "2,4", "--length", "8,16", "--workload", "rewrite")
    data, err = swept(profile_file, "--mode", "ngram-simple", *axes, "--runs", 4, "--tokens", 24)
    cells = data["cells"]
    assert len(cells) == 4
    assert all(cell["speedup_predicted"] is not None for cell in cells)
    measured = [cell for cell in cells if cell["measured"]]
    assert measured
    # A whole run each: a short one would tell less than the prediction.
    assert {cell["requests"] for cell in measured} == {4}
    assert "cannot be predicted" not in err
    assert data["recommendation"]["rewrite"]["speedup"] > 1


def test_killed_again_and_again_it_keeps_every_finished_cell(profile_file: Path) -> None:
    assert killed_and_resumed(3, Random(), [profile_file, *SMALL]) == []


def test_an_interrupted_sweep_says_130_and_is_resumed_by_its_number(profile_file: Path) -> None:
    process = subprocess.Popen(
        command("sweep", profile_file, *SMALL), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("code, off"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    stopped = kept()[0]
    assert stopped.state == "stopped"
    assert kept_keys(stopped) == ["code T=0 off requests=2"]
    data, err = swept("--resume", stopped.id)
    assert f"resuming sweep {stopped.id}: 1 cell known" in err
    assert data["sweep"] == stopped.id
    assert kept_keys(kept()[0]).count("code T=0 off requests=2") == 1


def test_a_budget_ends_it_in_order(profile_file: Path) -> None:
    data, err = swept(profile_file, *SMALL, "--budget", "1s")
    assert not data["finished"]
    assert data["recommendation"]["code"] is None or data["recommendation"]["code"]["mode"] == "off"
    assert "the budget is used up" in err
    assert kept()[0].state == "stopped"


def test_bad_input_is_one_line_and_keeps_nothing(profile_file: Path, mismatched_draft: Path) -> None:
    for arguments, expected in (
        ((profile_file, "--draft", mismatched_draft), "has another tokenizer than the target"),
        ((profile_file, "--mode", "draft-none"), "offers no mode draft-none"),
        ((profile_file, "--draft", "/nowhere/d.gguf"), "/nowhere/d.gguf does not exist"),
        (("http://127.0.0.1:1",), "a sweep restarts its server"),
        (("--resume", "99"), "no sweep has the number 99"),
        (("--resume", "1", "--k", "2"), "leave the other options out"),
        ((), "give a profile"),
    ):
        status, out, err = spectui("sweep", *arguments)
        assert (status, out) == (2, "")
        assert expected in err
        assert err.count("\n") == 1
    assert kept() == ()


async def test_the_router_loads_the_preset_and_speculates_as_recommended(
    demo_pair: DemoPair, server_binary: Path, tmp_path: Path
) -> None:
    odd = tmp_path / 'it\'s "my" é models'
    odd.mkdir()
    target, draft = odd / "target.gguf", odd / "draft.gguf"
    target.symlink_to(demo_pair.target)
    draft.symlink_to(demo_pair.drafts[0])
    source = tmp_path / "pair.toml"
    save(pair_profile(target, draft, server_binary), source, Folders.default())
    file = tmp_path / "models.ini"
    assert spectui("export", source, "--format", "preset", file) == (0, "", "")
    port, loaded = free_port(HOST), asyncio.Event()

    def line(text: str) -> None:
        if "cmd_child_to_router" in text and '"ready"' in text:
            loaded.set()

    process = await ServerProcess.start(
        (str(server_binary), "--models-preset", str(file), "--host", HOST, "--port", str(port)),
        {**os.environ, "LLAMA_CACHE": str(tmp_path / "cache")},
        on_line=line,
    )
    try:
        async with LlamaClient(f"http://{HOST}:{port}") as router:
            await wait_ready(router, process, timeout=60)
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=60) as client:
            answer = await client.post("/models/load", json={"model": "prose"})
            assert answer.json() == {"success": True}
            await asyncio.wait_for(loaded.wait(), 120)
            models = (await client.get("/models")).json()["data"]
            arguments = next(m["status"]["args"] for m in models if m["id"] == "prose")
            assert arguments[arguments.index("--model") + 1] == str(target)
            assert arguments[arguments.index("--spec-draft-n-max") + 1] == "4"
            slots = (await client.get("/slots", params={"model": "prose"})).json()
            assert slots
            assert all(slot["speculative"] for slot in slots)
    finally:
        await process.stop()


@pytest.mark.parametrize("kind", ["shell", "llama-swap"])
def test_a_profile_is_exported_as_it_is(kind: str, profile_file: Path, demo_pair: DemoPair) -> None:
    status, out, _ = spectui("export", profile_file, "--format", kind)
    assert status == 0
    assert "--spec-draft-n-max 4" in out
    assert str(demo_pair.target) in out
    assert "-lv" not in out
