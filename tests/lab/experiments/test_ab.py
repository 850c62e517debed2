from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectui.core.ab.interim_looks import Reason
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.errors import LaunchError, ServerGone
from spectui.lab.experiments.ab import AbOrder, AbResult, AbRun, same_traffic
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.reports.ab import ab_table, ab_to_json
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.store.results import ResultStore
from tests.scripted_server import Failure, Request, Script, ScriptedServer

NOWHERE = "http://127.0.0.1:1"


class Named(ScriptedServer):
    """Notes in `log`, which both arms share, what was asked for, and how much was in flight elsewhere."""

    def __init__(self, name: str, log: list[tuple[str, dict[str, Any]]], script: Script) -> None:
        super().__init__(script)
        self.name = name
        self.log = log

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.log.append((self.name, request.body))
        await super()._stream(request, writer)


def profile_of(url: str, k: int, **traffic: Any) -> TuningProfile:
    settings: dict[str, Any] = {"max_tokens": 24, "warmup": 1, **traffic}
    return TuningProfile(
        server=ServerSettings(url=url, model="/models/scripted.gguf"),
        speculation=SpeculationSettings(mode="draft-simple" if k else "off", draft_length=max(1, k)),
        traffic=TrafficSettings(**settings),
    )


async def compared(
    a: Script, b: Script, order: AbOrder, *, clock: Any = None, temperature: float = 0.0, **traffic: Any
) -> tuple[AbResult, list[tuple[str, dict[str, Any]]], list[str]]:
    log: list[tuple[str, dict[str, Any]]] = []
    said: list[str] = []
    async with Named("a", log, a) as one, Named("b", log, b) as other:
        profiles = [
            profile_of(server.url, server.script.k, **traffic).with_sampling(temperature=temperature)
            for server in (one, other)
        ]
        options = {} if clock is None else {"clock": clock}
        run = AbRun(*profiles, launcher=Launcher(), progress=said.append, **options)
        result = await run.run(order)
        assert one.streams == other.streams == 0
    return result, log, said


CODE = AbOrder(workloads=("code",), pairs=16)


async def test_a_faster_server_wins_with_its_ratio() -> None:
    result, _, _ = await compared(Script(k=0, pass_ms=50.0), Script(k=0, pass_ms=25.0), CODE)
    data = ab_to_json(result)
    assert set(data) == {
        *("a", "b", "ratio", "low", "high", "verdict", "pairs", "identical_outputs", "workloads", "summary")
    }
    assert (data["ratio"], data["verdict"]) == (pytest.approx(2.0), "b")
    assert data["low"] <= data["ratio"] <= data["high"]
    assert data["pairs"] == data["workloads"]["code"]["pairs"] == 8
    assert data["a"]["workloads"]["code"]["tokens_per_second"] == pytest.approx(20.0)
    assert data["b"]["workloads"]["code"]["tokens_per_second"] == pytest.approx(40.0)
    assert data["summary"] == "B is 2.00x faster than A (1.92 to 2.08) on code, 8 prompts"
    assert data["summary"] in ab_table(data)


async def test_the_arm_without_speculation_is_the_others_baseline() -> None:
    result, _, _ = await compared(Script(k=0, pass_ms=50.0), Script(k=4, pass_ms=50.0), CODE)
    data = ab_to_json(result)
    assert data["a"]["workloads"]["code"]["baseline_tokens_per_second"] is None
    assert data["b"]["workloads"]["code"]["baseline_tokens_per_second"] == pytest.approx(20.0)
    assert data["b"]["workloads"]["code"]["speedup_actual"] == pytest.approx(
        data["b"]["workloads"]["code"]["tokens_per_pass"]
    )


async def test_both_arms_get_the_same_requests_in_turns_a_b_b_a() -> None:
    _, log, said = await compared(Script(k=0), Script(k=0, pass_ms=24.0), replace(CODE, pairs=8))
    warm, counted = log[:2], log[2:]
    assert [name for name, _ in warm] == ["a", "b"]
    assert warm[0][1] == warm[1][1]
    assert "".join(name for name, _ in counted) == "aabb" + "bbaa" + "aabb" + "bbaa"
    mine, theirs = ([body for name, body in counted if name == arm] for arm in "ab")
    for block in range(0, 8, 2):
        assert mine[block : block + 2] == theirs[block : block + 2]
    assert len({body["prompt"] for body in mine} | {warm[0][1]["prompt"]}) == 9
    assert said[-1] == "code: 8 of at most 8 prompts"


@pytest.mark.parametrize(("at_once", "asked", "planned"), [(8, 24, 32), (8, 40, 40), (1, 8, 8)])
async def test_as_many_prompts_are_planned_as_blocks_take_to_decide(
    at_once: int, asked: int, planned: int
) -> None:
    result, _, said = await compared(
        Script(k=0, slots=at_once),
        Script(k=0, slots=at_once, pass_ms=12.0),
        replace(CODE, pairs=asked),
        concurrency=at_once,
    )
    assert result.planned == {"code": planned}
    assert ab_to_json(result)["verdict"] == "b"
    longer = [line for line in said if "in place of" in line]
    assert longer == (
        []
        if planned == asked
        else [
            f"code: at most {planned} prompts in place of {asked}, since an interval takes 4 blocks, here of 8"
        ]
    )


async def test_no_prompt_is_answered_twice_where_the_draft_length_is_found_out_first() -> None:
    log: list[tuple[str, dict[str, Any]]] = []
    async with Named("a", log, Script(k=0)) as one, Named("b", log, Script(k=4, pass_ms=24.0)) as other:
        unknown = replace(profile_of(other.url, 0), speculation=SpeculationSettings())
        run = AbRun(profile_of(one.url, 0), unknown, launcher=Launcher())
        await run.run(replace(CODE, pairs=8))
    a, b = ([body["prompt"] for name, body in log if name == arm] for arm in "ab")
    assert len(b) > len(a)
    assert len(set(b)) == len(b)
    assert b[-len(a) :] == a


async def test_each_workload_has_its_own_line() -> None:
    order = AbOrder(workloads=("code", "prose"), pairs=8)
    result, log, _ = await compared(Script(k=0), Script(k=0, pass_ms=20.0), order)
    data = ab_to_json(result)
    assert list(data["workloads"]) == ["code", "prose"]
    assert data["pairs"] == 16
    assert {found["pairs"] for found in data["workloads"].values()} == {8}
    assert data["summary"].endswith("on code and prose, 16 prompts")
    assert set(data["a"]["workloads"]) == {"code", "prose"}
    assert any("messages" in body for _, body in log)


async def test_outputs_are_compared_at_temperature_0_only() -> None:
    same, _, _ = await compared(Script(k=0), Script(k=0), CODE)
    assert ab_to_json(same)["identical_outputs"] is True
    assert "both arms wrote the same" in ab_table(ab_to_json(same))
    warm, _, _ = await compared(Script(k=0), Script(k=0), CODE, temperature=0.8)
    found = ab_to_json(warm)["workloads"]["code"]
    assert ab_to_json(warm)["identical_outputs"] is None
    assert (found["identical_outputs"], found["different_outputs"]) == (None, None)


async def test_different_outputs_are_shown_where_they_part() -> None:
    result, _, _ = await compared(Script(k=0), Script(k=0), CODE)
    result.outputs["code"].add("p\x1b[31m", "one two", "one six")
    data = ab_to_json(result)
    assert data["identical_outputs"] is False
    assert data["workloads"]["code"]["different_outputs"] == 1
    assert data["workloads"]["code"]["first_difference"] == {
        "prompt": "p",
        "position": 4,
        "a": "one two",
        "b": "one six",
    }
    assert "outputs differ for 1 prompt, first for p at character 4: 'one two' against 'one six'" in ab_table(
        data
    )


async def test_answers_of_a_few_tokens_make_no_pair() -> None:
    result, _, _ = await compared(Script(k=0), Script(k=0), replace(CODE, pairs=8), max_tokens=5)
    data = ab_to_json(result)
    assert (data["ratio"], data["low"], data["verdict"], data["pairs"]) == (
        None,
        None,
        "indistinguishable",
        0,
    )
    assert data["workloads"]["code"]["short_answers"] == 8
    assert data["workloads"]["code"]["stopped"] == "pairs"
    assert "8 answers too short to time" in ab_table(data)


async def test_a_used_budget_ends_the_run_with_what_there_is() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.25
        return now

    order = AbOrder(workloads=("code", "prose"), pairs=1000, budget=4.0)
    result, _, _ = await compared(Script(k=0), Script(k=0), order, clock=clock)
    assert [end.reason for end in result.ended.values()] == [Reason.BUDGET] * 2
    assert all(0 < end.result.pairs < 12 for end in result.ended.values())


async def test_a_server_that_fails_on_the_way_leaves_what_was_measured() -> None:
    log: list[tuple[str, dict[str, Any]]] = []
    async with Named("a", log, Script(k=0)) as one, Named("b", log, Script(k=0, pass_ms=30.0)) as other:

        def watch(line: str) -> None:
            if line.startswith("code: 4 of"):
                other.script.failure = Failure.CUT

        run = AbRun(profile_of(one.url, 0), profile_of(other.url, 0), launcher=Launcher(), progress=watch)
        result = await run.run(replace(CODE, pairs=100))
    assert isinstance(result.failure, ServerGone)
    data = ab_to_json(result)
    assert data["workloads"]["code"]["stopped"] == "failed"
    assert (data["pairs"], data["low"]) == (4, None)
    assert data["ratio"] == pytest.approx(25 / 30)
    assert data["b"]["findings"][0]["code"] == "server-unreachable"
    assert data["a"]["findings"] == []
    assert "undecided on code" in ab_table(data)


async def test_both_arms_are_kept_with_what_they_were_measured_against(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.sqlite3")
    order = AbOrder(workloads=("code", "prose"), pairs=8)
    async with ScriptedServer(Script(k=0, pass_ms=50.0)) as one, ScriptedServer(Script(k=4)) as other:
        run = AbRun(
            profile_of(one.url, 0), profile_of(other.url, 4), launcher=Launcher(), recorder=Recorder(store)
        )
        result = await run.run(order)
    kept = store.runs()
    assert [(r.conditions.profile.traffic.workload, r.source, r.failure) for r in kept] == [
        (name, "ab", None) for name in ("prose", "prose", "code", "code")
    ]
    assert all(r.ended_at is not None and r.conditions.build == "b10434" for r in kept)
    arms = {one.url: result.a, other.url: result.b}
    for found in kept:
        profile = found.conditions.profile
        bet = arms[str(profile.server.url)].measurement.bets[profile.traffic.workload]
        assert found.summary.requests == bet.requests >= 8
        assert found.summary.tokens == bet.tokens
        assert found.summary.speedup_actual == bet.speedup_actual
        assert (found.summary.baseline_source == "arm a") == (profile.server.url == other.url)


async def test_an_arm_that_is_lost_is_kept_until_then_and_says_so(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.sqlite3")
    async with ScriptedServer(Script(k=0)) as one, ScriptedServer(Script(k=0)) as other:

        def watch(line: str) -> None:
            if line.startswith("code: 4 of"):
                other.script.failure = Failure.CUT

        arms = profile_of(one.url, 0), profile_of(other.url, 0)
        run = AbRun(*arms, launcher=Launcher(), progress=watch, recorder=Recorder(store))
        result = await run.run(replace(CODE, pairs=100))
    assert sorted(r.summary.requests for r in store.runs()) == [4, 6]
    assert {r.failure for r in store.runs()} == {str(result.failure)}


async def test_an_arm_that_cannot_be_reached_is_refused_before_anything_is_sent() -> None:
    log: list[tuple[str, dict[str, Any]]] = []
    async with Named("a", log, Script(k=0)) as one:
        run = AbRun(profile_of(one.url, 0), profile_of(NOWHERE, 0), launcher=Launcher())
        with pytest.raises(ServerGone):
            await run.run(CODE)
    assert log == []


async def test_a_profile_that_cannot_start_is_refused_before_anything_is_sent(server_binary: object) -> None:
    log: list[tuple[str, dict[str, Any]]] = []
    missing = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/nowhere/model.gguf"))
    async with Named("a", log, Script(k=0)) as one:
        run = AbRun(profile_of(one.url, 0), missing, launcher=Launcher())
        with pytest.raises(LaunchError, match=r"model\.gguf"):
            await run.run(CODE)
        assert one.requests == []


async def test_an_address_is_tried_before_a_server_of_ours_starts(
    server_binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.gguf"
    started: list[LaunchedServer] = []
    model.write_text("weights")

    async def start(server: LaunchedServer) -> None:
        started.append(server)

    monkeypatch.setattr(LaunchedServer, "start", start)
    own = TuningProfile(server=ServerSettings(binary=str(server_binary), model=str(model)))
    for arms in ((own, profile_of(NOWHERE, 0)), (profile_of(NOWHERE, 0), own)):
        with pytest.raises(ServerGone):
            await AbRun(*arms, launcher=Launcher()).run(CODE)
    assert started == []


def test_only_what_is_compared_may_differ() -> None:
    a = profile_of("http://a:1", 4, max_tokens=50, concurrency=3).with_sampling(seed=7)
    b = profile_of("http://b:1", 2, max_tokens=90).with_sampling(seed=9, temperature=0.5)
    both = same_traffic(a, b)
    assert both.traffic == a.traffic
    assert (both.sampling.seed, both.sampling.temperature) == (7, 0.5)
    assert (both.server, both.speculation) == (b.server, b.speculation)


async def test_another_profiles_traffic_is_said_not_to_count() -> None:
    said: list[str] = []
    AbRun(
        profile_of("http://a:1", 4),
        profile_of("http://b:1", 4, max_tokens=90),
        launcher=Launcher(),
        progress=said.append,
    )
    assert len(said) == 1
    assert "both arms get A's traffic" in said[0]
