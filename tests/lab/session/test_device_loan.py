from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spectui.core.profile import ServerSettings, TrafficSettings, TuningProfile
from spectui.core.views.snapshot import TrafficState
from spectui.errors import UsageError
from spectui.lab.session.session import Session
from spectui.store.paths import Folders
from tests.scripted_server import ScriptedServer


def session_on(url: str, tmp_path: Path) -> Session:
    profile = TuningProfile(server=ServerSettings(url=url), traffic=TrafficSettings(max_tokens=20, warmup=0))
    folders = Folders(**{name: tmp_path / name for name in ("config", "cache", "data", "state", "log")})
    return Session(profile, folders=folders, environ={})


async def until(condition: object) -> None:
    async with asyncio.timeout(10):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0)


@asynccontextmanager
async def opened(tmp_path: Path, *, traffic: bool) -> AsyncIterator[tuple[ScriptedServer, Session]]:
    """A session that has attached to a scripted server."""
    async with ScriptedServer() as server:
        session = session_on(server.url, tmp_path)
        try:
            session.open(traffic=traffic)
            await session.settled()
            yield server, session
        finally:
            await session.aclose()


async def test_traffic_on_a_foreign_server_pauses_and_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, traffic=True) as (server, session):
        await until(lambda: session.server.traffic_state is TrafficState.ON)
        seen: list[tuple[TrafficState, str, int]] = []

        async def work() -> None:
            await server.until(lambda s: s.streams == 0)
            seen.append((session.server.traffic_state, session.server.note, server.streams))

        ended = session.device.lend(work, to="the A/B run")
        await asyncio.wait({ended})
        assert seen == [(TrafficState.OFF, "the A/B run has the device; this server comes back after it", 0)]
        assert session.server.note == ""
        assert session.server.current is not None
        await until(lambda: session.server.traffic_state is TrafficState.ON)


async def test_a_newer_command_takes_the_device_back(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        session = session_on(server.url, tmp_path)
        log: list[str] = []
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append("cleaned up")

        try:
            session.open(traffic=False)
            await session.settled()
            ended = session.device.lend(work, to="the A/B run")
            await begun.wait()
            session.open(traffic=True)
            await asyncio.wait({ended})
            assert log == ["cleaned up"]
            await session.settled()
            await until(lambda: session.server.traffic_state is TrafficState.ON)
            assert session.server.note == ""
        finally:
            await session.aclose()


async def test_the_device_is_lent_from_the_command_on_until_the_last_borrower_is_done(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        session = session_on(server.url, tmp_path)
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def never() -> None:
            raise AssertionError("the newer borrower came before it began")

        async def work() -> None:
            begun.set()
            await may_end.wait()

        try:
            session.open(traffic=False)
            await session.settled()
            session.device.require_lendable("compare")
            first = session.device.lend(never, to="the sweep")
            with pytest.raises(UsageError, match="the sweep has the device: stop it first, then compare"):
                session.device.require_lendable("compare")
            second = session.device.lend(work, to="the A/B run")
            await begun.wait()
            await asyncio.wait({first})
            assert session.device.lent_to == "the A/B run"
            may_end.set()
            await asyncio.wait({second})
            assert session.device.lent_to == ""
            third = session.device.lend(never, to="the A/B run")
            third.cancel()
            await asyncio.wait({third})
            assert session.device.lent_to == ""
        finally:
            await session.aclose()


async def test_nothing_is_lent_while_a_command_is_at_work(tmp_path: Path) -> None:
    async with opened(tmp_path, traffic=False) as (_, session):
        session.device.require_lendable("compare")
        session.open(traffic=False)
        with pytest.raises(UsageError, match=r"the server is starting.*compare when that is done"):
            session.device.require_lendable("compare")
        await session.settled()
        session.device.require_lendable("compare")


async def test_traffic_that_would_spoil_a_neighbours_measurement_does_not_begin(tmp_path: Path) -> None:
    async with opened(tmp_path, traffic=False) as (server, session):
        notices: list[str] = []
        session.failures.on_notice = notices.append
        session.neighbours.tell("", disturbed="session 2 measures")
        session.toggle_traffic()
        await session.settled()
        assert (session.server.traffic_state, server.streams) == (TrafficState.OFF, 0)
        assert notices == ["session 2 measures"]
        session.neighbours.tell("")
        session.toggle_traffic()
        await until(lambda: session.server.traffic_state is TrafficState.ON)


async def test_a_closed_session_lends_nothing(tmp_path: Path) -> None:
    session = session_on("http://127.0.0.1:1", tmp_path)
    await session.aclose()
    with pytest.raises(UsageError, match="closed"):
        session.device.lend(session.settled, to="the A/B run")
    assert session.device.lent_to == ""
