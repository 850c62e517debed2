"""The strip on screen: its line, its keys, what may be clicked, and that it is not there for one session."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from spectui.core.verdict.verdict import Outcome
from spectui.core.views.sessions import MAX_SESSIONS
from spectui.core.views.snapshot import (
    ServerState,
    ServerView,
    SessionMark,
    SharedDevice,
    Snapshot,
    StripView,
)
from spectui.errors import UsageError
from spectui.tui.screens.attach import AttachScreen, typed_url
from spectui.tui.screens.confirm import ConfirmScreen
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.profiles import LoadScreen
from spectui.tui.widgets.sessions import SessionStrip
from tests.tui import fakes
from tests.tui.conftest import Opener

WORDY = " 1  qwen-32b \u25cf running 64.9 tok/s \u25b2 winning  [2] demo \u25cf running 18.0"


def texts(pilot: Pilot[None]) -> list[str]:
    strip = pilot.app.screen.query_one(SessionStrip)
    return [strip.render_line(y).text.rstrip() for y in range(strip.size.height)]


def of(*marks: SessionMark, shared: tuple[SharedDevice, ...] = ()) -> Snapshot:
    return replace(fakes.losing(), strip=StripView(marks=marks, shared=shared))


async def test_one_session_has_no_strip_and_no_number_keys(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        assert not pilot.app.screen.query_one(SessionStrip).display
        assert pilot.app.screen.query_one("#tiles").region.y == 1
        await pilot.press("1", "2")
        assert controller.calls == []


@pytest.mark.parametrize(
    ("size", "line"),
    [
        ((160, 36), f"{WORDY} tok/s \u25bc losing   3  10.0.0.5:8080 \u25cf attached ?"),
        ((80, 24), " 1  qwen-32b ● 64.9 ▲  [2] demo ● 18.0 ▼   3  10.0.0.5:8080 ● ?"),
        ((40, 12), "1\u25cf64.9\u25b2 [2]\u25cf18.0\u25bc 3\u25cf?"),
    ],
)
async def test_the_line_is_as_wordy_as_fits(opened: Opener, size: tuple[int, int], line: str) -> None:
    async with opened(fakes.several(), size=size) as (pilot, _):
        first, shared = texts(pilot)
        assert first == line
        whole = "1 and 2 share the CPU: their speeds disturb each other"
        assert shared == (whole if size[0] > len(whole) else f"{whole[:37].rstrip()}\u2026")
        assert pilot.app.screen.query_one(SessionStrip).region.y == 0


@pytest.mark.parametrize(
    ("width", "speed", "first", "last"),
    [
        (80, 99.9, "1\u25cf99.9\u25b2 2\u25cf99.9\u25b2 ", " [9]\u25cf99.9\u25b2"),
        (80, 1234.5, "1\u25cf1234\u25b2 2\u25cf1234\u25b2 ", " [9]\u25cf1234\u25b2"),
        (80, 240.5, "1\u25cf240\u25b2 2\u25cf240\u25b2 ", " [9]\u25cf240\u25b2"),
        (40, 99.9, "1\u25cf\u25b2 2\u25cf\u25b2 ", " [9]\u25cf\u25b2"),
    ],
)
async def test_nine_sessions_fit(opened: Opener, width: int, speed: float, first: str, last: str) -> None:
    marks = tuple(
        SessionMark(
            number=number,
            label="a-profile-with-a-long-name",
            front=number == 9,
            state=ServerState.RUNNING,
            tokens_per_second=speed,
            outcome=Outcome.WINNING,
        )
        for number in range(1, MAX_SESSIONS + 1)
    )
    async with opened(of(*marks), size=(width, 24)) as (pilot, _):
        (line,) = texts(pilot)
        assert line.startswith(first)
        assert line.endswith(last)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (40, 12)])
async def test_number_keys_switch(opened: Opener, size: tuple[int, int]) -> None:
    async with opened(fakes.several(), size=size) as (pilot, controller):
        await pilot.press("3", "1", "4", "9")
        assert controller.calls == [("switch", 3), ("switch", 1)]


async def test_a_click_on_a_mark_switches(opened: Opener) -> None:
    async with opened(fakes.several(), size=(120, 36)) as (pilot, controller):
        column = texts(pilot)[0].index("10.0.0.5")
        await pilot.click(SessionStrip, offset=(column + 1, 0))
        assert controller.calls == [("switch", 3)]
        await pilot.click(SessionStrip, offset=(texts(pilot)[0].index("demo") + 1, 0))
        assert controller.calls == [("switch", 3)]


async def test_the_palette_offers_the_sessions_that_there_are(opened: Opener) -> None:
    async with opened(fakes.several()) as (pilot, controller):
        commands = {c.title: c.callback for c in pilot.app.get_system_commands(pilot.app.screen)}
        assert [t for t in commands if t.startswith("session ")] == ["session 1", "session 2", "session 3"]
        await commands["session 3"]()
        assert controller.calls == [("switch", 3)]


async def test_a_label_is_shown_as_it_is(opened: Opener) -> None:
    nasty = SessionMark(number=1, label="[red]x[/red]\x1b[2J\n\u202e")
    async with opened(of(nasty, SessionMark(number=2, label="b", front=True))) as (pilot, _):
        (line,) = texts(pilot)
        assert "[red]x[/red]" in line
        assert "\x1b" not in line
        assert "\u202e" not in line


async def test_sharing_comes_and_goes_with_its_row(opened: Opener) -> None:
    quiet = of(SessionMark(number=1, label="a", front=True), SessionMark(number=2, label="b"))
    async with opened(quiet, size=(120, 36)) as (pilot, controller):
        assert len(texts(pilot)) == 1
        shared = SharedDevice(device="GPU 0", numbers=(1, 2), disturbed=True)
        controller.show(replace(quiet, strip=replace(quiet.strip, shared=(shared,))))
        await pilot.pause()
        assert texts(pilot)[1:] == ["1 and 2 share GPU 0: their speeds disturb each other"]
        controller.show(replace(quiet, strip=StripView()))
        await pilot.pause()
        assert not pilot.app.screen.query_one(SessionStrip).display


async def test_a_disturbed_device_comes_first_where_one_row_is_left(opened: Opener) -> None:
    shared = (
        SharedDevice(device="the CPU", numbers=(1, 3), disturbed=False),
        SharedDevice(device="GPU 1", numbers=(2, 4), disturbed=True),
    )
    several = of(SessionMark(number=1, label="a", front=True), shared=shared)
    async with opened(several, size=(120, 12)) as (pilot, _):
        assert texts(pilot)[1:] == ["2 and 4 share GPU 1: their speeds disturb each other"]
        await pilot.resize_terminal(120, 36)
        await pilot.pause()
        assert [text[:7] for text in texts(pilot)[1:]] == ["2 and 4", "1 and 3"]


async def test_a_further_session_from_a_profile(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("N")
        await pilot.pause()
        assert isinstance(pilot.app.screen, LoadScreen)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("down", "enter")
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("open_session", "qwen-32b")]


class Slow(fakes.FakeController):
    """A load takes until a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = asyncio.Event()
        self.loaded: list[str] = []

    async def load_profile(self, name: str) -> None:
        await self.may_end.wait()
        self.loaded.append(name)


async def test_a_further_session_cancels_no_load(opened: Opener) -> None:
    slow = Slow()
    async with opened(controller=slow) as (pilot, _):
        screen = pilot.app.screen
        assert isinstance(screen, DashboardScreen)
        screen._load("one")
        await pilot.pause()
        screen._new_session("two")
        screen._attach_session("http://host:1")
        screen._save("three")
        await pilot.pause()
        slow.may_end.set()
        await pilot.app.workers.wait_for_complete()
    assert slow.loaded == ["one"]
    assert {call[0] for call in slow.calls} >= {"open_session", "attach_session", "save_profile"}


async def test_a_further_session_at_an_address(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("A")
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, AttachScreen)
        screen.query_one(Input).value = "ftp://h"
        await pilot.press("enter")
        await pilot.pause()
        assert pilot.app.screen is screen
        assert "http://127.0.0.1:8080" in str(screen.query_one("#problem").render())
        screen.query_one(Input).value = " host:8080 "
        await pilot.press("enter")
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("attach_session", "http://host:8080")]
        assert isinstance(pilot.app.screen, DashboardScreen)


@pytest.mark.parametrize(
    ("text", "url"),
    [("h:1", "http://h:1"), ("https://h", "https://h"), ("", None), ("ftp://h", None), ("http://", None)],
)
def test_typed_addresses(text: str, url: str | None) -> None:
    assert typed_url(text) == url


async def test_closing_a_session_of_ours_asks_first(opened: Opener) -> None:
    async with opened(fakes.several()) as (pilot, controller):
        await pilot.press("X")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("n")
        await pilot.pause()
        assert controller.calls == []
        await pilot.press("X")
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("close_session",)]


async def test_closing_what_sweeps_asks_first(opened: Opener) -> None:
    several = fakes.several()
    down = replace(several, server=ServerView(owned=True), lent_to="the sweep")
    async with opened(down) as (pilot, controller):
        await pilot.press("X")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        assert controller.calls == []
        await pilot.press("y")
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("close_session",)]


async def test_closing_what_ends_no_server_does_not_ask(opened: Opener) -> None:
    foreign = replace(fakes.attached(), strip=fakes.several(3).strip)
    async with opened(foreign) as (pilot, controller):
        await pilot.press("X")
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("close_session",)]


async def test_the_only_session_is_not_closed(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        controller.fail = UsageError("this is the only session: q quits")
        await pilot.press("X")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert [n.message for n in pilot.app._notifications] == ["this is the only session: q quits"]
