from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from spectui.core.views.run_list import LIMIT, RunList
from spectui.errors import StoreError
from spectui.tui.keys import HISTORY
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.history import CompareScreen, HistoryScreen
from tests.tui import fakes
from tests.tui.conftest import Opener
from tests.tui.fakes import FakeController
from tests.tui.piloting import settle

SIZES = [(20, 6), (80, 24), (120, 36), (200, 60)]


async def entered(pilot: Pilot[None], controller: FakeController, runs: RunList | None = None) -> None:
    controller.runs.list = runs if runs is not None else fakes.kept_runs()
    await pilot.press("h")
    await settle(pilot)
    assert isinstance(pilot.app.screen, HistoryScreen)
    assert controller.calls == [("runs", LIMIT)]
    controller.calls.clear()


def ids(pilot: Pilot[None]) -> list[str | None]:
    return [key.value for key in pilot.app.screen.query_one(DataTable).rows]


def said(pilot: Pilot[None], widget: str) -> str:
    return str(pilot.app.screen.query_one(widget, Static).render())


def test_every_key_is_described_and_unique() -> None:
    assert all(b.id and b.description and b.tooltip and b.group for b in HISTORY)
    keys = [key for binding in HISTORY for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("size", SIZES)
async def test_it_fits_every_size(opened: Opener, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, controller):
        await entered(pilot, controller)
        screen = pilot.app.screen
        for name in ("#head", "#filter", "#runs", "#keys"):
            region = screen.query_one(name).region
            assert region.area, name
            assert screen.region.contains_region(region), name


async def test_runs_come_newest_first_with_their_remarks(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        table = pilot.app.screen.query_one(DataTable)
        assert ids(pilot) == ["6", "5", "4", "3", "2", "1"]
        assert [str(table.get_cell(run, "remark")) for run in ("6", "5", "1")] == ["stale", "", "unfinished"]
        assert [str(table.get_cell(run, "tok/s")) for run in ("6", "1")] == ["36.0", "—"]
        assert "6 runs" in said(pilot, "#head")


async def test_an_empty_store_is_one_friendly_line(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, RunList())
        assert not pilot.app.screen.query_one(DataTable).display
        assert "Nothing was measured yet" in said(pilot, "#remark")
        await pilot.press("space", "c", "slash")
        await settle(pilot)
        assert controller.calls == []


async def test_a_store_that_cannot_be_read_says_so(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        controller.fail = StoreError("results.sqlite3 is damaged: move it away")
        await pilot.press("h")
        await settle(pilot)
        assert said(pilot, "#remark") == "results.sqlite3 is damaged: move it away"


async def test_a_cut_is_said(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, replace(fakes.kept_runs(500), cut=True))
        assert "500 runs, the newest 500; spectui history lists older ones" in said(pilot, "#head")
        assert len(ids(pilot)) == 500


async def test_what_is_typed_filters_and_the_cursor_stays_on_its_run(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        table = pilot.app.screen.query_one(DataTable)
        await pilot.press("down", "down", "down", "slash", *"stale")
        await pilot.pause()
        assert ids(pilot) == ["6", "3"]
        assert table.cursor_row == 1
        assert "2 of 6 runs" in said(pilot, "#head")
        await pilot.press("enter")
        await pilot.pause()
        assert table.has_focus
        await pilot.press("escape")
        await pilot.pause()
        assert ids(pilot) == ["6", "5", "4", "3", "2", "1"]
        assert table.cursor_row == 3
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_no_match_is_said_and_escape_drops_the_filter(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        await pilot.press("slash", *"nowhere", "enter")
        await pilot.pause()
        assert "No run has all of these words" in said(pilot, "#remark")
        await pilot.press("escape")
        await pilot.pause()
        assert len(ids(pilot)) == 6
        assert pilot.app.screen.query_one(Input).value == ""


async def test_letters_of_other_keys_go_into_the_filter(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        await pilot.press("slash", "q", "c", "r", "h", "question_mark")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HistoryScreen)
        assert pilot.app.screen.query_one(Input).value == "qcrh?"


@pytest.mark.parametrize(
    ("keys", "pair"),
    [
        (("space", "down", "space", "c"), (5, 6)),
        (("enter", "down", "down", "enter", "c"), (4, 6)),
        (("space", *["down"] * 5, "c"), (1, 6)),
        (("space", "down", "space", "down", "space", "c"), (4, 5)),
    ],
)
async def test_two_runs_are_compared(opened: Opener, keys: tuple[str, ...], pair: tuple[int, int]) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await settle(pilot)
        assert controller.calls == [("details", *pair)]
        assert isinstance(pilot.app.screen, CompareScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HistoryScreen)


@pytest.mark.parametrize("keys", [("c",), ("space", "c"), ("space", "space", "c")])
async def test_one_run_is_not_enough(opened: Opener, keys: tuple[str, ...]) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await settle(pilot)
        assert controller.calls == []
        assert next(n.message for n in pilot.app._notifications).startswith("mark a run")


async def test_marks_show_and_outlive_a_filter(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller)
        await pilot.press("space")
        await pilot.pause()
        table = pilot.app.screen.query_one(DataTable)
        assert str(table.get_cell("6", "mark")) == "●"
        assert "marked: 6" in said(pilot, "#head")
        await pilot.press("slash", *"k=4", "enter", "space")
        await pilot.pause()
        assert ids(pilot) == ["5", "3", "1"]
        assert "marked: 6 and 5" in said(pilot, "#head")
        await pilot.press("c")
        await settle(pilot)
        assert controller.calls == [("details", 5, 6)]


async def test_a_second_click_on_a_run_marks_it(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        for _ in range(2):
            await pilot.click("#runs", offset=(20, 3))
            await pilot.pause()
        assert "marked: 4" in said(pilot, "#head")


async def test_reading_again_keeps_marks_of_runs_that_are_still_there(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller)
        await pilot.press("space", "down")
        await pilot.pause()
        await pilot.press("space")
        await pilot.pause()
        controller.runs.list = RunList(rows=controller.runs.list.rows[1:])
        await pilot.press("r")
        await settle(pilot)
        assert ids(pilot) == ["5", "4", "3", "2", "1"]
        assert "marked: 5" in said(pilot, "#head")
        assert pilot.app.screen.query_one(DataTable).cursor_row == 0


async def test_help_and_palette_know_its_keys(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller)
        commands = {c.title for c in pilot.app.get_system_commands(pilot.app.screen)}
        assert {"mark", "compare", "filter", "reload"} <= commands
