"""The sweep screen's controller over a session that lends its device; what the sweep does is played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.message import Message

from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.sweep.defaults import REQUESTS
from spectui.core.sweep.planner import Task
from spectui.core.views.snapshot import ServerState
from spectui.core.views.sweep import SweepChoice, SweepStage, SweepView
from spectui.errors import LaunchError, StoreError, UsageError
from spectui.lab.experiments.sweep_record import Measured
from spectui.lab.session.session import Session
from spectui.lab.session.session_server import SessionServer
from spectui.lab.views import sweep_watch
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.results import ResultStore
from spectui.tui.control.ab import AbControl
from spectui.tui.control.sweep import SweepControl
from spectui.tui.messages import Notice, SweepReady
from tests.scripted_server import Script, ScriptedServer
from tests.sweep_play import PlayedSweeps, half_as_fast_again

ONE = SweepChoice(workloads=("code",), modes=("draft-simple",), ks=(1, 4))


class Host:
    """A session whose profile starts a server, the controller over it, and what both did."""

    def __init__(self, profile: TuningProfile) -> None:
        self.folders = Folders.default()
        self.session: Session | None = Session(profile, folders=self.folders, environ={})
        self.view = SweepView()
        self.views: list[SweepView] = []
        self.notices: list[str] = []
        self.sweep = SweepControl(lambda: self.session, where=lambda: self.folders)
        self.sweep.sink = self._take

    def _take(self, message: Message) -> None:
        if isinstance(message, Notice):
            self.notices.append(message.text)
            return
        assert isinstance(message, SweepReady)
        self.view = message.view
        self.views.append(message.view)

    @property
    def running(self) -> Session:
        assert self.session is not None
        return self.session

    async def until(self, condition: Callable[[SweepView], bool]) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition(self.view):  # noqa: ASYNC110  views and servers move in between
                    await asyncio.sleep(0)
        except TimeoutError:
            pytest.fail(f"never came; the last was {self.view}")


@pytest.fixture
def may_end(played: PlayedSweeps) -> asyncio.Event:
    """What the baseline that closes a sweep waits for."""
    may_end = asyncio.Event()

    async def answer(task: Task) -> Measured:
        if task.requests > REQUESTS:
            await may_end.wait()
        return await half_as_fast_again(task)

    played.answer = answer
    return may_end


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
    host.running.server.staging.started(own)
    launched: list[TuningProfile] = []

    async def launch(_server: SessionServer, profile: TuningProfile, *, back: bool = False) -> None:
        launched.append(profile)
        host.running.server.staging.started(profile, back=back)

    monkeypatch.setattr(SessionServer, "launch", launch)
    host.launched = launched  # type: ignore[attr-defined]
    yield host
    if host.session is not None:
        await host.session.aclose()


async def test_it_plans_what_runs_and_starts_nothing(host: Host, played: PlayedSweeps) -> None:
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
    assert host.running.server.current is None


async def test_a_choice_that_cannot_be_swept_says_why_and_can_be_changed(
    host: Host, played: PlayedSweeps
) -> None:
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


async def test_it_borrows_the_device_and_gives_it_back(host: Host, may_end: asyncio.Event) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    assert host.running.server.note == "the sweep has the device; this server comes back after it"
    began = host.view
    assert began.stage is SweepStage.RUNNING
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
    may_end.set()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    assert len(host.launched) == 1  # type: ignore[attr-defined]
    assert host.running.server.note == ""
    assert host.view.maps[0].top == pytest.approx(1.5)
    await host.sweep.open()
    assert host.view.stage is SweepStage.DONE


async def test_stopped_it_goes_on_with_the_same_sweep(host: Host, may_end: asyncio.Event) -> None:
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
    may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    assert host.view.number == number
    assert [sweep.state for sweep in ResultStore.default(host.folders).sweeps()] == ["done"]


async def test_what_begins_after_a_finished_sweep_goes_on_under_its_own_number(
    host: Host, played: PlayedSweeps
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    await host.sweep.pick(1)
    asked = len(played.cells)
    held = asyncio.Event()

    async def answer(task: Task) -> Measured:
        if len(played.cells) > asked + 1:
            held.set()
            await asyncio.Event().wait()
        return await half_as_fast_again(task)

    played.answer = answer
    await host.sweep.start()
    assert (host.view.number, host.view.done) == (None, 0)
    await held.wait()
    host.sweep.stop()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    await host.running.settled()
    assert host.view.number == 2
    played.answer = half_as_fast_again
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    assert (host.view.number, host.view.done) == (2, 1)
    assert [sweep.state for sweep in ResultStore.default(host.folders).sweeps()] == ["done", "done"]


async def test_a_session_that_was_closed_during_the_check_stays_closed(
    host: Host, played: PlayedSweeps
) -> None:
    await host.sweep.open()
    played.may_check.clear()
    starting = asyncio.create_task(host.sweep.start())
    await host.until(lambda v: v.stage is SweepStage.STARTING)
    closed, host.session = host.running, None
    await closed.aclose()
    played.may_check.set()
    await starting
    assert host.view.stage is SweepStage.STOPPED
    assert host.launched == []  # type: ignore[attr-defined]
    assert ResultStore.default(host.folders).sweeps() == ()


async def test_a_device_that_was_lent_during_the_check_is_not_taken(host: Host, played: PlayedSweeps) -> None:
    await host.sweep.open()
    played.may_check.clear()
    starting = asyncio.create_task(host.sweep.start())
    await host.until(lambda v: v.stage is SweepStage.STARTING)
    held = asyncio.Event()
    loan = host.running.device.lend(_waiting(held), to="the A/B run")
    played.may_check.set()
    await starting
    assert host.view.stage is SweepStage.FAILED
    assert host.view.problem == "the A/B run has the device: stop it first, then sweep"
    await held.wait()
    loan.cancel()
    await asyncio.wait({loan})


async def test_nothing_starts_or_is_applied_while_a_kept_sweep_is_read(
    host: Host, played: PlayedSweeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    may_read, read = asyncio.Event(), sweep_watch.reopened

    async def reopened(*args: object, **kwargs: Any) -> object:
        await may_read.wait()
        return await read(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(sweep_watch, "reopened", reopened)
    picking = asyncio.create_task(host.sweep.pick(1))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="no plan yet"):
        await host.sweep.start()
    with pytest.raises(UsageError, match="nothing is recommended"):
        await host.sweep.apply(0)
    may_read.set()
    await picking
    assert (host.view.number, host.view.stage) == (1, SweepStage.DONE)
    with pytest.raises(StoreError):
        await host.sweep.pick(9)
    assert (await host.sweep.apply(0)).startswith("restarting with")
    await host.running.settled()


async def test_what_is_not_kept_is_told_once(
    host: Host, played: PlayedSweeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: Any) -> None:
        raise StoreError("results.sqlite3: the disk is full")

    monkeypatch.setattr(ResultStore, "begin_sweep", full)
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    assert host.notices == ["this sweep is not kept: results.sqlite3: the disk is full"]


async def test_it_is_refused_while_another_session_computes_on_the_device(
    host: Host, played: PlayedSweeps
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    assert host.sweep.running is None
    host.running.neighbours.tell("session 2 computes on the CPU too")
    with pytest.raises(UsageError, match="session 2 computes on the CPU too"):
        await host.sweep.start()
    assert host.view.stage is SweepStage.READY
    assert host.running.device.lent_to == ""
    host.running.neighbours.tell("")
    await host.sweep.start()
    await host.until(lambda v: v.done == 1)
    assert host.sweep.running == host.view.number
    assert host.view.number is not None


async def test_a_sweep_that_another_session_runs_is_neither_offered_nor_opened(
    host: Host, played: PlayedSweeps
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


async def test_one_borrower_does_not_take_the_device_from_another(host: Host, may_end: asyncio.Event) -> None:
    await host.sweep.open()
    ab = AbControl(
        lambda: host.session, load=_never, where=lambda: host.folders, key_of=lambda _profile: None
    )
    save(host.running.server.staging.staged.with_speculation(draft_length=9), "other", host.folders)
    await ab.choose("other")
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.RUNNING)
    with pytest.raises(UsageError, match="the sweep has the device"):
        await ab.start()
    host.sweep.stop()
    await host.until(lambda v: v.stage is SweepStage.STOPPED)
    await host.running.settled()

    held = asyncio.Event()
    ended = host.running.device.lend(_waiting(held), to="the A/B run")
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


async def test_a_newer_command_takes_the_device_back(host: Host, may_end: asyncio.Event) -> None:
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
    host: Host, played: PlayedSweeps, *, stop: bool
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


async def test_what_cannot_start_stops_nothing(host: Host, played: PlayedSweeps) -> None:
    await host.sweep.open()
    played.problem = LaunchError("the target model /m/t.gguf does not exist: correct the path")
    await host.sweep.start()
    assert host.view.stage is SweepStage.FAILED
    assert "/m/t.gguf does not exist" in host.view.problem
    assert host.running.server.staging.running is not None
    assert host.launched == []  # type: ignore[attr-defined]


async def test_a_start_waits_until_what_would_come_back_runs(host: Host, played: PlayedSweeps) -> None:
    await host.sweep.open()

    class Loading:
        state = ServerState.LOADING

        async def stop(self) -> None:
            return None

    host.running.server.current = Loading()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="starting"):
        await host.sweep.start()
    host.running.server.current = None


async def test_the_recommendation_is_staged_and_restarted(host: Host, may_end: asyncio.Event) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    with pytest.raises(UsageError, match="nothing is recommended"):
        await host.sweep.apply(0)
    may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    host.running.apply_now(lambda p: p.with_traffic(workload="prose"))
    assert await host.sweep.apply(0) == "restarting with draft-simple d.gguf k 4"
    await host.running.settled()
    running = host.running.server.staging.running
    assert running is not None
    assert (running.speculation.draft_length, running.traffic.workload) == (4, "code")
    assert host.launched[-1].speculation.draft_length == 4  # type: ignore[attr-defined]
    count = len(host.launched)  # type: ignore[attr-defined]
    assert await host.sweep.apply(0) == "draft-simple d.gguf k 4 is what runs"
    assert len(host.launched) == count  # type: ignore[attr-defined]


async def test_kept_sweeps_are_listed_and_picked(host: Host, may_end: asyncio.Event) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    (kept,) = await host.sweep.kept()
    assert (kept.number, kept.state, kept.known) == (1, "done", 1)
    await host.sweep.pick(None)
    fresh = host.view
    assert (fresh.number, fresh.stage) == (None, SweepStage.READY)
    await host.sweep.pick(1)
    assert (host.view.number, host.view.stage) == (1, SweepStage.DONE)
    assert host.view.choice == ONE
    with pytest.raises(StoreError, match="no sweep has the number 9"):
        await host.sweep.pick(9)


async def test_another_server_gets_another_plan(host: Host, may_end: asyncio.Event) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    may_end.set()
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    assert host.running.server.staging.running is not None
    host.running.server.staging.started(
        host.running.server.staging.running.with_server(model="/m/other.gguf")
    )
    await host.sweep.open()
    assert host.view.stage is SweepStage.READY
    assert host.view.model == "/m/other.gguf"


@pytest.mark.parametrize(
    "traffic", [{"concurrency": 8}, {"depth": 99}, {"max_tokens": 17}, {"ignore_eos": True}], ids=str
)
async def test_other_traffic_gets_another_plan(
    host: Host, played: PlayedSweeps, traffic: dict[str, int]
) -> None:
    await host.sweep.open()
    await host.sweep.choose(ONE)
    await host.sweep.start()
    await host.until(lambda v: v.stage is SweepStage.DONE)
    await host.running.settled()
    host.running.apply_now(lambda p: p.with_traffic(workload="prose"))
    await host.sweep.open()
    other = host.view
    assert other.stage is SweepStage.DONE
    host.running.apply_now(lambda p: p.with_traffic(**traffic))
    await host.sweep.open()
    assert host.view.stage is SweepStage.READY


async def test_a_foreign_server_gets_the_command_line_and_no_request(played: PlayedSweeps) -> None:
    async with ScriptedServer(Script(k=4)) as server:
        host = Host(TuningProfile(server=ServerSettings(url=server.url)))
        host.running.open(traffic=False)
        await host.running.settled()
        await host.sweep.open()
        assert host.view.command == "spectui sweep PROFILE --workload code"
        with pytest.raises(UsageError, match="needs a profile that starts this model"):
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
