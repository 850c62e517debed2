from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmView
from spectui.core.views.snapshot import ServerState, ServerView
from spectui.errors import LaunchError
from spectui.tui.keys import AB
from spectui.tui.screens.ab import AbScreen
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.help import HelpScreen
from spectui.tui.screens.profiles import LoadScreen
from spectui.tui.widgets.panel import Panel
from tests.tui import fakes
from tests.tui.conftest import Opener
from tests.tui.fakes import FakeController
from tests.tui.piloting import notices, settle, text

SIZES = [(20, 6), (40, 12), (80, 24), (120, 36), (200, 60)]


async def entered(pilot: Pilot[None], controller: FakeController, view: AbView) -> None:
    controller.ab.view = view
    await pilot.press("a")
    await settle(pilot)
    assert isinstance(pilot.app.screen, AbScreen)
    controller.calls.clear()


def test_every_key_is_described_and_unique() -> None:
    assert all(b.id and b.description and b.tooltip and b.group for b in AB)
    keys = [key for binding in AB for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", list(AbState))
async def test_every_state_fits_every_size(opened: Opener, state: AbState, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, controller):
        await entered(pilot, controller, fakes.ab(state))
        screen = pilot.app.screen
        names = ["#result", "#keys"]
        names += ["#arm-a", "#arm-b"] if size >= (80, 24) else []
        names += ["#ratio"] if size >= (40, 12) else []
        for name in names:
            region = screen.query_one(name).region
            assert region.area, name
            assert screen.region.contains_region(region), name


async def test_opening_it_starts_nothing(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("a")
        await settle(pilot)
        assert controller.calls == [("ab",)]


@pytest.mark.parametrize("key", ["escape", "a"])
async def test_back_leaves_a_run_alone(opened: Opener, key: str) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.RUNNING))
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert controller.calls == []


@pytest.mark.parametrize(
    ("state", "call"),
    [
        (AbState.READY, ("start_ab",)),
        (AbState.STARTING, ("stop_ab",)),
        (AbState.RUNNING, ("stop_ab",)),
        (AbState.STOPPED, ("start_ab",)),
        (AbState.ENDED, ("start_ab",)),
        (AbState.FAILED, ("start_ab",)),
    ],
)
async def test_space_starts_and_stops(opened: Opener, state: AbState, call: tuple[Any, ...]) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(state))
        await pilot.press("space")
        await settle(pilot)
        assert controller.calls == [call]


async def test_space_waits_while_servers_are_being_ended(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.STOPPING))
        await pilot.press("space")
        await settle(pilot)
        assert controller.calls == []


async def test_a_start_that_is_refused_says_why(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab())
        controller.fail = LaunchError("the target model x.gguf does not exist: correct the path")
        await pilot.press("space")
        await settle(pilot)
        assert notices(pilot) == ["the target model x.gguf does not exist: correct the path"]


@pytest.mark.parametrize(
    ("keys", "arm"),
    [
        (("enter",), "b"),
        (("1", "enter"), "a"),
        (("left", "enter"), "a"),
        (("1", "2", "enter"), "b"),
        (("left", "right", "enter"), "b"),
    ],
)
async def test_enter_applies_the_chosen_arm_else_the_faster(
    opened: Opener, keys: tuple[str, ...], arm: str
) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.ENDED))
        await pilot.press(*keys)
        await settle(pilot)
        assert controller.calls == [("apply_arm", arm)]
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert notices(pilot) == [f"{arm.upper()} is staged: r restarts with it"]


async def test_without_a_winner_enter_waits_for_a_choice(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, replace(fakes.ab(AbState.ENDED), faster=None))
        await pilot.press("enter")
        await settle(pilot)
        assert controller.calls == []
        await pilot.press("1", "enter")
        await settle(pilot)
        assert controller.calls == [("apply_arm", "a")]


async def test_nothing_is_applied_while_it_runs(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.RUNNING))
        await pilot.press("1", "enter")
        await settle(pilot)
        assert controller.calls == []


async def test_what_cannot_be_applied_stays_on_screen(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.ENDED))
        controller.fail = LaunchError("no")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, AbScreen)
        assert notices(pilot) == ["no"]


async def test_b_is_taken_from_the_profiles(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, replace(fakes.ab(), b=None))
        await pilot.press("space")
        assert controller.calls == []
        assert "There is no B yet" in text(pilot, "#result")
        await pilot.press("l")
        await settle(pilot)
        assert isinstance(pilot.app.screen, LoadScreen)
        assert pilot.app.screen.query_one(OptionList).option_count == len(fakes.PROFILES)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, AbScreen)
        assert controller.calls == [("choose", "qwen-32b")]


async def test_without_anything_to_compare_it_says_so(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, AbView())
        assert "Nothing runs yet" in text(pilot, "#result")
        await pilot.press("space", "l", "enter")
        await settle(pilot)
        assert controller.calls == []
        assert isinstance(pilot.app.screen, AbScreen)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
async def test_what_differs_is_highlighted_on_both_sides(opened: Opener, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, controller):
        await entered(pilot, controller, fakes.ab())
        for name, length in (("#arm-a", "16"), ("#arm-b", "4")):
            panel = pilot.app.screen.query_one(name, Panel)
            warn = panel._style("warn", "")
            marked = [
                "".join(s.text for s in panel.render_line(y)).split()
                for y in range(panel.size.height)
                if any(s.style == warn and s.text.strip() for s in panel.render_line(y))
            ]
            assert marked == [["length", length], ["threads", "default" if name == "#arm-a" else "4"]]


async def test_a_running_comparison_shows_whose_turn_it_is_and_that_nothing_is_decided(
    opened: Opener,
) -> None:
    snapshot = replace(fakes.losing(), server=ServerView(state=ServerState.NONE, owned=True))
    async with opened(snapshot, size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.RUNNING))
        assert "answers now" in str(pilot.app.screen.query_one("#arm-b").border_title)
        assert "answers now" not in str(pilot.app.screen.query_one("#arm-a").border_title)
        middle = text(pilot, "#ratio")
        assert "so far" in middle
        assert "12 of at most 24 pairs" in middle
        assert "All 12 answers are identical." in middle
        assert "RUNNING" in text(pilot, "#result")
        assert "comes back afterwards" in text(pilot, "#result")
        assert "stopped for this" in text(pilot, "AbHeader")


async def test_nothing_is_promised_back_where_nothing_ran(opened: Opener) -> None:
    base = fakes.losing()
    gone = replace(base, settings=replace(base.settings, running=None))
    async with opened(gone, size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.RUNNING))
        assert "space stops it" in text(pilot, "#result")
        assert "comes back" not in text(pilot, "#result")


async def test_the_result_shows_drift_and_where_outputs_part(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.ENDED))
        result, middle = text(pilot, "#result"), " ".join(text(pilot, "#ratio").split())
        assert "DECIDED  B is 3.61x faster than A (3.42 to 3.81) on code, 24 prompts" in result
        assert "the machine drifted" in result
        assert "enter applies B" in result
        assert "2 of 24 answers differ. First: code-17 at character 57" in middle


async def test_a_failure_and_hostile_text_are_shown_plainly(opened: Opener) -> None:
    view = replace(fakes.ab(AbState.FAILED), problem="lost \x1b[31m[red]it")
    assert view.a is not None
    view = replace(view, a=replace(view.a, name="[bold]\x1b[2Jname"))
    async with opened() as (pilot, controller):
        await entered(pilot, controller, view)
        assert "FAILED  lost [red]it" in text(pilot, "#result")
        assert "\x1b" not in str(pilot.app.screen.query_one("#arm-a").border_title)
        assert "name" in str(pilot.app.screen.query_one("#arm-a").border_title)


async def test_a_foreign_server_is_named_before_anything_is_sent(opened: Opener) -> None:
    url = "http://10.0.0.5:8080"
    view = replace(
        fakes.ab(),
        a=ArmView(profile=TuningProfile(server=ServerSettings(url=url)), name="running"),
    )
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, view)
        assert f"it sends to {url}" in text(pilot, "#result")
        assert controller.calls == []


async def test_clicks_choose_apply_and_start(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.ENDED))
        screen = pilot.app.screen
        assert isinstance(screen, AbScreen)
        await pilot.click("#arm-a")
        await pilot.pause()
        assert screen.chosen == "a"
        assert screen.query_one("#arm-a").has_class("-chosen")
        assert not screen.query_one("#arm-b").has_class("-chosen")
        keys = text(pilot, "#keys")
        for words, call in (("run", ("start_ab",)), ("apply", ("apply_arm", "a"))):
            await pilot.click("#keys", offset=(keys.index(words) + 1, 0))
            await settle(pilot)
            assert controller.calls[-1] == call


async def test_palette_offers_its_actions(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab())
        commands = {c.title: c for c in pilot.app.get_system_commands(pilot.app.screen)}
        assert commands.keys() >= {binding.description for binding in AB}
        await commands["run"].callback()
        await settle(pilot)
        assert controller.calls == [("start_ab",)]


async def test_help_lists_its_keys(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.ab())
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)
        assert {b.action for b in pilot.app.screen._rows} >= {b.action for b in AB}


async def test_an_equal_view_paints_nothing(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.ab(AbState.RUNNING))
        painted: list[str | None] = []
        refresh = Panel.refresh

        def counted(self: Panel, *regions: Any, **options: Any) -> Any:
            painted.append(self.id)
            return refresh(self, *regions, **options)

        monkeypatch.setattr(Panel, "refresh", counted)
        controller.ab.show(fakes.ab(AbState.RUNNING))
        await pilot.pause()
        assert painted == []
