"""Headless measuring on scripted servers: what both sides are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.lab.experiments.measure import Measurement, Measurer, Order
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore
from tests.scripted_server import Script, ScriptedServer

K4 = SpeculationSettings(mode="draft-simple", draft_length=4, draft_model="d.gguf")


def prompts_of(server: ScriptedServer) -> list[str]:
    return [r.body["prompt"] for r in server.requests if isinstance(r.body.get("prompt"), str)]


async def measured(
    tmp_path: Path,
    server: ScriptedServer,
    plain: ScriptedServer,
    speculation: SpeculationSettings,
    *,
    requests: int,
    **traffic: Any,
) -> tuple[Measurement, list[str]]:
    said: list[str] = []
    profile = TuningProfile(
        server=ServerSettings(url=server.url),
        speculation=speculation,
        traffic=TrafficSettings(max_tokens=24, **traffic),
        baseline=BaselineSettings(url=plain.url),
    )
    measurer = Measurer(
        launcher=Launcher(environ={}),
        store=BaselineStore(tmp_path / "b.json"),
        results=ResultStore(tmp_path / "r.sqlite3"),
        progress=said.append,
    )
    return await measurer.measure(profile, Order(workloads=("code",), requests=requests, baseline=True)), said


@pytest.mark.parametrize("speculation", [K4, SpeculationSettings()])
async def test_no_prompt_is_answered_twice_and_the_baseline_answers_the_same(
    tmp_path: Path, speculation: SpeculationSettings
) -> None:
    async with ScriptedServer(Script(k=4)) as server, ScriptedServer(Script(k=0)) as plain:
        result, _ = await measured(tmp_path, server, plain, speculation, requests=4)
    bets, plains = prompts_of(server), prompts_of(plain)
    assert len(set(bets)) == len(bets) == len(plains) + (0 if speculation is K4 else 2)
    assert bets[-len(plains) :] == plains
    assert result.bets["code"].requests == 4
    assert len(result.bets["code"].survival) == 4


async def test_a_baseline_of_many_streams_takes_two_requests_of_each(tmp_path: Path) -> None:
    async with ScriptedServer(Script(slots=4)) as server, ScriptedServer(Script(k=0, slots=4)) as plain:
        result, said = await measured(tmp_path, server, plain, K4, requests=2, concurrency=4)
    assert "code: baseline, 8 of 8 requests" in said
    assert result.bets["code"].requests == 2
