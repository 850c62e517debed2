"""The A/B screen's controller over a real session on scripted servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.message import Message

from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmName
from spectui.core.views.snapshot import ServerState, TrafficState
from spectui.errors import ProfileError, UsageError
from spectui.lab.servers.launcher import Launcher
from spectui.lab.session.session import Session
from spectui.lab.views.ab_watch import AbWatch
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.results import ResultStore
from spectui.tui.control.ab import AbControl
from spectui.tui.messages import AbReady
from tests.scripted_server import Script, ScriptedServer


def profile_of(url: str, k: int = 4) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple" if k else "off", draft_length=max(1, k)),
        traffic=TrafficSettings(max_tokens=16, warmup=0),
    )


class Host:
    """A session on a scripted server, the controller over it, and what both did."""

    def __init__(self, profile: TuningProfile) -> None:
        self.folders = Folders.default()
        self.session: Session | None = Session(profile, folders=self.folders, environ={})
        self.loaded: list[str] = []
        self.keys: list[str | None] = []
        self.view = AbView()
        self.ab = AbControl(
            lambda: self.session, load=self._load, where=lambda: self.folders, key_of=self._key_of
        )
        self.ab.sink = self._take

    async def _load(self, name: str) -> None:
        self.loaded.append(name)

    def _key_of(self, profile: TuningProfile) -> str | None:
        self.keys.append(profile.server.url)
        return None

    def _take(self, message: Message) -> None:
        assert isinstance(message, AbReady)
        self.view = message.view

    @property
    def running(self) -> Session:
        assert self.session is not None
        return self.session

    async def until(self, condition: Callable[[AbView], bool]) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition(self.view):  # noqa: ASYNC110  views and traffic move in between
                    await asyncio.sleep(0)
        except TimeoutError:
            pytest.fail(f"never came; the last was {self.view}")


@pytest.fixture
async def servers() -> AsyncIterator[tuple[ScriptedServer, ScriptedServer]]:
    async with ScriptedServer(Script(k=4)) as one, ScriptedServer(Script(k=0, pass_ms=60.0)) as other:
        yield one, other


@pytest.fixture
async def host(servers: tuple[ScriptedServer, ScriptedServer]) -> AsyncIterator[Host]:
    """Attached to the first server; the profile `other` is the second."""
    host = Host(profile_of(servers[0].url))
    save(profile_of(servers[1].url, 0), "other", host.folders)
    host.running.open(traffic=False)
    await host.running.settled()
    yield host
    if host.session is not None:
        await host.session.aclose()


async def test_a_foreign_server_has_no_b_until_a_profile_is_picked_and_gets_nothing(
    host: Host, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    host.running.stage(lambda p: p.with_speculation(draft_length=9))
    host.ab.open()
    view = host.view
    assert view.a is not None
    assert (view.a.name, view.b) == ("running", None)
    with pytest.raises(UsageError, match="no arm B"):
        await host.ab.start()
    await host.ab.choose("other")
    assert host.view.b is not None
    assert (host.view.b.name, host.view.b.profile.server.url) == ("other", servers[1].url)
    assert all(method == "GET" for server in servers for method, _ in server.asked())
    assert servers[1].asked() == []


async def test_a_run_borrows_the_traffic_and_stays_on_screen(
    host: Host, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    host.running.toggle_traffic()
    await host.until(lambda _view: host.running.server.traffic_state is TrafficState.ON)
    host.ab.open()
    await host.ab.choose("other")
    await host.ab.start()
    began = host.view
    assert began.state is AbState.STARTING
    await host.until(lambda v: v.state is AbState.ENDED)
    assert host.keys == [servers[0].url, servers[1].url]
    arms = [run for run in ResultStore.default(host.folders).runs() if run.source == "ab"]
    assert {run.conditions.profile.server.url for run in arms} == {server.url for server in servers}
    assert all(run.ended_at is not None and run.summary.requests >= 8 for run in arms)
    assert host.view.faster == "a"
    assert host.view.pairs >= 8
    await host.until(lambda _view: host.running.server.traffic_state is TrafficState.ON)
    found = host.view
    host.ab.open()
    assert host.view == found
    await host.ab.choose("other")
    assert host.view.state is AbState.READY
    assert host.view.pairs == 0


async def test_it_is_refused_while_another_session_computes_on_the_device(host: Host) -> None:
    host.ab.open()
    await host.ab.choose("other")
    host.running.neighbours.tell("session 2 computes on the CPU too")
    with pytest.raises(UsageError, match="session 2 computes on the CPU too"):
        await host.ab.start()
    assert host.view.state is AbState.READY
    assert host.running.device.lent_to == ""


async def test_a_run_can_be_stopped_and_started_again(host: Host) -> None:
    host.ab.open()
    host.ab.stop()
    await host.ab.choose("other")
    await host.ab.start()
    await host.until(lambda v: v.pairs >= 2)
    with pytest.raises(UsageError, match="space stops"):
        await host.ab.choose("other")
    with pytest.raises(UsageError, match="space stops"):
        await host.ab.apply("a")
    await host.ab.start()
    host.ab.stop()
    assert host.view.state is AbState.STOPPING
    host.ab.stop()
    await host.until(lambda v: v.state is AbState.STOPPED)
    await host.running.settled()
    await host.ab.start()
    await host.until(lambda v: v.state is AbState.ENDED)


async def test_stopped_before_it_had_begun(host: Host) -> None:
    host.ab.open()
    await host.ab.choose("other")
    await host.ab.start()
    host.ab.stop()
    await host.until(lambda v: v.state is AbState.STOPPED)
    assert host.view.pairs == 0


async def test_a_newer_command_ends_a_run(host: Host) -> None:
    host.ab.open()
    await host.ab.choose("other")
    await host.ab.start()
    await host.until(lambda v: v.state is AbState.RUNNING)
    host.running.open(traffic=False)
    await host.until(lambda v: v.state is AbState.STOPPED)


async def test_a_newer_command_ends_a_run_that_has_not_begun(host: Host) -> None:
    host.ab.open()
    await host.ab.choose("other")
    await host.ab.start()
    host.running.open(traffic=False)
    await host.until(lambda v: v.state is AbState.STOPPED)


async def test_closing_the_session_ends_a_run(
    host: Host, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    host.ab.open()
    await host.ab.choose("other")
    await host.ab.start()
    await host.until(lambda v: v.state is AbState.RUNNING)
    await host.running.aclose()
    assert host.view.state is AbState.STOPPED
    assert [server.streams for server in servers] == [0, 0]
    host.session = None
    host.ab.open()
    assert (host.view.a, host.view.b) == (None, None)
    with pytest.raises(UsageError, match="nothing runs"):
        await host.ab.start()
    with pytest.raises(UsageError, match="nothing to apply"):
        await host.ab.apply("a")


async def test_an_arm_that_cannot_start_stops_nothing(
    host: Host, servers: tuple[ScriptedServer, ScriptedServer], server_binary: Path
) -> None:
    missing = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/nowhere/model.gguf"))
    save(missing, "missing", host.folders)
    host.running.toggle_traffic()
    await host.until(lambda _view: host.running.server.traffic_state is TrafficState.ON)
    host.ab.open()
    await host.ab.choose("missing")
    await host.ab.start()
    assert host.view.state is AbState.FAILED
    assert "/nowhere/model.gguf" in host.view.problem
    assert host.running.server.note == ""
    with pytest.raises(ProfileError):
        await host.ab.choose("nowhere")


async def test_two_equal_arms_are_refused(host: Host, servers: tuple[ScriptedServer, ScriptedServer]) -> None:
    assert host.running.server.staging.running is not None
    save(host.running.server.staging.running, "same", host.folders)
    host.ab.open()
    await host.ab.choose("same")
    with pytest.raises(UsageError, match="the same"):
        await host.ab.start()


@pytest.mark.parametrize(("arm", "loaded"), [("a", []), ("b", ["other"])])
async def test_applying_stages_or_loads_what_another_server_runs(
    host: Host, arm: ArmName, loaded: list[str]
) -> None:
    host.ab.open()
    await host.ab.choose("other")
    said = await host.ab.apply(arm)
    assert host.loaded == loaded
    assert said == {"a": "A is what runs", "b": "B is loaded: other"}[arm]


async def test_arms_of_our_own_server_are_staged(tmp_path: Path) -> None:
    own = TuningProfile(server=ServerSettings(model="/models/target.gguf"))
    host = Host(own)
    session = host.running
    session.server.staging.started(own)
    session.stage(lambda p: p.with_speculation(mode="ngram-simple"))
    host.ab.open()
    assert host.view.b is not None
    assert (host.view.b.name, host.view.b.profile.speculation.mode) == ("staged", "ngram-simple")

    other = own.with_speculation(mode="ngram-mod").with_sampling(temperature=0.5).with_traffic(depth=99)
    save(other, "mod", host.folders)
    await host.ab.choose("mod")
    host.ab.open()
    assert host.view.b is not None
    assert host.view.b.name == "mod"
    assert await host.ab.apply("b") == "B is staged: r restarts with it"
    assert session.server.staging.staged == replace(
        own, speculation=other.speculation, sampling=other.sampling
    )
    await session.aclose()


async def test_what_is_staged_after_a_pick_is_b_again(host: Host) -> None:
    own = TuningProfile(server=ServerSettings(model="/models/target.gguf"))
    mine = Host(own)
    mine.running.server.staging.started(own)
    await mine.ab.choose("other")
    mine.running.stage(lambda p: p.with_speculation(mode="ngram-simple"))
    mine.ab.open()
    assert mine.view.b is not None
    assert mine.view.b.name == "staged"
    await mine.running.aclose()


async def test_what_is_cancelled_while_the_arms_are_checked_has_stopped(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_plan: object, _profile: TuningProfile) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Launcher, "plan", never)
    save(TuningProfile(server=ServerSettings(model="/models/target.gguf")), "own", host.folders)
    host.ab.open()
    await host.ab.choose("own")
    task = asyncio.create_task(host.ab.start())
    await host.until(lambda view: view.state is AbState.STARTING)
    task.cancel()
    await asyncio.wait({task})
    assert host.view.state is AbState.STOPPED


@pytest.fixture
def may_check(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What the check of the arms waits for."""
    may_check = asyncio.Event()

    async def check(_ab: AbWatch) -> None:
        await may_check.wait()

    monkeypatch.setattr(AbWatch, "check", check)
    return may_check


async def test_a_session_that_was_closed_during_the_check_stays_closed(
    host: Host, may_check: asyncio.Event, servers: tuple[ScriptedServer, ScriptedServer]
) -> None:
    host.ab.open()
    await host.ab.choose("other")
    starting = asyncio.create_task(host.ab.start())
    await host.until(lambda view: view.state is AbState.STARTING)
    closed, host.session = host.running, None
    await closed.aclose()
    may_check.set()
    await starting
    assert host.view.state is AbState.STOPPED
    assert closed.server.current is None
    assert servers[1].asked() == []


async def test_a_device_that_was_lent_during_the_check_is_not_taken(
    host: Host, may_check: asyncio.Event
) -> None:
    host.ab.open()
    await host.ab.choose("other")
    starting = asyncio.create_task(host.ab.start())
    await host.until(lambda view: view.state is AbState.STARTING)
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    loan = host.running.device.lend(work, to="the sweep")
    may_check.set()
    await starting
    assert host.view.state is AbState.FAILED
    assert host.view.problem == "the sweep has the device: stop it first, then compare"
    await begun.wait()
    loan.cancel()
    await asyncio.wait({loan})


async def test_a_start_waits_until_what_would_come_back_runs(host: Host) -> None:
    host.ab.open()
    await host.ab.choose("other")
    assert host.running.server.current is not None
    host.running.server.current.state = ServerState.LOADING
    with pytest.raises(UsageError, match="starting"):
        await host.ab.start()
    assert host.view.state is AbState.READY
