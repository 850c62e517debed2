"""`spectui doctor` as a user runs it, on profiles of the small pair and on real b10434 servers."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectui.core.profile import TuningProfile
from spectui.lab.demo import DemoPair
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.llama.http.client import CompletionRequest
from spectui.store.paths import Folders
from spectui.store.profiles import save
from tests.contract import printed
from tests.harness import launched, pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@pytest.fixture
def pair(quick_pair: DemoPair, server_binary: Path) -> TuningProfile:
    return pair_profile(quick_pair.target, quick_pair.drafts[0], server_binary)


async def doctor(target: object, **env: str) -> tuple[int, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "spectui", "doctor", str(target), "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ) | env,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    assert err == b""
    data = printed(out, "doctor")
    assert data["ok"] is (process.returncode == 0)
    return process.returncode, data


def codes(data: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in data["findings"]]


def saved(profile: TuningProfile, folder: Path) -> Path:
    path = folder / "pair.toml"
    save(profile, path, Folders.default())
    return path


@asynccontextmanager
async def running(profile: TuningProfile, *changed: tuple[str, str]) -> AsyncIterator[str]:
    """Address of a server whose command line lacks the given flags with their values."""
    plan = await Launcher().plan(profile)
    argv = list(plan.argv)
    for flag, value in changed:
        at = argv.index(flag)
        assert argv[at : at + 2] == [flag, value]
        del argv[at : at + 2]
    server = LaunchedServer(replace(plan, argv=tuple(argv)))
    await server.start()
    try:
        yield server.client.base_url
    finally:
        await server.stop()


async def test_a_healthy_profile(pair: TuningProfile, tmp_path: Path) -> None:
    status, data = await doctor(saved(pair, tmp_path))
    assert (status, data["findings"]) == (0, [])
    assert data["server"]["model"] == Path(pair.server.model or "").stem
    assert data["server"]["draft_length"] == 4


async def test_a_draft_with_another_tokenizer(
    pair: TuningProfile, mismatched_draft: Path, tmp_path: Path
) -> None:
    profile = pair.with_speculation(draft_model=str(mismatched_draft))
    status, data = await doctor(saved(profile, tmp_path))
    assert status == 1
    assert codes(data) == ["vocab-mismatch"]
    assert "token 1517" in data["findings"][0]["message"]


async def test_a_truncated_draft(pair: TuningProfile, quick_pair: DemoPair, tmp_path: Path) -> None:
    short = tmp_path / "short.gguf"
    with quick_pair.drafts[0].open("rb") as whole:
        short.write_bytes(whole.read(20_000_000))
    status, data = await doctor(saved(pair.with_speculation(draft_model=str(short)), tmp_path))
    assert status == 1
    assert codes(data) == ["model-corrupt"]


async def test_a_healthy_server(pair: TuningProfile) -> None:
    async with launched(pair) as server:
        request = CompletionRequest(prompt="def fibonacci(n):", max_tokens=40)
        async with server.client.stream(request) as events:
            async for _ in events:
                pass
        status, data = await doctor(server.client.base_url)
    assert (status, data["findings"]) == (0, [])
    seen = data["server"]
    assert seen["speculating"] is True
    assert 0 < seen["acceptance_ratio"] < 1
    draft = Path(pair.speculation.draft_model or "").stem
    assert (seen["mode"], seen["draft_length"], seen["draft"]) == ("draft-simple", 4, draft)
    assert seen["command_checked"] is True


async def test_a_server_with_a_draft_and_no_type(pair: TuningProfile) -> None:
    async with running(pair, ("--spec-type", "draft-simple")) as url:
        status, data = await doctor(url)
    assert status == 1
    assert codes(data) == ["speculation-off", "draft-type-missing"]
    assert data["server"]["speculating"] is False
    assert "--spec-type draft-simple" in data["findings"][0]["advice"]


async def test_a_server_that_dropped_its_draft_says_why(pair: TuningProfile, mismatched_draft: Path) -> None:
    async with running(pair.with_speculation(draft_model=str(mismatched_draft))) as url:
        status, data = await doctor(url)
    assert status == 1
    assert codes(data) == ["speculation-off", "vocab-mismatch"]
    assert "token 1517" in data["findings"][1]["message"]


async def test_a_key_that_is_missing_wrong_and_right(
    pair: TuningProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-right")
    async with running(pair.with_server(api_key_env="THE_KEY")) as url:
        for env in ({}, {"SPECTUI_API_KEY": "sk-wrong"}):
            status, data = await doctor(url, **env)
            assert status == 1
            assert codes(data) == ["unauthorized"]
            assert "SPECTUI_API_KEY" in data["findings"][0]["advice"]
            assert "sk-" not in str(data)
        status, data = await doctor(url, SPECTUI_API_KEY="sk-right")
    assert (status, data["findings"]) == (0, [])


async def test_a_dead_address() -> None:
    status, data = await doctor("http://127.0.0.1:1")
    assert status == 1
    assert codes(data) == ["server-unreachable"]
