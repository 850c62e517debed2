from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from spectui.core.bet.baseline import Baseline, given, pooled
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.errors import SpectuiError, UsageError
from spectui.lab.measuring import baseline
from spectui.lab.measuring.baseline import LEAST, MOST, BaselineMeasurer, key_for
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.servers.launcher import LaunchPlan
from spectui.lab.servers.server import AttachedServer
from spectui.lab.workloads.workloads import Prompt, PromptSequence, Workload, load_builtin
from spectui.llama.binary.argv import build_argv
from spectui.llama.http.wire import SlotInfo
from spectui.store.baselines import BaselineStore, StoredBaseline
from tests.scripted_server import Request, Script, ScriptedServer
from tests.unlaunched import CAPS, Started, plan_for

WORKLOAD = load_builtin("code")


def attached_profile(url: str, **traffic: Any) -> TuningProfile:
    settings = {"max_tokens": 60, "warmup": 1, **traffic}
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple", draft_length=4),
        traffic=TrafficSettings(**settings),
    )


@asynccontextmanager
async def plain_server(**script: Any) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(Script(k=0, **script)) as server:
        yield server


async def measured(
    server: ScriptedServer,
    profile: TuningProfile,
    folder: Path,
    *,
    after_each: Callable[[int], None] = lambda _requests: None,
    ticks: Iterator[float] | None = None,
    workload: Workload = WORKLOAD,
    **more: Any,
) -> tuple[Baseline, StoredBaseline, list[int]]:
    """What is measured on the scripted server and remembered; the clock stands still if no ticks are given."""
    told: list[int] = []

    def progress(requests: int, _speed: SpeedEstimate | None) -> None:
        told.append(requests)
        after_each(len(told))

    plain = profile.without_speculation()
    store = BaselineStore(folder / "baselines.json")
    found = Started(plain, api_key=None)
    await found.start()
    try:
        measurer = BaselineMeasurer(
            server=found,
            tokens=(1,),
            plan=plan_for(plain),
            store=store,
            clock=(lambda: 0.0) if ticks is None else lambda: next(ticks),
            **more,
        )
        baseline = await measurer.measure(plain, workload, progress)
    finally:
        await found.stop()
    ((_, stored),) = store.all()
    return baseline, stored, told


def prompts_of(server: ScriptedServer) -> list[str]:
    """Texts that were asked for; what a probe asks for are token ids."""
    return [r.body["prompt"] for r in server.requests if isinstance(r.body.get("prompt"), str)]


async def test_a_steady_server_is_measured_with_as_few_requests_as_give_enough_tokens(tmp_path: Path) -> None:
    async with plain_server(pass_ms=25.0) as server:
        found, stored, told = await measured(server, attached_profile(server.url), tmp_path)
    speed = found.speed
    assert found.source == "measured"
    assert speed.per_stream.value == pytest.approx(40.0)
    assert speed.relative_error == pytest.approx(0.0, abs=1e-6)
    assert told == [1, 2, 3]  # 59 tokens each, 150 are enough
    assert stored.tokens == 3 * 59
    assert len(set(prompts_of(server))) == 1 + 3


async def test_of_long_answers_the_least_number_is_enough(tmp_path: Path) -> None:
    async with plain_server(pass_ms=25.0) as server:
        _, _, told = await measured(server, attached_profile(server.url, max_tokens=160), tmp_path)
    assert told == list(range(1, LEAST + 1))


async def test_a_server_whose_speed_varies_is_given_up_on_after_the_most_requests(tmp_path: Path) -> None:
    async with plain_server(pass_ms=10.0) as server:

        def vary(rounds: int) -> None:
            server.script.pass_ms = 10.0 if rounds % 2 == 0 else 40.0

        found, stored, told = await measured(
            server, attached_profile(server.url, max_tokens=160), tmp_path, after_each=vary
        )
    speed = found.speed
    assert told == list(range(1, MOST + 1))
    assert speed.relative_error is not None
    assert speed.relative_error > baseline.NARROW
    assert speed.per_stream.value == pytest.approx(1000 / 25, rel=0.01)
    assert stored.requests == MOST
    assert len(prompts_of(server)) == 1 + MOST


async def test_a_slow_measurement_ends_with_the_least_number_of_requests(tmp_path: Path) -> None:
    async with plain_server(pass_ms=10.0) as server:

        def vary(rounds: int) -> None:
            server.script.pass_ms = 10.0 if rounds % 2 == 0 else 40.0

        ticks = (n * baseline.ENOUGH_SECONDS for n in count())
        _, _, told = await measured(
            server, attached_profile(server.url), tmp_path, after_each=vary, ticks=ticks
        )
    assert told == list(range(1, LEAST + 1))


class Watching(ScriptedServer):
    """Notes at each request how many others were being answered."""

    others: list[int]

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.others.append(self.streams)
        await super()._stream(request, writer)


async def test_a_stream_never_waits_for_the_longer_answers_of_others(tmp_path: Path) -> None:
    lengths = Workload(
        "own", "", tuple(Prompt(id=str(i), text=f"text {i}", max_tokens=(20, 60)[i % 2]) for i in range(40))
    )
    async with Watching(Script(k=0, rate=400.0, slots=2)) as server:
        server.others = []
        profile = attached_profile(server.url, concurrency=2, warmup=0)
        found, stored, told = await measured(server, profile, tmp_path, workload=lengths)
    assert told == list(range(1, stored.requests + 1))
    assert 2 * LEAST <= stored.requests <= 2 * MOST
    assert server.others[: stored.requests + 1] == [0] + [1] * stored.requests
    assert 1.4 < found.speed.streams <= 2.0
    assert len(set(prompts_of(server))) == stored.requests + 1


async def test_answers_of_one_token_measure_nothing(tmp_path: Path) -> None:
    async with plain_server() as server:
        with pytest.raises(UsageError, match="workload code: no answer was long enough") as caught:
            await measured(server, attached_profile(server.url, max_tokens=1), tmp_path)
    assert "\n" not in str(caught.value)
    assert len(prompts_of(server)) == 1 + MOST


def test_a_stated_speed_has_no_error_of_its_own() -> None:
    plain = given(34.0)
    assert plain == Baseline(
        SpeedEstimate(per_stream=Estimate(value=34.0), streams=1.0, relative_error=None), "given", {}
    )
    assert plain.speed.aggregate == Estimate(value=34.0)


@pytest.mark.parametrize(
    ("owned", "said"),
    [(False, "http://127.0.0.1:1 speculates itself"), (True, r"take that out of server\.extra_args")],
)
async def test_a_server_that_speculates_gives_no_plain_speed(*, owned: bool, said: str) -> None:
    found = AttachedServer(attached_profile("http://127.0.0.1:1"), api_key=None)
    found.owned = owned
    silent, plain, speculating = (
        SlotInfo(id=n, is_processing=False, speculative=told) for n, told in enumerate((None, False, True))
    )
    found.slots = (silent, plain)
    BaselineMeasurer(server=found, tokens=())
    found.slots = (plain, speculating)
    with pytest.raises(UsageError, match=said):
        BaselineMeasurer(server=found, tokens=())
    await found.stop()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    binary, model = tmp_path / "llama-server", tmp_path / "t.gguf"
    binary.write_bytes(b"program")
    model.write_bytes(b"GGUF")
    return binary, model


def profile_of(model: Path) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(model=str(model), context=4096),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4),
    )


def plan_of(profile: TuningProfile, binary: Path, *, port: int = 8080, build: str = "b10434") -> LaunchPlan:
    plain = profile.without_speculation()
    caps = replace(CAPS, version=replace(CAPS.version, build=int(build.removeprefix("b"))))
    argv = build_argv(plain, caps, binary=str(binary), port=port, host="127.0.0.1")
    return replace(plan_for(plain, binary=binary, argv=argv), capabilities=caps, port=port)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.with_sampling(temperature=0.8),
        lambda p: p.with_sampling(seed=2),
        lambda p: p.with_traffic(concurrency=2),
        lambda p: p.with_traffic(depth=2000),
        lambda p: p.with_traffic(max_tokens=64),
        lambda p: p.with_traffic(ignore_eos=True),
        lambda p: p.with_server(threads=2),
        lambda p: p.with_server(context=8192),
        lambda p: p.with_server(extra_args=("--no-mmap",)),
        lambda p: p.with_server(cache_type_k="q8_0"),
    ],
)
def test_a_setting_that_matters_makes_another_key(
    files: tuple[Path, Path], change: Callable[[TuningProfile], TuningProfile]
) -> None:
    binary, model = files
    profile = profile_of(model)
    one, other = (key_for(plan_of(p, binary), WORKLOAD) for p in (profile, change(profile)))
    assert one != other
    assert one.digest != other.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.with_speculation(draft_length=16),
        lambda p: p.with_speculation(mode="ngram-simple"),
        lambda p: p.with_speculation(draft_model="other.gguf", p_min=0.5),
        lambda p: p.with_traffic(warmup=5),
        lambda p: replace(p, description="another"),
        lambda p: p.with_server(extra_args=("--api-key", "sk-1")),
    ],
)
def test_what_plain_decoding_does_not_feel_keeps_the_key(
    files: tuple[Path, Path], change: Callable[[TuningProfile], TuningProfile]
) -> None:
    binary, model = files
    profile = profile_of(model)
    one = key_for(plan_of(profile, binary), WORKLOAD)
    other = key_for(plan_of(change(profile), binary, port=9090), WORKLOAD)
    assert one == other
    assert one.digest == other.digest


def test_other_files_builds_and_prompts_make_another_key(files: tuple[Path, Path], tmp_path: Path) -> None:
    binary, model = files
    profile = profile_of(model)
    first = key_for(plan_of(profile, binary), WORKLOAD)
    assert first == key_for(plan_of(profile, binary), WORKLOAD)
    assert first != key_for(plan_of(profile, binary, build="b10435"), WORKLOAD)
    assert first != key_for(plan_of(profile, binary), load_builtin("json"))
    fewer = Workload(WORKLOAD.name, WORKLOAD.description, WORKLOAD.prompts[:-1])
    assert first != key_for(plan_of(profile, binary), fewer)
    turned = Workload(WORKLOAD.name, WORKLOAD.description, (*WORKLOAD.prompts[1:], WORKLOAD.prompts[0]))
    assert first != key_for(plan_of(profile, binary), turned)
    os.utime(model, ns=(1, 1))
    assert first != key_for(plan_of(profile, binary), WORKLOAD)
    model.write_bytes(b"GGUF, but longer")
    assert first != key_for(plan_of(profile, binary), WORKLOAD)


def test_a_chat_is_told_from_raw_text(files: tuple[Path, Path]) -> None:
    binary, model = files
    plan = plan_of(profile_of(model), binary)
    raw = Workload("own", "", (Prompt(id="1", text="user: hello", messages=None),))
    other = Workload("own", "", (Prompt(id="1", text="user: hello there", messages=None),))
    assert key_for(plan, raw) != key_for(plan, other)


async def test_what_was_measured_is_remembered_under_its_key(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    binary, model = files
    key = key_for(plan_of(profile_of(model), binary), WORKLOAD)
    store = BaselineStore(tmp_path / "cache" / "baselines.json")
    assert baseline.remembered(store, key) is None
    segment = Segment(profile_of(model))
    speed = SpeedEstimate(
        per_stream=Estimate(value=49.0, low=48.0, high=50.0), streams=1.5, relative_error=0.0104
    )
    replays = (Replay(2, 16, 1000.0, 200, 300.5, 1000, 0.1), Replay(2, 8, 1000.0, 300, 350.0, 500, 0.2))
    found = Baseline(speed, "measured", {2: 1.1, 5: 1.6}, {2: 0.01, 5: 0.02}, replays)
    baseline.remember(store, key, found, segment)
    known = baseline.remembered(BaselineStore(tmp_path / "cache" / "baselines.json"), key)
    assert known is not None
    assert known.source == "remembered"
    assert known.v == {2: 1.1, 5: 1.6}
    assert known.v_error == {2: 0.01, 5: 0.02}
    assert known.replayed == replays
    assert known.speed.per_stream == speed.per_stream
    assert known.speed.streams == speed.streams
    assert known.speed.relative_error == pytest.approx(0.0104, rel=0.01)
    other = key_for(plan_of(profile_of(model).with_sampling(temperature=1.0), binary), WORKLOAD)
    assert baseline.remembered(store, other) is None


async def test_nothing_is_remembered_of_a_server_that_somebody_slowed_down(tmp_path: Path) -> None:
    def check() -> None:
        raise UsageError("somebody else uses the device")

    async with plain_server() as server:
        with pytest.raises(UsageError, match="somebody else"):
            await measured(server, attached_profile(server.url), tmp_path, check=check)
    assert BaselineStore(tmp_path / "baselines.json").all() == ()


async def test_workloads_share_one_probe_and_an_earlier_baseline_keeps_its_replays(tmp_path: Path) -> None:
    said: list[str] = []
    probed = ProbeResult(v={1: 1.0, 2: 1.1}, error={2: 0.01})
    replays = (Replay(2, 16, 1000.0, 200, 300.5, 1000, 0.1),)
    earlier = Baseline(
        SpeedEstimate(per_stream=Estimate(value=10.0), streams=1.0, relative_error=0.0),
        "old",
        replayed=replays,
    )
    async with plain_server(pass_ms=25.0) as server:
        profile = attached_profile(server.url).without_speculation()
        second = AttachedServer(profile, api_key=None)
        await second.connect()
        try:
            measurer = BaselineMeasurer(
                server=second, tokens=(1, 2), note=said.append, on_problem=said.append
            )
            for name in ("code", "prose"):
                found = await measurer.measure(profile, load_builtin(name), lambda *_: None, requests=2)
                assert (found.source, found.v, found.replayed) == ("second server", {}, ())
            assert [line.partition(":")[0] for line in said] == [
                "probing what verification costs",
                "verification could not be probed",
            ]
            collector = Collector(profile)
            await collector.send(second, PromptSequence.under(profile, WORKLOAD), requests=2)
            known = BaselineMeasurer(server=second, tokens=(), probed=probed)
            found = await known.finish(profile, WORKLOAD, collector.segment, (), earlier=earlier)
        finally:
            await second.stop()
    assert (found.v, found.v_error, found.replayed) == (probed.v, probed.error, replays)
    assert found.speed.per_stream.value == pytest.approx(20.0)


async def test_a_speed_that_cannot_be_kept_is_said_in_one_line(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    binary, model = files
    key = key_for(plan_of(profile_of(model), binary), WORKLOAD)
    (tmp_path / "file").write_text("no folder")
    store = BaselineStore(tmp_path / "file" / "baselines.json")
    with pytest.raises(SpectuiError, match="cannot be remembered") as caught:
        baseline.remember(store, key, given(34.0), Segment(profile_of(model)))
    assert "\n" not in str(caught.value)


def test_two_baselines_are_one_whose_error_holds_their_difference() -> None:
    def speed(value: float, error: float | None) -> SpeedEstimate:
        return SpeedEstimate(per_stream=Estimate(value=value), streams=1.0, relative_error=error)

    same = pooled(speed(20.0, 0.02), speed(20.0, 0.02))
    assert same.per_stream.value == pytest.approx(20.0)
    assert same.relative_error == pytest.approx(0.01414, abs=1e-5)
    drifted = pooled(speed(40.0, 0.0), speed(10.0, None))
    assert drifted.per_stream.value == pytest.approx(20.0)
    # Half of the distance between both on a scale of logarithms: each is twice or half of 20.
    assert drifted.relative_error == pytest.approx(0.6931, abs=1e-4)
    assert drifted.per_stream.low is not None
    assert drifted.per_stream.low < 10
