"""An end is waited for, however often whoever waits is cancelled; no second server starts beside a dying one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from spectui.core.profile import TuningProfile
from spectui.core.views.snapshot import ServerState
from spectui.lab.servers.cancel_shield import ended, finished
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.session.session import Session
from spectui.llama.process.process import ServerProcess
from spectui.store.paths import Folders
from tests.unlaunched import plan_for

SLOW_TO_END = """
import signal, os
said = []
def on(*_):
    said.append(1)
    print("no", flush=True)
    if len(said) == 2:
        os._exit(7)
signal.signal(signal.SIGTERM, on)
print("ready", flush=True)
while True:
    signal.pause()
"""


async def let_go(gate: asyncio.Event, outer: asyncio.Task[None]) -> None:
    """Whoever waits was cancelled, and is so only when what it waits for has ended."""
    assert not outer.done()
    gate.set()
    await asyncio.wait({outer})
    assert outer.cancelled()


async def test_whoever_waits_for_a_task_and_is_cancelled_waits_for_its_cleaning_up() -> None:
    log: list[str] = []
    gate = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await gate.wait()
            log.append("cleaned up")

    inner = asyncio.create_task(work())
    outer = asyncio.create_task(ended(inner))
    await asyncio.sleep(0)
    outer.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await let_go(gate, outer)
    assert log == ["cleaned up"]


async def test_a_task_that_is_being_ended_is_not_cancelled_again() -> None:
    gate = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await gate.wait()

    inner = asyncio.create_task(work())
    await asyncio.sleep(0)
    inner.cancel()
    outer = asyncio.create_task(ended(inner))
    await asyncio.sleep(0)
    outer.cancel()
    await asyncio.sleep(0)
    assert inner.cancelling() == 1
    gate.set()
    await asyncio.wait({outer, inner})
    assert outer.cancelled()


async def test_work_that_must_end_ends_however_often_whoever_waits_is_cancelled() -> None:
    log: list[str] = []
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()
        log.append("done")

    outer = asyncio.create_task(finished(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        outer.cancel()
    await asyncio.sleep(0)
    await let_go(gate, outer)
    assert log == ["done"]


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await finished(work())


@pytest.fixture
async def dying() -> AsyncIterator[LaunchedServer]:
    """A server of ours that ends at the second SIGTERM only."""
    argv = (sys.executable, "-S", "-c", SLOW_TO_END)
    plan = plan_for(TuningProfile(), binary=Path(sys.executable), argv=argv)
    server = LaunchedServer(plan)
    server.process = await ServerProcess.start(argv)
    server.state = ServerState.RUNNING
    await said(server, "ready")
    yield server
    await server.process.stop(term_again_s=0, kill_after_s=0)


async def said(server: LaunchedServer, line: str) -> None:
    async with asyncio.timeout(10):
        while line not in server.log_tail(9):  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0.005)


def lives(server: LaunchedServer) -> bool:
    assert server.process is not None
    return psutil.pid_exists(server.process.pid)


async def test_a_cancelled_stop_is_over_when_the_server_is(dying: LaunchedServer) -> None:
    stop = asyncio.create_task(dying.stop())
    await said(dying, "no")
    stop.cancel()
    await asyncio.wait({stop})
    assert stop.cancelled()
    assert not lives(dying)
    assert dying.client._control.is_closed


async def test_a_newer_command_begins_when_the_server_of_the_older_one_is_gone(dying: LaunchedServer) -> None:
    session = Session(TuningProfile(), folders=Folders.default(), environ={})
    session.server.current = dying
    seen: list[bool] = []

    async def newer() -> None:
        seen.append(lives(dying))

    session._operations.urgent(session.server.stop)
    await said(dying, "no")
    await session._operations.urgent(newer)
    assert seen == [False]


async def test_a_session_that_is_closed_while_its_server_ends_waits_for_it(dying: LaunchedServer) -> None:
    session = Session(TuningProfile(), folders=Folders.default(), environ={})
    session.server.current = dying
    session._operations.urgent(session.server.stop)
    await said(dying, "no")
    await session.aclose()
    assert not lives(dying)
