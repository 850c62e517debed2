"""Two real servers in the strip: switched, both measured, their shared processor named, and none left behind."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from spectui.core.views.snapshot import ServerState, SessionMark
from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import save
from tests.driving import Driven, servers, strip_of
from tests.harness import pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(150)]


@pytest.fixture
def profile_files(quick_pair: DemoPair, server_binary: Path, tmp_path: Path) -> list[Path]:
    """Two small servers that differ in their draft."""
    paths = []
    for draft in quick_pair.drafts[:2]:
        profile = pair_profile(quick_pair.target, draft, server_binary)
        path = tmp_path / f"{draft.stem}.toml"
        save(profile.with_traffic(max_tokens=16, warmup=0, workload="code"), path, Folders.default())
        paths.append(path)
    return paths


def marks(driven: Driven) -> tuple[SessionMark, ...]:
    return driven.snapshot.strip.marks


def both(driven: Driven, holds: Callable[[SessionMark], bool]) -> Callable[[], bool]:
    return lambda: len(marks(driven)) == 2 and all(holds(mark) for mark in marks(driven))


async def test_two_servers_are_switched_and_measured(profile_files: list[Path]) -> None:
    assert servers() == []
    async with strip_of(*profile_files) as driven:
        await driven.until(both(driven, lambda m: m.state is ServerState.RUNNING), "two running servers")
        assert [m.label for m in marks(driven)] == [path.stem for path in profile_files]
        assert all(m.owned and m.devices == ("the CPU",) for m in marks(driven))
        first = driven.snapshot.server.pid
        assert first is not None
        await driven.until(
            lambda: "1 and 2 share the CPU: their speeds disturb each other" in driven.text("#strip"),
            "the shared processor",
        )
        await driven.until(both(driven, lambda m: m.tokens_per_second is not None), "two speeds", 90)

        await driven.press("2")
        await driven.until(lambda: driven.snapshot.server.pid != first, "the second in front")
        second = driven.snapshot.server.pid
        assert {p.pid for p in servers()} == {first, second}
        assert [m.front for m in marks(driven)] == [False, True]
        await driven.until(lambda: driven.snapshot.bet.requests > 0, "requests of the second", 90)
        assert driven.snapshot.settings.profile_name == str(profile_files[1])

        await driven.press("b")
        await driven.press("y")
        await driven.until(
            lambda: any("session 1 computes on the CPU too" in n.message for n in driven.app._notifications),
            "why no baseline is measured",
        )
        assert driven.snapshot.server.pid == second
        assert driven.snapshot.bet.baseline is None

        await driven.press("space")
        await driven.until(lambda: not marks(driven)[1].sending, "the second quiet")
        await driven.until(lambda: "send to one at a time" in driven.text("#strip"), "the milder line")
        await driven.press("1")
        await driven.until(lambda: driven.snapshot.server.pid == first, "the first in front")
        measured = driven.snapshot.bet.requests
        await driven.until(lambda: driven.snapshot.bet.requests > measured, "more requests of the first", 90)

        await driven.press("X")
        await driven.press("y")
        await driven.until(lambda: [p.pid for p in servers()] == [second], "the first server's end")
        assert driven.snapshot.server.pid == second
        assert marks(driven) == ()
        await driven.press("q")
        await driven.until(lambda: not driven.app.is_running, "the end of the app", 20)
    assert servers() == []


async def test_a_server_that_is_killed_leaves_the_other_and_quitting_ends_both(
    profile_files: list[Path],
) -> None:
    async with strip_of(*profile_files) as driven:
        await driven.until(both(driven, lambda m: m.state is ServerState.RUNNING), "two running servers")
        first = driven.snapshot.server.pid
        assert first is not None
        await driven.press("2")
        await driven.until(lambda: driven.snapshot.server.pid not in {first, None}, "the second in front")
        psutil.Process(first).kill()
        await driven.until(lambda: marks(driven)[0].state is ServerState.GONE, "the mark of the dead one")
        assert marks(driven)[1].state is ServerState.RUNNING
        await driven.press("1", "r")
        await driven.until(both(driven, lambda m: m.state is ServerState.RUNNING), "both again")
        await driven.press("q")
        await driven.until(lambda: not driven.app.is_running, "the end of the app", 20)
    assert servers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_both_servers(profile_files: list[Path], number: signal.Signals) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "spectui", "run", *map(str, profile_files)])  # noqa: S606
    app = psutil.Process(child)
    started: list[psutil.Process] = []
    while len(started) < 2:
        os.read(terminal, 65536)
        started = servers(app)
    os.kill(child, number)
    with suppress(OSError):  # the end of the terminal's last user
        while os.read(terminal, 65536):
            pass
    gone, alive = psutil.wait_procs(started, timeout=20)
    assert (len(gone), alive) == (2, [])
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == (-number if number is signal.SIGKILL else 130)
