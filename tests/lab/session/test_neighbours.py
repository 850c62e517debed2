"""What neighbours disturb is refused or forgotten, and what they sweep is theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.segment import SpeedEstimate
from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.core.views.snapshot import TrafficState
from spectui.errors import UsageError
from spectui.lab.servers.launcher import Launcher
from spectui.lab.session.neighbours import FreeSweeps, Neighbours, QuietBaselines
from spectui.lab.session.session import Session
from spectui.lab.session.session_baseline import SessionBaseline
from spectui.store.baselines import BaselineKey, BaselineStore, FileIdentity, StoredBaseline
from spectui.store.paths import Folders
from spectui.store.results import ResultStore
from tests.scripted_server import Script, ScriptedServer
from tests.unlaunched import Started, plan_for

TOKENIZE = ("POST", "/tokenize")
LOUD = "session 2 computes on the CPU too"
FILE = FileIdentity("/m", 1, 1)
KEY = BaselineKey(
    build=None,
    binary=FILE,
    model=FILE,
    argv=(),
    workload="code",
    prompts_hash="",
    temperature=0.0,
    seed=1,
    concurrency=1,
    depth=0,
    max_tokens=1,
    ignore_eos=False,
    machine="m",
)


def known(value: float) -> StoredBaseline:
    return StoredBaseline(tokens_per_second=value, requests=1, tokens=1, measured_at=1.0)


def test_a_measurement_is_refused_while_and_spoilt_after_somebody_disturbs() -> None:
    neighbours = Neighbours()
    neighbours.require_quiet()
    neighbours.require_undisturbed()
    neighbours.tell(LOUD)
    with pytest.raises(UsageError, match=LOUD):
        neighbours.require_quiet()
    neighbours.tell("")
    neighbours.require_quiet()
    neighbours.tell(LOUD)
    neighbours.tell("")
    with pytest.raises(UsageError, match=LOUD):
        neighbours.require_undisturbed()
    neighbours.require_undisturbed()


def test_a_spoilt_plain_speed_is_not_remembered() -> None:
    neighbours, folders = Neighbours(), Folders.default()
    store = QuietBaselines(folders, neighbours)
    store.put(KEY, known(30.0))
    neighbours.tell(LOUD)
    neighbours.tell("")
    with pytest.raises(UsageError, match=LOUD):
        store.put(KEY, known(15.0))
    assert store.get(KEY) == known(30.0)
    store.put(KEY, known(31.0))
    assert BaselineStore.default(folders).get(KEY) == known(31.0)


def test_a_sweep_that_runs_elsewhere_is_not_offered() -> None:
    neighbours, folders = Neighbours(), Folders.default()
    store = FreeSweeps(folders, neighbours)
    number = store.begin_sweep({"k": 1}, at=1.0)
    neighbours.tell("", frozenset({number}))
    assert store.unfinished_sweep({"k": 1}) is None
    assert ResultStore.default(folders).unfinished_sweep({"k": 1}) is not None
    neighbours.tell("")
    found = store.unfinished_sweep({"k": 1})
    assert found is not None
    assert found.id == number


async def plain_of(
    store: BaselineStore, neighbours: Neighbours, on_token: Callable[[int, float], None]
) -> Baseline:
    async with ScriptedServer(Script(k=0, rate=2000.0)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url), traffic=TrafficSettings(max_tokens=20, warmup=0)
        )
        work = SessionBaseline(
            launcher=Launcher(environ={}),
            store=store,
            api_key=None,
            on_token=on_token,
            on_begin=lambda _at: None,
            on_note=lambda _note: None,
            on_problem=lambda _why: None,
            neighbours=neighbours,
        )
        started = Started(profile, api_key=None)
        try:
            return await work.measure(plan_for(profile), started, None)  # type: ignore[arg-type]
        finally:
            await started.stop()


async def test_a_baseline_that_is_disturbed_on_the_way_is_none(tmp_path: Path) -> None:
    store, neighbours = BaselineStore(tmp_path / "b.json"), Neighbours()

    def disturb(_count: int, _at: float) -> None:
        neighbours.tell(LOUD)
        neighbours.tell("")

    with pytest.raises(UsageError, match=LOUD):
        await plain_of(store, neighbours, disturb)
    assert store.all() == ()
    plain = await plain_of(store, neighbours, lambda _count, _at: None)
    assert isinstance(plain.speed, SpeedEstimate)
    assert len(store.all()) == 1


def session_beside(neighbours: Neighbours, profile: TuningProfile, notices: list[str]) -> Session:
    return Session(
        profile,
        folders=Folders.default(),
        environ={},
        on_notice=notices.append,
        neighbours=neighbours,
    )


async def test_a_baseline_is_not_begun_while_somebody_disturbs_and_what_runs_runs_on() -> None:
    notices: list[str] = []
    neighbours = Neighbours()
    async with ScriptedServer(Script(rate=400.0)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf"),
            traffic=TrafficSettings(max_tokens=20, warmup=0),
        )
        session = session_beside(neighbours, profile, notices)

        async def plan(_profile: TuningProfile) -> None:
            """As for a server of ours, which this one stands in for."""

        try:
            session.open(traffic=True)
            await session.settled()
            running = session.server.current
            session.launcher.plan = plan  # type: ignore[method-assign,assignment]
            neighbours.tell(LOUD)
            await session._measure_and_launch(profile)
            assert session.server.current is running
            assert running is not None
            assert running.alive
            assert session.server.traffic_state is not TrafficState.OFF
            assert notices == [f"the baseline could not be measured: {LOUD}"]
        finally:
            await session.aclose()


async def test_an_idle_server_is_probed_only_while_nobody_else_uses_its_device() -> None:
    notices: list[str] = []
    neighbours = Neighbours()
    async with ScriptedServer(Script(k=0)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url), baseline=BaselineSettings(tokens_per_second=30.0)
        )
        session = session_beside(neighbours, profile, notices)
        try:
            session.open(traffic=False)
            await session.settled()
            running = session.server.current
            assert running is not None
            running.owned = True
            for told in ((LOUD, ""), ("", "session 2 measures on the CPU")):
                neighbours.tell(told[0], disturbed=told[1])
                session.server._probe_while_idle(running, running.profile)
                assert session.server._idle._task is None
            neighbours.tell("")
            session.server._probe_while_idle(running, running.profile)
            await server.until(lambda s: TOKENIZE in s.asked())
        finally:
            await session.aclose()


async def test_a_probe_gives_way_to_whoever_disturbs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three passes of a probe; somebody begins after the first."""
    neighbours, done = Neighbours(), []

    async def passes(_client: object, _points: object, *, on_progress: Callable[[int, int], None]) -> None:
        for number in range(1, 4):
            on_progress(number, 3)
            done.append(number)
            neighbours.tell(LOUD)

    monkeypatch.setattr("spectui.lab.session.session_baseline.run_probe", passes)
    work = SessionBaseline(
        launcher=Launcher(environ={}),
        store=BaselineStore.default(Folders.default()),
        api_key=None,
        on_token=lambda _count, _at: None,
        on_begin=lambda _at: None,
        on_note=lambda _note: None,
        on_problem=lambda _why: None,
        neighbours=neighbours,
    )
    profile = TuningProfile(server=ServerSettings(url="http://127.0.0.1:1"))
    idle = Started(profile, api_key=None)
    with pytest.raises(UsageError, match=LOUD):
        await work.probe(idle, profile)
    assert done == [1]
    await idle.stop()
