from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from spectui.core.bet.estimates import Estimate
from spectui.core.views.heatmap import CellState, HeatCell
from spectui.core.views.sweep import SweepStage, SweepView
from spectui.errors import LaunchError
from spectui.tui.keys import SWEEP
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.help import HelpScreen
from spectui.tui.screens.multi_picker import ManyScreen, Marks
from spectui.tui.screens.picker import PickerScreen
from spectui.tui.screens.sweep import SweepScreen
from spectui.tui.widgets.heatmap import cell_span, heat_style
from spectui.tui.widgets.panel import Panel
from spectui.tui.widgets.sweep import plan_sentence, time_left
from tests.tui import fakes
from tests.tui.conftest import Opener
from tests.tui.fakes import FakeController
from tests.tui.piloting import notices, settle

SIZES = [(20, 6), (40, 12), (80, 24), (120, 36), (200, 60)]
BUSY = [SweepStage.STARTING, SweepStage.RUNNING, SweepStage.PAUSING, SweepStage.PAUSED, SweepStage.STOPPING]


def text(pilot: Pilot[None], widget: str) -> str:
    panel = pilot.app.screen.query_one(widget, Panel)
    lines = "\n".join(panel.render_line(y).text.rstrip() for y in range(panel.size.height))
    return lines.replace("\u00a0", " ")


async def entered(pilot: Pilot[None], controller: FakeController, view: SweepView) -> None:
    controller.sweep.view = view
    await pilot.press("S")
    await settle(pilot)
    assert isinstance(pilot.app.screen, SweepScreen)
    controller.calls.clear()


def test_every_key_is_described_and_unique() -> None:
    assert all(b.id and b.description and b.tooltip and b.group for b in SWEEP)
    keys = [key for binding in SWEEP for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stage", list(SweepStage))
async def test_every_stage_fits_every_size(opened: Opener, stage: SweepStage, size: tuple[int, int]) -> None:
    async with opened(size=size) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(stage))
        screen = pilot.app.screen
        names = ["#result", "#keys"]
        names += ["#workloads", "#maps"] if size >= (40, 12) else []
        names += ["#axes"] if size >= (80, 24) else []
        for name in names:
            region = screen.query_one(name).region
            assert region.area, name
            assert screen.region.contains_region(region), name


async def test_opening_it_plans_and_starts_nothing(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await pilot.press("S")
        await settle(pilot)
        assert controller.calls == [("sweep",)]
        assert "96 cells, 13 to 34 server starts, about 12 to 42 min" in text(pilot, "#axes")
        assert "space starts" in text(pilot, "#result")


@pytest.mark.parametrize("key", ["escape", "S"])
async def test_back_leaves_a_sweep_alone(opened: Opener, key: str) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.RUNNING))
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert controller.calls == []


@pytest.mark.parametrize(
    ("stage", "calls"),
    [
        (SweepStage.READY, [("start_sweep",)]),
        (SweepStage.STARTING, []),
        (SweepStage.RUNNING, [("pause_sweep",)]),
        (SweepStage.PAUSING, [("go_on_sweep",)]),
        (SweepStage.PAUSED, [("go_on_sweep",)]),
        (SweepStage.STOPPING, []),
        (SweepStage.STOPPED, [("start_sweep",)]),
        (SweepStage.DONE, [("start_sweep",)]),
        (SweepStage.FAILED, [("start_sweep",)]),
    ],
)
async def test_space_starts_pauses_and_goes_on(
    opened: Opener, stage: SweepStage, calls: list[tuple[Any, ...]]
) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(stage))
        await pilot.press("space")
        await settle(pilot)
        assert controller.calls == calls


@pytest.mark.parametrize("stage", list(SweepStage))
async def test_s_stops_what_goes_on(opened: Opener, stage: SweepStage) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(stage))
        await pilot.press("s")
        await settle(pilot)
        stoppable = stage in BUSY and stage is not SweepStage.STOPPING
        assert controller.calls == ([("stop_sweep",)] if stoppable else [])


async def test_a_start_that_is_refused_says_why(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        controller.fail = LaunchError("the target model x.gguf does not exist: correct the path")
        await pilot.press("space")
        await settle(pilot)
        assert notices(pilot) == ["the target model x.gguf does not exist: correct the path"]


@pytest.mark.parametrize(
    ("key", "axis", "expected"),
    [
        ("w", "workloads", ("prose", "json")),
        ("n", "modes", ("ngram-simple",)),
        ("k", "ks", (2, 3, 4, 6, 8, 12, 16)),
        ("p", "p_mins", (0.5,)),
    ],
)
async def test_an_axis_is_chosen_by_marks(
    opened: Opener, key: str, axis: str, expected: tuple[object, ...]
) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(pilot.app.screen, ManyScreen)
        await pilot.press("space", "enter")
        await settle(pilot)
        ((name, choice),) = controller.calls
        assert name == "choose_sweep"
        known = fakes.sweep().choice
        assert known is not None
        changed: dict[str, Any] = {axis: expected}
        assert choice == replace(known, **changed)


async def test_nothing_marked_is_no_choice_and_nothing_changed_plans_nothing(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        await pilot.press("p", "space", "down", "down", "down", "down", "space", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ManyScreen)
        assert str(pilot.app.screen.query_one("#problem", Static).render()) == "mark one at least"
        await pilot.press("escape", "p", "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, SweepScreen)
        assert controller.calls == []


async def test_a_mark_counts_before_the_key_after_it(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        await pilot.press("w")
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, ManyScreen)
        screen.query_one(Marks).action_select()
        screen.action_take()
        await settle(pilot)
        assert [choice.workloads for _, choice in controller.calls] == [("prose", "json")]


async def test_a_click_marks_and_the_button_takes(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        await pilot.press("w")
        await pilot.pause()
        await pilot.click("Marks", offset=(4, 1))
        await pilot.click("#take")
        await settle(pilot)
        ((_, choice),) = controller.calls
        assert choice.workloads == ("code", "json")


@pytest.mark.parametrize("key", ["w", "n", "k", "p", "o"])
@pytest.mark.parametrize("stage", BUSY)
async def test_nothing_is_chosen_while_it_goes_on(opened: Opener, stage: SweepStage, key: str) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(stage))
        await pilot.press(key)
        await settle(pilot)
        assert isinstance(pilot.app.screen, SweepScreen)
        assert controller.calls == []


@pytest.mark.parametrize(
    ("keys", "call"), [(("home", "enter"), ("pick_sweep", None)), (("end", "enter"), ("pick_sweep", 1))]
)
async def test_kept_sweeps_are_opened(opened: Opener, keys: tuple[str, ...], call: tuple[Any, ...]) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        await pilot.press("o")
        await settle(pilot)
        assert isinstance(pilot.app.screen, PickerScreen)
        options = pilot.app.screen.query_one(OptionList)
        rows = [str(options.get_option_at_index(i).prompt) for i in range(4)]
        assert "a sweep of what runs" in rows[0]
        assert options.get_option_at_index(1).disabled
        assert "unfinished, 4 of at most 24 cells" in rows[2]
        assert rows[3].endswith("done")
        await pilot.press(*keys)
        await settle(pilot)
        assert controller.calls == [call]


@pytest.mark.parametrize(
    ("keys", "front", "name"),
    [
        (("tab",), 1, "prose"),
        (("right", "right"), 2, "json"),
        (("left",), 2, "json"),
        (("shift+tab", "tab"), 0, "code"),
        (("tab", "tab", "tab"), 0, "code"),
    ],
)
async def test_workloads_come_to_the_front(
    opened: Opener, keys: tuple[str, ...], front: int, name: str
) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        await pilot.press(*keys)
        await pilot.pause()
        assert pilot.app.screen.front == front  # type: ignore[attr-defined]
        assert name in text(pilot, "#result")


async def test_a_click_on_a_workload_brings_it_to_the_front(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        at = text(pilot, "#workloads").index("prose")
        await pilot.click("#workloads", offset=(at + 2, 0))
        await pilot.pause()
        assert "prose: speculation off" in text(pilot, "#result")


@pytest.mark.parametrize("key", ["enter", "B"])
@pytest.mark.parametrize(("before", "index"), [((), 0), (("tab",), 1)])
async def test_what_is_recommended_in_front_is_applied(
    opened: Opener, key: str, before: tuple[str, ...], index: int
) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        await pilot.press(*before, key)
        await settle(pilot)
        assert controller.calls == [("apply_sweep", index)]
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert notices(pilot) == ["restarting with draft-simple k 4"]


async def test_nothing_is_applied_without_a_recommendation_or_while_it_goes_on(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        await pilot.press("tab", "tab", "enter")
        controller.sweep.show(fakes.sweep(SweepStage.RUNNING))
        await pilot.pause()
        await pilot.press("tab", "enter")
        await settle(pilot)
        assert controller.calls == []


async def test_the_map_shows_measured_predicted_failed_and_unknown(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.RUNNING))
        heat = text(pilot, "#heat")
        row = next(line for line in heat.splitlines() if line.strip().startswith("draft-simple  "))
        assert row.split()[1:] == [
            "(1.12)",
            "(1.24)",
            "(1.29)",
            "1.31",
            "(1.20)",
            "(1.04)",
            "(0.81)",
            "(0.62)",
        ]
        assert "now" in heat
        assert "failed" in heat
        lookup = next(line for line in heat.splitlines() if "lookup 2" in line)
        assert lookup.split()[3:] == ["·"] * 4
        assert "without speculation 34.0 tokens/s" in text(pilot, "#workloads")
        assert "at most" in text(pilot, "#axes")
        assert "9 to 34 min left" in text(pilot, "#axes")


@pytest.mark.parametrize(("size", "names"), [((80, 24), []), ((120, 36), ["prose", "code", "json"])])
async def test_other_workloads_follow_where_there_is_room(
    opened: Opener, size: tuple[int, int], names: list[str]
) -> None:
    async with opened(size=size) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        await pilot.press("tab")
        await pilot.pause()
        heat = text(pilot, "#heat")
        heads = [line.strip() for line in heat.splitlines() if line.strip() in {"code", "prose", "json"}]
        assert heads == names
        assert heat.count("measured") == 1
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "json" not in text(pilot, "#heat")


async def test_the_map_scrolls_where_it_is_too_high(opened: Opener) -> None:
    async with opened(size=(80, 19)) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        maps = pilot.app.screen.query_one("#maps")
        assert maps.max_scroll_y > 0
        await pilot.press("down")
        await pilot.pause()
        assert maps.scroll_y == 1
        await pilot.press("up")
        await pilot.pause()
        assert maps.scroll_y == 0


async def test_done_it_says_how_to_write_it_out_and_a_drift(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.DONE))
        said = text(pilot, "#result")
        assert "code: use draft-simple 27-blocks.gguf k 4: 1.31x (1.24 to 1.38)" in said
        assert "spectui export 3 --format preset models.ini" in said
        await pilot.press("tab")
        await pilot.pause()
        assert "drifted by -20%" in text(pilot, "#result")


async def test_a_server_of_somebody_else_gets_the_command_line(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        view = SweepView(command="spectui sweep PROFILE --workload code")
        await entered(pilot, controller, view)
        said = " ".join(text(pilot, "#result").split())
        assert "never restarts it: a sweep needs a profile that starts this model" in said
        assert "spectui sweep PROFILE --workload code" in text(pilot, "#result")
        await pilot.press("space", "w", "enter")
        await settle(pilot)
        assert controller.calls == []


@pytest.mark.parametrize("stage", [SweepStage.RUNNING, SweepStage.STOPPED, SweepStage.DONE])
async def test_what_is_not_kept_is_said_as_long_as_it_is_so(opened: Opener, stage: SweepStage) -> None:
    async with opened() as (pilot, controller):
        view = replace(fakes.sweep(stage), number=None, unkept="this sweep is not kept: the disk is full")
        await entered(pilot, controller, view)
        said = text(pilot, "#result")
        assert "this sweep is not kept: the disk is full" in said
        assert "keeps what is known" not in said
        assert "goes on where it was" not in said


async def test_a_kept_sweep_without_a_cell_goes_on_too(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, replace(fakes.sweep(SweepStage.READY), number=3))
        assert "space goes on where it was" in text(pilot, "#result")


async def test_a_failure_is_on_screen(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep(SweepStage.FAILED))
        assert "FAILED" in text(pilot, "#result")
        assert "out of memory" in text(pilot, "#result")


async def test_help_and_palette_know_its_keys(opened: Opener) -> None:
    async with opened() as (pilot, controller):
        await entered(pilot, controller, fakes.sweep())
        commands = {c.title for c in pilot.app.get_system_commands(pilot.app.screen)}
        assert {"start/pause", "stop", "apply", "open", "help"} <= commands
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)


@pytest.mark.parametrize(
    ("cell", "shown", "style"),
    [
        (HeatCell(), "·", "faint"),
        (HeatCell(CellState.FAILED), "failed", "bad"),
        (HeatCell(CellState.MEASURED, Estimate(value=1.25)), "1.25", "heat:+:2:measured"),
        (HeatCell(CellState.PREDICTED, Estimate(value=0.5)), "(0.50)", "heat:-:6:predicted"),
        (HeatCell(CellState.MEASURED, Estimate(value=12.34)), "12.3", "heat:+:6:measured"),
        (HeatCell(CellState.MEASURED, Estimate(value=1.25), now=True), "now", "badge-warn"),
    ],
)
def test_a_cell_is_six_wide(cell: HeatCell, shown: str, style: str) -> None:
    span = cell_span(cell)
    assert (span.text.strip(), span.style, len(span.text)) == (shown, style, 6)


def test_even_has_the_palest_shade() -> None:
    assert heat_style(1.0, CellState.MEASURED) == "heat:+:0:measured"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((540.0, 2040.0), "about 9 to 34 min left"),
        ((20.0, 2040.0), "at most 34 min left"),
        ((30.0, 80.0), "about 30 to 80 s left"),
        ((120.0, 121.0), "about 2 min left"),
    ],
)
def test_time_left(left: tuple[float, float], said: str) -> None:
    assert time_left(left) == said


def test_a_plan_in_words() -> None:
    plan = fakes.sweep().plan
    assert plan is not None
    assert plan_sentence(replace(plan, cells=1, starts=(2, 2), seconds=(30.0, 66.0), measured=False)) == (
        "1 cell, 2 server starts, about 0.5 to 1.1 min at 34.0 tokens/s (assumed) and 200 tokens per answer"
    )
