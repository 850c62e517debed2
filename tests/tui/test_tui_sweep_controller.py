"""The sweep screen's controller over a session that lends its device; what the sweep does is played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_server import Script, ScriptedServer
from textual.message import Message

from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.segment import SpeedEstimate
from spectui.core.snapshot import Estimate, ServerState
from spectui.core.sweepplan import PLAIN, Cell, Condition
from spectui.core.sweepview import SweepChoice, SweepStage, SweepView
from spectui.errors import LaunchError, StoreError, UsageError
from spectui.lab.lending import LendingSession
from spectui.lab.sweep import Sweeper
from spectui.lab.sweepfiles import Measured
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.results import ResultStore
from spectui.tui.duel import SessionDuel
from spectui.tui.messages import SweepReady
from spectui.tui.sweep import SessionSweep

CODE = Condition("code", 0.0)
ONE = SweepChoice(workloads=("code",), modes=("draft-simple",), ks=(1, 4))


def ran(value: float) -> Measured:
    speed = SpeedEstimate(per_stream=Estimate(value=20 * value), streams=1.0, relative_error=0.01)
    return Measured(requests=10, speed=speed, baseline=20.0)


class Host:
    """A session whose profile starts a server, the controller over it, and what both did."""

    def __init__(self, profile: TuningProfile) -> None:
        self.folders = Folders.default()
        self.session: LendingSession | None = LendingSession(profile, folders=self.folders, environ={})
        self.view = SweepView()
        self.views: list[SweepView] = []
        self.sweep = SessionSweep(lambda: self.session, where=lambda: self.folders)
        self.sweep.sink = self._take

    def _take(self, message: Message) -> None:
        assert isinstance(message, SweepReady)
        self.view = message.view
        self.views.append(message.view)

    @property
    def running(self) -> LendingSession:
        assert self.session is not None
        return self.session

    async def until(self, condition: Callable[[SweepView], bool]) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition(self.view):  # noqa: ASYNC110  views and servers move in between
                    await asyncio.sleep(0)
        except TimeoutError:
            pytest.fail(f"never came; the last was {self.view}")


class Played:
    """What the sweep does here: two cells, then it waits until it may end."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.problem: LaunchError | None = None


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """In place of servers."""
    played = Played()

    async def check(_sweeper: Sweeper) -> None:
        if played.problem is not None:
            raise played.problem

    async def run(self: Sweeper, *, number: int | None = None) -> object:
        await self._begin(fresh=False, number=number)
        await self._watcher.taken(self)
        state = "stopped"
        try:
            row = self.found.order.grid.fixed[0]
            await self._take(Cell(CODE, PLAIN), ran(1.0))
            await self._watcher.turn(self, Cell(CODE, row[1]))
            await self._take(Cell(CODE, row[1]), ran(1.5))
            await played.may_end.wait()
            state = "done"
        finally:
            await self._end(state)  # type: ignore[arg-type]
        return self.found

    monkeypatch.setattr(Sweeper, "check", check)
    monkeypatch.setattr(Sweeper, "run", run)
    return played


@pytest.fixture
def own(server_binary: Path) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/d.gguf", draft_length=2),
        traffic=TrafficSettings(max_tokens=16, warmup=0),
    )


@pytest.fixture
async def host(own: TuningProfile, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    """A session of our own that runs `own`, without a server: launches are only noted."""
    host = Host(own)
    host.running.staging.started(own)
    launched: list[TuningProfile] = []

    async def launch(_session: LendingSession, profile: TuningProfile, *, back: bool = False) -> None:
        launched.append(profile)
        host.running.staging.started(profile, back=back)

    monkeypatch.setattr(LendingSession, "_launch", launch)
    host.launched = launched  # type: ignore[attr-defined]
    yield host
    if host.session is not None:
        await host.session.aclose()


async def test_it_plans_what_runs_and_starts_nothing(host: Host, played: Played) -> None:
    await host.sweep.open()
    assert host.views[0].note == "planning"
    assert host.view.stage is SweepStage.READY
    assert host.view.choice is not None
    assert host.view.choice.workloads == ("code",)
    assert host.view.plan is not None
    assert host.view.plan.cells == 24
    await host.sweep.choose(ONE)
    assert host.view.plan.cells == 2
    assert ResultStore.default(host.folders).sweeps() == ()
    assert host.running.server is None


async def test_a_choice_that_cannot_be_swept_says_why_and_can_be_changed(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(replace(ONE, modes=("draft-none",)))
    assert "offers no mode draft-none" in host.view.problem
    assert host.view.choice == replace(ONE, modes=("draft-none",))
    assert "draft-simple" in host.view.modes
    assert not host.view.startable
    with pytest.raises(UsageError, match="offers no mode"):
        await host.sweep.start()
    await host.sweep.choose(ONE)
    assert host.view.startable


async def test_it_borrows_the_device_and_gives_it_back(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    assert host.running.note == "the sweep has the device; this server comes back after it"
    assert host.view.stage is SweepStage.RUNNING
    with pytest.raises(UsageError, match="s stops it"):
        await host.sweep.choose(ONE)
    with pytest.raises(UsageError, match="s stops it"):
        await host.sweep.pick(None)
    with pytest.raises(UsageError, match="s stops it"):
        await host.sweep.apply(0)
    shown = len(host.views)
    await host.sweep.open()
    assert len(host.views) == shown + 1
    await host.sweep.start()
    played.may_end.set()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    assert len(host.launched) == 1  # type: ignore[attr-defined]
    assert host.running.note == ""
    assert host.view.maps[0].top == pytest.approx(1.5)
    await host.sweep.open()
    assert host.view.stage is SweepStage.DONE


async def test_stopped_it_goes_on_with_the_same_sweep(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    host.sweep.stop()
    assert host.view.stage is SweepStage.STOPPING
    host.sweep.stop()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    await host.running.settled()
    number = host.view.number
    played.may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    assert host.view.number == number
    assert [sweep.state for sweep in ResultStore.default(host.folders).sweeps()] == ["done"]


async def test_it_is_refused_while_another_session_computes_on_the_device(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    assert host.sweep.running is None
    host.running.neighbours.tell("session 2 computes on the CPU too")
    with pytest.raises(UsageError, match="session 2 computes on the CPU too"):
        await host.sweep.start()
    assert host.view.stage is SweepStage.READY
    assert host.running.lent_to == ""
    host.running.neighbours.tell("")
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    assert host.sweep.running == host.view.number
    assert host.view.number is not None


async def test_a_sweep_that_another_session_runs_is_neither_offered_nor_opened(
    host: Host, played: Played
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    host.sweep.stop()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    await host.running.settled()
    number = host.view.number
    assert number is not None
    host.running.neighbours.tell("", frozenset({number}))
    for refused in (host.sweep.start(), host.sweep.pick(number)):
        with pytest.raises(UsageError, match=f"sweep {number} runs in another session"):
            await refused
    await host.sweep.choose(ONE)
    assert (host.view.stage, host.view.number) == (SweepStage.READY, None)
    host.running.neighbours.tell("")
    await host.sweep.choose(ONE)
    assert (host.view.stage, host.view.number) == (SweepStage.STOPPED, number)


async def test_one_borrower_does_not_take_the_device_from_another(host: Host, played: Played) -> None:
    await host.sweep.open()
    duel = SessionDuel(
        lambda: host.session, load=_never, where=lambda: host.folders, key_of=lambda _profile: None
    )
    save(host.running.staging.staged.with_speculation(draft_length=9), "other", host.folders)
    await duel.choose("other")
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.RUNNING)
    with pytest.raises(UsageError, match="the sweep has the device"):
        await duel.start()
    host.sweep.stop()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    await host.running.settled()

    held = asyncio.Event()
    ended = host.running.lend(_waiting(held))
    await held.wait()
    with pytest.raises(UsageError, match="the A/B run has the device"):
        await host.sweep.start()
    ended.cancel()
    await asyncio.wait({ended})


async def _never(_name: str) -> None:
    raise AssertionError("nothing is loaded here")


def _waiting(held: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        held.set()
        await asyncio.Event().wait()

    return work


async def test_a_newer_command_takes_the_device_back(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    host.running.restart()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    (kept,) = ResultStore.default(host.folders).sweeps()
    assert kept.state == "stopped"


@pytest.mark.parametrize("stop", [True, False])
async def test_it_has_stopped_where_it_was_before_it_had_begun(
    host: Host, played: Played, *, stop: bool
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    if stop:
        host.sweep.stop()
    else:
        host.running.restart()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    assert ResultStore.default(host.folders).sweeps() == ()


async def test_what_cannot_start_stops_nothing(host: Host, played: Played) -> None:
    await host.sweep.open()
    played.problem = LaunchError("the target model /m/t.gguf does not exist: correct the path")
    await host.sweep.start()
    assert host.view.stage is SweepStage.FAILED
    assert "/m/t.gguf does not exist" in host.view.problem
    assert host.running.staging.running is not None
    assert host.launched == []  # type: ignore[attr-defined]


async def test_a_start_waits_until_what_would_come_back_runs(host: Host, played: Played) -> None:
    await host.sweep.open()

    class Loading:
        state = ServerState.LOADING

        async def stop(self) -> None:
            return None

    host.running.server = Loading()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="starting"):
        await host.sweep.start()
    host.running.server = None


async def test_the_recommendation_is_staged_and_restarted(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    with pytest.raises(UsageError, match="nothing is recommended"):
        await host.sweep.apply(0)
    played.may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    host.running.apply_now(lambda p: p.with_traffic(workload="prose"))
    assert await host.sweep.apply(0) == "restarting with draft-simple d.gguf k 4"
    await host.running.settled()
    running = host.running.staging.running
    assert running is not None
    assert (running.speculation.draft_length, running.traffic.workload) == (4, "code")
    assert host.launched[-1].speculation.draft_length == 4  # type: ignore[attr-defined]
    count = len(host.launched)  # type: ignore[attr-defined]
    assert await host.sweep.apply(0) == "draft-simple d.gguf k 4 is what runs"
    assert len(host.launched) == count  # type: ignore[attr-defined]


async def test_kept_sweeps_are_listed_and_picked(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    played.may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    (kept,) = await host.sweep.kept()
    assert (kept.number, kept.state, kept.known) == (1, "done", 1)
    await host.sweep.pick(None)
    assert host.view.stage is SweepStage.READY
    assert host.view.number is None
    await host.sweep.pick(1)
    assert (host.view.number, host.view.stage) == (1, SweepStage.DONE)
    assert host.view.choice == ONE
    with pytest.raises(StoreError, match="no sweep has the number 9"):
        await host.sweep.pick(9)


async def test_another_server_gets_another_plan(host: Host, played: Played) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    played.may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    assert host.running.staging.running is not None
    host.running.staging.started(host.running.staging.running.with_server(model="/m/other.gguf"))
    await host.sweep.open()
    assert host.view.stage is SweepStage.READY
    assert host.view.model == "/m/other.gguf"


async def test_a_foreign_server_gets_the_command_line_and_no_request(played: Played) -> None:
    async with ScriptedServer(Script(k=4)) as server:
        host = Host(TuningProfile(server=ServerSettings(url=server.url)))
        host.running.open(traffic=False)
        await host.running.settled()
        await host.sweep.open()
        assert host.view.command == "spectui sweep PROFILE --workload code"
        with pytest.raises(UsageError, match="never restarts this server"):
            await host.sweep.start()
        assert all(method == "GET" for method, _ in server.asked())
        await host.running.aclose()


async def test_without_a_session_nothing_can_be_swept(own: TuningProfile) -> None:
    host = Host(own)
    await host.running.aclose()
    host.session = None
    await host.sweep.open()
    assert "nothing runs yet" in host.view.problem
    with pytest.raises(UsageError, match="nothing runs yet"):
        await host.sweep.start()
    host.sweep.stop()
    host.sweep.pause()
    host.sweep.go_on()
