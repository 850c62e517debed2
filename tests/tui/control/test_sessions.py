"""The strip's controller over real sessions on scripted servers: no screen, only what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from textual.message import Message

from spectui.core.profile import BaselineSettings, ServerSettings, TrafficSettings, TuningProfile
from spectui.core.views.sessions import MAX_SESSIONS
from spectui.core.views.snapshot import ServerState, ServerView, SessionMark, Snapshot, TrafficState
from spectui.core.views.sweep import SweepStage, SweepView
from spectui.errors import ProfileError, UsageError
from spectui.store.paths import Folders
from spectui.store.profiles import remember_last, save
from spectui.tui.control.opening import Opening
from spectui.tui.control.sessions import SessionsController
from spectui.tui.messages import DraftsReady, Notice, SnapshotReady, SweepReady
from tests.scripted_server import Script, ScriptedServer


def opening_of(url: str) -> Opening:
    profile = TuningProfile(
        server=ServerSettings(url=url),
        traffic=TrafficSettings(max_tokens=16, warmup=0),
        baseline=BaselineSettings(tokens_per_second=34.0),
    )
    return Opening(profile=profile)


class Watched:
    """A strip and what it said."""

    def __init__(self, strip: SessionsController) -> None:
        self.strip = strip
        self.said: list[Message] = []
        self._news = asyncio.Event()
        strip.start(self._take)

    def _take(self, message: Message) -> None:
        self.said.append(message)
        self._news.set()

    @property
    def snapshot(self) -> Snapshot:
        return next((m.snapshot for m in reversed(self.said) if isinstance(m, SnapshotReady)), Snapshot())

    @property
    def marks(self) -> tuple[SessionMark, ...]:
        return self.snapshot.strip.marks

    @property
    def notices(self) -> list[str]:
        return [m.text for m in self.said if isinstance(m, Notice)]

    @property
    def front(self) -> str | None:
        return self.snapshot.settings.staged.server.url

    async def until(self, fits: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(20):
                while not fits():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pytest.fail(f"never came: {what}; {self.marks}, {self.snapshot.server}, {self.notices}")

    async def up(self) -> None:
        await self.until(
            lambda: bool(self.marks) and all(mark.state is ServerState.ATTACHED for mark in self.marks),
            "every server attached",
        )


@asynccontextmanager
async def strip_on(count: int) -> AsyncIterator[tuple[Watched, list[ScriptedServer]]]:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(ScriptedServer(Script(rate=400), seed=n)) for n in range(count)
        ]
        watched = Watched(SessionsController(*(opening_of(server.url) for server in servers)))
        try:
            yield watched, servers
        finally:
            await watched.strip.shutdown()


async def test_a_single_session_has_no_marks() -> None:
    async with strip_on(1) as (watched, _):
        await watched.until(lambda: watched.snapshot.server.state is ServerState.ATTACHED, "attached")
        assert watched.marks == ()


async def test_commands_reach_the_one_in_front_and_the_others_go_on() -> None:
    async with strip_on(3) as (watched, servers):
        await watched.up()
        assert [(m.number, m.front, m.label) for m in watched.marks] == [
            (number, number == 1, server.url.removeprefix("http://"))
            for number, server in enumerate(servers, 1)
        ]
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: watched.marks[0].sending, "traffic of the first")
        watched.strip.switch(2)
        assert watched.front == servers[1].url
        assert [m.front for m in watched.marks] == [False, True, False]
        second = watched.snapshot
        assert second.traffic is TrafficState.OFF
        watched.strip.front.set_temperature(0.7)
        assert watched.snapshot.settings.staged.sampling.temperature == 0.7
        before = servers[0].counters.tokens
        await servers[0].until(lambda s: s.counters.tokens > before + 16)
        await watched.until(lambda: watched.marks[0].tokens_per_second is not None, "a speed of the first")
        assert servers[1].counters.tokens == servers[2].counters.tokens == 0
        watched.strip.switch(1)
        assert watched.snapshot.traffic is not TrafficState.OFF
        assert watched.snapshot.settings.staged.sampling.temperature == 0.0
        assert watched.snapshot.bet.passes > 0
        await watched.until(
            lambda: bool(watched.snapshot.curve.measured or watched.snapshot.history.points), "a point of it"
        )


async def test_the_mark_in_the_background_is_that_of_the_screen() -> None:
    async with strip_on(2) as (watched, _):
        await watched.up()
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: watched.snapshot.bet.requests >= 12, "some requests")
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: not watched.marks[0].sending, "quiet")
        shown = watched.snapshot
        watched.strip.switch(2)
        await watched.until(lambda: not watched.marks[0].front, "in the background")
        mark = watched.marks[0]
        assert shown.bet.tokens_per_second is not None
        assert mark.tokens_per_second == round(shown.bet.tokens_per_second, 1)
        assert mark.outcome is shown.verdict.outcome
        watched.strip.switch(1)
        assert watched.snapshot.bet == shown.bet
        assert watched.snapshot.curve == shown.curve


async def test_a_number_without_a_session_does_nothing() -> None:
    async with strip_on(2) as (watched, _):
        await watched.up()
        for number in (0, 3, 9, -1):
            watched.strip.switch(number)
        assert watched.marks[0].front


async def test_a_server_that_dies_takes_no_other_session_down() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: watched.marks[0].sending, "traffic")
        watched.strip.switch(2)
        servers[0].die()
        await watched.until(lambda: watched.marks[0].state is ServerState.GONE, "the mark of a lost server")
        assert watched.marks[1].state is ServerState.ATTACHED
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: watched.snapshot.bet.requests > 0, "requests of the second")


async def test_a_session_that_cannot_be_read_takes_no_other_down() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        broken = watched.strip._places[1].control
        assert broken.host.reader is not None
        broken.host.reader.read = broken.host.reader.glance = _failing  # type: ignore[method-assign]
        await watched.until(lambda: any("ZeroDivisionError" in text for text in watched.notices), "a notice")
        assert watched.notices[-1].startswith("session 2: ")
        watched.strip.switch(2)
        assert watched.marks[1].front
        watched.strip.switch(1)
        watched.strip.front.toggle_traffic()
        await watched.until(lambda: watched.snapshot.bet.requests > 0, "requests of the first")
        assert watched.front == servers[0].url


async def test_closing_brings_the_neighbour_forward_and_renumbers() -> None:
    async with strip_on(3) as (watched, servers):
        await watched.up()
        watched.strip.switch(2)
        await watched.strip.close_session()
        assert watched.front == servers[2].url
        assert [(m.number, m.front) for m in watched.marks] == [(1, False), (2, True)]
        await watched.strip.close_session()
        assert watched.front == servers[0].url
        assert watched.marks == ()
        with pytest.raises(UsageError, match="only session: q quits"):
            await watched.strip.close_session()
        assert all(("POST", "/completion") not in server.asked() for server in servers)


async def test_a_close_that_is_not_waited_for_is_finished_all_the_same() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        watched.strip.front.toggle_traffic()
        await servers[0].until(lambda s: s.streams > 0)
        closing = asyncio.ensure_future(watched.strip.close_session())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        await watched.strip.shutdown()
        await servers[0].until(lambda s: s.streams == 0)


async def test_a_load_that_is_not_waited_for_is_finished_all_the_same() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        other = opening_of(servers[1].url).profile
        assert other is not None
        save(other, "other", Folders.default())
        session = watched.strip.front._session
        assert session is not None
        ending, may_end, real = asyncio.Event(), asyncio.Event(), session.aclose

        async def slowly() -> None:
            ending.set()
            await may_end.wait()
            await real()

        session.aclose = slowly  # type: ignore[method-assign]
        loading = asyncio.ensure_future(watched.strip.front.load_profile("other"))
        await ending.wait()
        watched.strip.front.restart()
        loading.cancel()
        await asyncio.wait({loading})
        may_end.set()
        await watched.until(lambda: watched.front == servers[1].url, "the profile that was loaded")
        await watched.up()
        assert watched.front == servers[1].url
        assert session.server.current is None


async def test_what_a_session_says_while_it_is_closed_is_said() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        first = watched.strip.front
        real = first.host.shutdown

        async def telling() -> None:
            first.host.notice("results are not kept: the disk is full")
            await real()

        first.host.shutdown = telling  # type: ignore[method-assign]
        await watched.strip.close_session()
        label = servers[0].url.removeprefix("http://")
        assert watched.notices == [f"session {label}, closed: results are not kept: the disk is full"]


async def test_a_session_that_cannot_end_keeps_no_other_from_ending() -> None:
    async with strip_on(2) as (watched, servers):
        await watched.up()
        for number in (2, 1):
            watched.strip.switch(number)
            watched.strip.front.toggle_traffic()
        await servers[1].until(lambda s: s.streams > 0)
        first = watched.strip._places[0].control
        real = first.host.shutdown

        async def failing() -> None:
            await real()
            raise RuntimeError("stuck")

        first.host.shutdown = failing  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="stuck"):
            await watched.strip.shutdown()
        await servers[1].until(lambda s: s.streams == 0)
        first.host.shutdown = real  # type: ignore[method-assign]


async def test_further_sessions_come_to_the_front_up_to_nine() -> None:
    async with strip_on(1) as (watched, servers):
        await watched.until(lambda: watched.snapshot.server.state is ServerState.ATTACHED, "attached")
        for number in range(2, MAX_SESSIONS + 1):
            await watched.strip.attach_session(servers[0].url)
            assert watched.marks[-1].front
            assert len(watched.marks) == number
        logs = {place.opening.log_name for place in watched.strip._places}
        assert len(logs) == MAX_SESSIONS
        assert {"llama-server.log", "llama-server-9.log"} <= logs
        with pytest.raises(UsageError, match="9 sessions are open"):
            await watched.strip.attach_session(servers[0].url)
        with pytest.raises(UsageError, match="9 sessions are open"):
            await watched.strip.open_session("code-draft")
        assert len(watched.marks) == MAX_SESSIONS


async def test_what_cannot_be_loaded_opens_nothing() -> None:
    async with strip_on(1) as (watched, _):
        with pytest.raises(ProfileError):
            await watched.strip.open_session("nobody")
        assert watched.marks == ()


async def test_a_session_with_nothing_in_it_is_used_first() -> None:
    async with ScriptedServer(Script()) as server:
        watched = Watched(SessionsController(Opening()))
        try:
            await watched.strip.attach_session(server.url)
            await watched.until(lambda: watched.snapshot.server.state is ServerState.ATTACHED, "attached")
            assert watched.marks == ()
            assert watched.front == server.url
        finally:
            await watched.strip.shutdown()


async def test_drafts_of_one_session_are_not_offered_in_another() -> None:
    async with strip_on(2) as (watched, _):
        await watched.up()
        watched.strip.switch(2)
        assert [m.drafts for m in watched.said if isinstance(m, DraftsReady)][-1:] == [()]


async def test_who_borrows_the_device_of_a_server_keeps_it() -> None:
    async with strip_on(1) as (watched, _):
        control = watched.strip.front
        await watched.until(lambda: watched.snapshot.server.state is ServerState.ATTACHED, "attached")
        assert control._session is not None
        control.host.devices = ("GPU 0",)
        borrowed = [control.host.borrowed]
        begun, done = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await done.wait()

        task = control._session.device.lend(work, to="the sweep")
        await begun.wait()
        borrowed.append(control.host.borrowed)
        done.set()
        await task
        assert [*borrowed, control.host.borrowed] == [(), ("GPU 0",), ()]


KEYED = {"SPECTUI_API_KEY": "secret"}


async def test_a_key_of_the_environment_goes_to_addresses_that_are_typed() -> None:
    async with ScriptedServer(Script()) as server:
        watched = Watched(SessionsController(Opening(environ=KEYED)))
        try:
            for _ in range(2):
                await watched.strip.attach_session(server.url)
                await watched.until(
                    lambda: (
                        watched.front == server.url and watched.snapshot.server.state is ServerState.ATTACHED
                    ),
                    "attached",
                )
                session = watched.strip.front._session
                assert session is not None
                assert session.server._api_key == "secret"
                assert watched.strip.front.ab._key_of(session.server.staging.staged) == "secret"
            assert len(watched.marks) == 2
        finally:
            await watched.strip.shutdown()


def test_a_key_that_was_asked_for_an_address_goes_to_no_other() -> None:
    asked = replace(opening_of("http://a:1"), api_key="asked", environ=KEYED)
    strip = SessionsController(asked)
    strip._begin = lambda place: None  # type: ignore[method-assign]
    asyncio.run(strip.attach_session("http://b:1"))
    at_a, at_b = (place.opening.profile for place in strip._places)
    assert at_a is not None
    assert at_b is not None
    keys = [(place.opening.key_of(at_a), place.opening.key_of(at_b)) for place in strip._places]
    assert keys == [("asked", "secret"), ("secret", "secret")]


@pytest.mark.parametrize("way", ["last", "load", "open"])
async def test_a_key_of_the_environment_goes_to_profiles_that_are_opened(way: str) -> None:
    async with ScriptedServer(Script()) as server:
        profile = opening_of(server.url).profile
        assert profile is not None
        save(profile, "remote", Folders.default())
        remember_last("remote", Folders.default())
        strip = SessionsController(Opening(environ=KEYED, last=way == "last"))
        watched = Watched(strip)
        try:
            if way == "load":
                await strip.front.load_profile("remote")
            elif way == "open":
                await strip.open_session("remote")
                await strip.open_session("remote")
                await watched.until(lambda: len(watched.marks) == 2, "two sessions")
            await watched.until(lambda: watched.snapshot.server.state is ServerState.ATTACHED, "attached")
            sessions = [place.control._session for place in strip._places]
            assert [session and session.server._api_key for session in sessions] == ["secret"] * len(sessions)
        finally:
            await strip.shutdown()


CPU = "the CPU"
SENDING = Snapshot(
    server=ServerView(state=ServerState.RUNNING, owned=True, devices=(CPU,)), traffic=TrafficState.ON
)


def test_a_session_is_told_who_disturbs_it_and_what_is_swept_elsewhere() -> None:
    strip = SessionsController(Opening(), Opening())
    one, other = strip._places
    one.host.devices = other.host.devices = (CPU,)
    strip._take(one, SnapshotReady(replace(SENDING, traffic=TrafficState.OFF)))
    one.host.neighbours.require_quiet()
    strip._take(other, SnapshotReady(SENDING))
    with pytest.raises(UsageError, match=r"session 2 computes on the CPU too.*2 and space"):
        one.host.neighbours.require_quiet()
    other.host.neighbours.require_quiet()
    swept = SweepView(number=3, stage=SweepStage.RUNNING)
    other.control.sweep._show(swept)
    strip._take(other, SweepReady(swept))
    with pytest.raises(UsageError, match="sweep 3 runs in another session"):
        one.host.neighbours.require_free(3)
    other.host.neighbours.require_free(3)
    strip._take(other, SnapshotReady(replace(SENDING, traffic=TrafficState.OFF)))
    one.host.neighbours.require_quiet()
    assert one.host.neighbours.disturbed == ""
    strip._take(other, SnapshotReady(replace(SENDING, traffic=TrafficState.BASELINE)))
    assert one.host.neighbours.disturbed.startswith("session 2 measures on the CPU")
    assert other.host.neighbours.disturbed == ""


async def test_whoever_is_left_alone_is_not_disturbed() -> None:
    strip = SessionsController(Opening(), Opening())
    one, other = strip._places
    one.host.devices = (CPU,)
    strip._take(other, SnapshotReady(SENDING))
    strip.switch(2)
    await strip.close_session()
    one.host.neighbours.require_quiet()
    assert one.host.neighbours.disturbed == ""


def test_a_key_goes_to_its_own_address_only() -> None:
    one, other = opening_of("http://a:1"), opening_of("http://b:1")
    keyed = Opening(profile=one.profile, api_key="secret")
    assert one.profile is not None
    assert other.profile is not None
    assert keyed.key_of(one.profile) == "secret"
    assert keyed.key_of(other.profile) is None


def test_ten_are_too_many() -> None:
    with pytest.raises(UsageError, match="10 sessions: there are keys for 9"):
        SessionsController(*[Opening()] * 10)


def _failing() -> Snapshot:
    raise ZeroDivisionError
