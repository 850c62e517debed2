from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from textual.app import App
from textual.widgets import Input, Markdown, OptionList, Static

from spectui.core.bet.estimates import BetReading, Estimate
from spectui.core.views.snapshot import Snapshot
from spectui.errors import ProfileError, ServerGone, SpectuiError
from spectui.guide.pages import TOPICS, page
from spectui.store.paths import Folders
from spectui.store.profiles import path_of
from spectui.tui.control.interface import ProfileOption
from spectui.tui.keys import DASHBOARD
from spectui.tui.messages import DraftsReady, Notice
from spectui.tui.screens.baseline import BaselineScreen
from spectui.tui.screens.command import CommandScreen
from spectui.tui.screens.confirm import ConfirmScreen
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.dialog import Palette
from spectui.tui.screens.drafts import DraftScreen
from spectui.tui.screens.help import READING, HelpScreen, keys_table
from spectui.tui.screens.picker import PickerScreen
from spectui.tui.screens.profiles import LONGEST, LoadScreen, SaveScreen, name_problem
from spectui.tui.screens.welcome import WelcomeScreen
from tests.tui import fakes
from tests.tui.conftest import Opener


def notices(pilot: object) -> list[str]:
    return [notice.message for notice in pilot.app._notifications]  # type: ignore[attr-defined]


def test_every_key_is_described_and_unique() -> None:
    assert all(
        binding.id and binding.description and binding.tooltip and binding.group for binding in DASHBOARD
    )
    assert len({binding.id for binding in DASHBOARD}) == len(DASHBOARD)
    keys = [key for binding in DASHBOARD for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("key", "call"),
    [
        ("space", ("toggle_traffic",)),
        ("B", ("apply_best",)),
        ("T", ("set_temperature", 0.1)),
        ("t", ("set_temperature", 0.0)),
    ],
)
@pytest.mark.parametrize("size", [(80, 24), (120, 36), (40, 12)])
async def test_keys_that_act_at_once(
    opened: Opener, key: str, call: tuple[object, ...], size: tuple[int, int]
) -> None:
    async with opened(size=size) as (pilot, controller):
        await pilot.press(key)
        await pilot.pause()
        assert controller.calls == [call]


@pytest.mark.parametrize(
    ("key", "length"),
    [
        ("left_square_bracket", 12),
        ("comma", 12),
        ("right_square_bracket", 24),
        ("full_stop", 24),
    ],
)
async def test_draft_length(opened: Opener, key: str, length: int) -> None:
    async with opened() as (pilot, controller):
        await pilot.press(key)
        await pilot.pause()
        assert controller.staged.speculation.draft_length == length
        assert pilot.app.screen.query_one("#command").display


async def test_length_of_an_ngram_mode(opened: Opener) -> None:
    profile = fakes.PROFILE.with_speculation(mode="ngram-simple")
    async with opened(fakes.with_staged(fakes.losing(), profile)) as (pilot, controller):
        await pilot.press("comma")
        assert controller.staged.speculation.ngram_length == 32
        assert controller.staged.speculation.draft_length == 16


async def test_mode_picker_starts_on_the_current_mode(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("n")
        assert isinstance(pilot.app.screen, PickerScreen)
        assert pilot.app.screen.query_one(OptionList).highlighted == fakes.MODES.index("draft-simple")
        await pilot.press("up", "enter")
        await pilot.pause()
        assert controller.staged.speculation.mode == "off"
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_a_mode_that_needs_a_draft_asks_for_one(opened: Opener) -> None:
    profile = fakes.PROFILE.with_speculation(mode="off", draft_model=None)
    base = fakes.losing()
    snapshot = replace(base, settings=replace(base.settings, running=profile, staged=profile))
    async with opened(snapshot) as (pilot, controller):
        await pilot.press("n", "down", "enter")
        await pilot.pause()
        assert controller.staged.speculation.mode == "draft-simple"
        assert isinstance(pilot.app.screen, DraftScreen)


async def test_escape_leaves_a_picker_without_a_choice(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("n", "escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert controller.calls == []


async def test_draft_picker_skips_incompatible_files_and_follows_later_answers(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("d")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        screen = pilot.app.screen
        options = screen.query_one(OptionList)
        assert options.option_count == 3
        assert options.get_option_at_index(2).disabled
        assert "token 0 differs" in str(options.get_option_at_index(2).prompt)
        await pilot.press("down")
        assert options.highlighted == 1
        tested = tuple(replace(draft, compatible=draft.compatible is not False) for draft in fakes.DRAFTS)
        assert controller.sink is not None
        controller.sink(DraftsReady(tested))
        await pilot.pause()
        assert options.highlighted == 1
        assert str(screen.query_one("#state", Static).content) == "3 draft files"
        await pilot.press("R")
        assert ("rescan_drafts",) in controller.calls
        await pilot.press("enter")
        await pilot.pause()
        assert controller.staged.speculation.draft_model == "/models/24-blocks.gguf"


async def test_choosing_a_draft_turns_drafting_on(opened: Opener) -> None:
    snapshot = fakes.with_staged(fakes.losing(), fakes.PROFILE.with_speculation(mode="off"))
    async with opened(snapshot) as (pilot, controller):
        await pilot.press("d")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert controller.staged.speculation.mode == "draft-simple"


async def test_p_min_picker(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("p", "down", "enter")
        await pilot.pause()
        assert controller.staged.speculation.p_min == pytest.approx(0.1)


async def test_lookup_picker_of_an_ngram_mode(opened: Opener) -> None:
    profile = fakes.PROFILE.with_speculation(mode="ngram-simple")
    async with opened(fakes.with_staged(fakes.losing(), profile)) as (pilot, controller):
        await pilot.press("p", "down", "enter")
        await pilot.pause()
        assert controller.staged.speculation.ngram_lookup == 2


@pytest.mark.parametrize(("key", "call"), [("w", ("set_workload", "prose")), ("c", ("set_concurrency", 2))])
async def test_pickers_of_what_needs_no_restart(opened: Opener, key: str, call: tuple[object, ...]) -> None:
    async with opened() as (pilot, controller):
        await pilot.press(key, "down", "enter")
        await pilot.pause()
        assert controller.calls == [call]


async def test_restart_waits_for_a_change(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("r", "u")
        assert controller.calls == []
        controller.show(fakes.staged())
        await pilot.pause()
        await pilot.press("r", "u")
        assert controller.calls == [("restart",), ("undo",)]


async def test_without_speculation_there_is_no_length(opened: Opener) -> None:
    base = fakes.losing()
    staged = base.settings.staged.without_speculation()
    async with opened(replace(base, settings=replace(base.settings, staged=staged))) as (pilot, controller):
        await pilot.press("[")
        await pilot.pause()
        assert controller.calls == []
        assert notices(pilot) == ["speculation is off, so there is no length: n turns it on"]


async def test_undo_of_what_runs_asks_first(opened: Opener) -> None:
    base = fakes.losing()
    snapshot = replace(base, settings=replace(base.settings, can_undo=True))
    async with opened(snapshot) as (pilot, controller):
        await pilot.press("u", "n")
        await pilot.pause()
        assert controller.calls == []
        await pilot.press("u", "y")
        await pilot.pause()
        assert controller.calls == [("undo",)]


@pytest.mark.parametrize(("key", "call"), [("r", "restart"), ("B", "apply_best")])
async def test_who_takes_the_device_from_a_sweep_is_asked(opened: Opener, key: str, call: str) -> None:
    async with opened(replace(fakes.staged(), lent_to="the sweep")) as (pilot, controller):
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("n")
        await pilot.pause()
        assert controller.calls == []
        await pilot.press(key, "y")
        await pilot.pause()
        assert controller.calls == [(call,)]


@pytest.mark.parametrize("key", ["b", "v"])
async def test_their_own_question_comes_after_that(opened: Opener, key: str) -> None:
    async with opened(replace(fakes.losing(), lent_to="the A/B run")) as (pilot, controller):
        await pilot.press(key, "y")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("n")
        await pilot.pause()
        assert controller.calls == []


async def test_staged_changes_are_dropped_beside_a_sweep(opened: Opener) -> None:
    async with opened(replace(fakes.staged(), lent_to="the sweep")) as (pilot, controller):
        await pilot.press("u")
        await pilot.pause()
        assert controller.calls == [("undo",)]


async def test_restart_of_what_cannot_be_launched_says_why(opened: Opener) -> None:
    base = fakes.staged()
    snapshot = replace(base, settings=replace(base.settings, problem="no draft model is set: d chooses one"))
    async with opened(snapshot) as (pilot, controller):
        await pilot.press("r")
        await pilot.pause()
        assert controller.calls == []
        assert notices(pilot) == ["no draft model is set: d chooses one"]


async def test_a_failed_launch_can_be_tried_again_and_undone(opened: Opener) -> None:
    async with opened(fakes.failed()) as (pilot, controller):
        assert pilot.app.screen.query_one("#banner").display
        await pilot.press("r", "u")
        assert controller.calls == [("restart",), ("undo",)]


async def test_a_foreign_server_is_never_restarted(opened: Opener) -> None:
    async with opened(fakes.attached()) as (pilot, controller):
        await pilot.press("r")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CommandScreen)
        await pilot.press("y", "escape")
        await pilot.pause()
        assert controller.calls == []
        assert pilot.app.clipboard == fakes.COMMAND


async def test_baseline_asks_before_it_restarts(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("b")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("n")
        await pilot.pause()
        assert controller.calls == []
        await pilot.press("b", "y")
        await pilot.pause()
        assert controller.calls == [("measure_baseline", True)]


async def test_baseline_starts_at_once_where_nothing_speculates(opened: Opener) -> None:
    profile = fakes.PROFILE.without_speculation()
    base = fakes.losing()
    plain = replace(base, settings=replace(base.settings, running=profile, staged=profile), bet=BetReading())
    async with opened(plain) as (pilot, controller):
        await pilot.press("b")
        await pilot.pause()
        assert controller.calls == [("measure_baseline", False)]
        controller.show(replace(plain, bet=BetReading(baseline=Estimate(value=34.0))))
        await pilot.pause()
        await pilot.press("b", "enter")
        await pilot.pause()
        assert controller.calls[-1] == ("measure_baseline", True)


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        ("34", ("give_baseline", 34.0, None)),
        ("http://10.0.0.6:8080", ("give_baseline", None, "http://10.0.0.6:8080")),
        ("0", None),
        ("nan", None),
        ("fast", None),
        ("http://", None),
    ],
)
async def test_baseline_of_a_foreign_server(
    opened: Opener, typed: str, call: tuple[object, ...] | None
) -> None:
    async with opened(fakes.attached()) as (pilot, controller):
        await pilot.press("b")
        screen = pilot.app.screen
        assert isinstance(screen, BaselineScreen)
        screen.query_one(Input).value = typed
        await pilot.press("enter")
        await pilot.pause()
        if call is None:
            assert str(screen.query_one("#problem", Static).content)
            assert pilot.app.screen is screen
        else:
            assert controller.calls == [call]


async def test_charts_one_at_a_time_at_80_columns(opened: Opener) -> None:
    async with opened() as (pilot, _):
        screen = pilot.app.screen
        seen = []
        for _turn in range(6):
            seen.append(
                next(
                    name
                    for name in ("history", "survival", "curve", "verification", "written", "log")
                    if visible(screen, name)
                )
            )
            await pilot.press("g")
            await pilot.pause()
        assert seen == ["history", "survival", "curve", "verification", "written", "log"]
        assert visible(screen, "history")


def visible(screen: object, name: str) -> bool:
    widget = screen.query_one(f"#{name}")  # type: ignore[attr-defined]
    return bool(widget.is_on_screen and widget.region.area)


async def test_charts_together_or_alone_at_120_columns(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, _):
        screen = pilot.app.screen
        charts = ("history", "survival", "curve")
        assert all(visible(screen, name) for name in charts)
        await pilot.press("g", "g")
        await pilot.pause()
        assert [visible(screen, name) for name in charts] == [False, True, False]
        await pilot.press("g", "g")
        await pilot.pause()
        assert visible(screen, "verification")
        assert not any(visible(screen, name) for name in charts)
        await pilot.press("g")
        await pilot.pause()
        assert all(visible(screen, name) for name in charts)


@pytest.mark.parametrize(("key", "name"), [("o", "written"), ("i", "log")])
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_side_panels(opened: Opener, key: str, name: str, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, _):
        await pilot.press(key)
        await pilot.pause()
        assert visible(pilot.app.screen, name)
        await pilot.press(key)
        await pilot.pause()
        assert not visible(pilot.app.screen, name)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (120, 36)])
async def test_the_log_of_a_failed_server_can_be_read(opened: Opener, size: tuple[int, int]) -> None:
    async with opened(fakes.failed(), size=size) as (pilot, _):
        assert visible(pilot.app.screen, "banner")
        await pilot.press("i")
        await pilot.pause()
        assert visible(pilot.app.screen, "log")


async def test_command_line_whole(opened: Opener) -> None:
    async with opened(fakes.staged()) as (pilot, _):
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CommandScreen)


async def test_save_checks_the_name(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("s")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, SaveScreen)
        problem = screen.query_one("#problem", Static)
        assert str(problem.content) == "replaces the profile demo"
        for bad in ("", "../evil", ".hidden", "a/b", "x" * (LONGEST + 1)):
            screen.query_one(Input).value = bad
            await pilot.press("enter")
            await pilot.pause()
            assert pilot.app.screen is screen
            assert screen.query_one(Input).value == bad
            assert str(problem.content)
        assert str(problem.content) == "100 characters at most, and these are 101"
        screen.query_one(Input).value = "fast-code"
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert controller.calls == [("save_profile", "fast-code")]
        assert notices(pilot) == ["saved: /profiles/fast-code.toml"]


@pytest.mark.parametrize(
    "name", ["x" * LONGEST, "x" * (LONGEST + 1), "a b", ".hidden", "a/b", "-dash", "tab\t", "a.b_c-d", ""]
)
def test_what_the_dialog_takes_the_store_takes(name: str) -> None:
    if not name_problem(name):
        assert path_of(name, Folders.default()).name == f"{name}.toml"
    elif len(name) > LONGEST:
        with pytest.raises(ProfileError, match=f"at most {LONGEST} bytes"):
            path_of(name, Folders.default())


@pytest.mark.parametrize(("key", "status"), [("q", 0), ("ctrl+q", 0), ("ctrl+c", 130)])
async def test_leaving_says_whether_it_was_broken_off(opened: Opener, key: str, status: int) -> None:
    async with opened() as (pilot, controller):
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        assert pilot.app.return_code == status
        assert ("shutdown",) in controller.calls


async def test_save_that_fails_says_why(opened: Opener) -> None:
    controller = fakes.FakeController()
    controller.fail = SpectuiError("the disk is full: free some space")
    async with opened(controller=controller) as (pilot, _):
        await pilot.press("s", "enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert notices(pilot) == ["the disk is full: free some space"]


async def test_load_lists_problems_and_cannot_choose_them(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("l")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, LoadScreen)
        assert screen.query_one(OptionList).get_option_at_index(2).disabled
        await pilot.press("down", "enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert controller.calls == [("load_profile", "qwen-32b")]


async def test_load_without_profiles_and_with_a_vanished_one(opened: Opener) -> None:
    controller = fakes.FakeController()
    controller.profiles = ()
    async with opened(controller=controller) as (pilot, _):
        await pilot.press("l")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "no profile yet" in str(pilot.app.screen.query_one("#state", Static).content)
        await pilot.press("escape")
        controller.profiles = (ProfileOption(name="missing"),)
        await pilot.press("l")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert notices(pilot) == ["no profile is called missing: l lists them"]


async def test_help_is_made_from_the_bindings(opened: Opener) -> None:
    async with opened() as (pilot, _):
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)
        cells = [str(cell) for cell in keys_table(DASHBOARD, cast("App[object]", pilot.app)).columns[2].cells]
        assert {binding.tooltip for binding in DASHBOARD if not binding.system} <= set(cells)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
    assert {"alpha", "E", "c", "R", "ratio", "baseline"} <= {term for term, _ in READING}


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_help_turns_to_every_page_of_the_guide(opened: Opener, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, _):
        await pilot.press("question_mark")
        await pilot.pause()
        assert not pilot.app.screen.query(Markdown)
        for topic in TOPICS:
            await pilot.press("right")
            await pilot.pause()
            assert page(topic) == pilot.app.screen.query_one(Markdown).source
            assert not pilot.app.screen.query_one("#scroll").query_children(Static)[0].display
        await pilot.press("tab")
        await pilot.pause()
        assert pilot.app.screen.query_one("#scroll").query_children(Static)[0].display
        await pilot.press("shift+tab")
        await pilot.pause()
        assert "out-of-memory" in pilot.app.screen.query_one(Markdown).source


async def test_help_shows_the_page_that_is_clicked_on_and_scrolls_it(opened: Opener) -> None:
    async with opened() as (pilot, _):
        await pilot.press("question_mark")
        await pilot.pause()
        await pilot.click("#topics", offset=(8, 0))
        await pilot.pause()
        assert pilot.app.screen.query_one(Markdown).source == page(TOPICS[0])
        await pilot.press("pagedown")
        await pilot.pause()
        assert pilot.app.screen.query_one("#scroll").scroll_y > 0
        await pilot.press("right")
        await pilot.pause()
        assert pilot.app.screen.query_one("#scroll").scroll_y == 0


async def test_palette_offers_every_action(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        commands = {command.title: command for command in pilot.app.get_system_commands(pilot.app.screen)}
        here = {b.description for b in DASHBOARD if not b.action.startswith("session(")}
        assert here <= set(commands)
        assert commands["longer"].help == "]  Draft more tokens per pass"
        assert not any(title.startswith("session ") for title in commands)
        await commands["traffic"].callback()
        assert controller.calls == [("toggle_traffic",)]
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, DashboardScreen)


async def test_quit_stops_the_server_first(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("q")
        await pilot.app.workers.wait_for_complete()
        assert controller.calls == [("shutdown",)]
        assert pilot.app.return_code == 0


async def test_notices_are_plain_text(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        assert controller.sink is not None
        controller.sink(Notice("[red]no[/red] \x1b[2Jmarkup", "warning"))
        await pilot.pause()
        assert notices(pilot) == ["[red]no[/red] markup"]


async def test_welcome_opens_the_demo(opened: Opener) -> None:
    async with opened(Snapshot(), welcome=True) as (pilot, controller):
        assert isinstance(pilot.app.screen, WelcomeScreen)
        await pilot.press("d")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert controller.calls == [("open_demo",)]
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_welcome_loads_a_profile(opened: Opener) -> None:
    async with opened(Snapshot(), welcome=True) as (pilot, controller):
        await pilot.press("l")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert controller.calls == [("load_profile", "demo")]
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_welcome_attaches(opened: Opener) -> None:
    async with opened(Snapshot(), welcome=True) as (pilot, controller):
        await pilot.press("a", "escape", "a")
        screen = pilot.app.screen
        screen.query_one(Input).value = "http://:bad"
        await pilot.press("enter")
        await pilot.pause()
        assert controller.calls == []
        controller.fail = ServerGone("nothing answers at http://10.0.0.5:8080: is the server running?")
        screen.query_one(Input).value = "10.0.0.5:8080"
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "nothing answers" in str(screen.query_one("#problem", Static).content)
        controller.fail = None
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert controller.calls == [("attach", "http://10.0.0.5:8080")] * 2
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_keys_of_the_dashboard_sleep_while_a_dialog_is_open(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("n", "b", "T", "r")
        await pilot.pause()
        assert isinstance(pilot.app.screen, PickerScreen)
        assert controller.calls == []


@pytest.mark.parametrize("key", ["n", "w", "p", "c"])
async def test_a_picker_closes_once_however_often_enter_comes(opened: Opener, key: str) -> None:
    async with opened() as (pilot, _):
        await pilot.press(key)
        await pilot.pause()
        dialog = pilot.app.screen
        dialog.query_one(OptionList).action_select()
        dialog.query_one(OptionList).action_select()
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_a_double_click_beside_the_palette_closes_it_once(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, _):
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Palette)
        await pilot.click(offset=(5, 30), times=2)
        await pilot.pause()
        assert not isinstance(pilot.app.screen, Palette)


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_a_question_is_shown_to_its_last_word(width: int) -> None:
    question = "This restarts the server without speculation, sends the same prompts, and restarts it " * 2
    app: App[None] = App()
    async with app.run_test(size=(width, 24)) as pilot:
        app.push_screen(ConfirmScreen("measure the baseline", f"{question}at last.", yes="measure"))
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        seen = " ".join(" ".join(segment.text for segment in strip).strip(" │") for strip in strips)
    assert " ".join(f"{question}at last.".split()) in " ".join(seen.replace("│", " ").split())
