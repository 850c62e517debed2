"""Layout, mouse and repainting."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from textual.widget import Widget

from spectui.core.views.snapshot import HistoryPoint, Snapshot
from spectui.tui.screens.command import CommandScreen
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.drafts import DraftScreen
from spectui.tui.screens.help import HelpScreen
from spectui.tui.screens.picker import PickerScreen
from spectui.tui.widgets.panel import Panel
from tests.tui import fakes
from tests.tui.conftest import Opener

SIZES = [(20, 6), (40, 12), (80, 24), (120, 36), (200, 60)]
SITUATIONS = [
    fakes.losing,
    fakes.winning,
    fakes.staged,
    fakes.loading,
    fakes.failed,
    fakes.attached,
    fakes.silent,
    fakes.several,
    Snapshot,
]


def place(screen: object, name: str, words: str) -> tuple[int, int]:
    """Where `words` begin in a panel, as an offset from its corner."""
    panel = screen.query_one(f"#{name}", Panel)  # type: ignore[attr-defined]
    for y in range(panel.size.height):
        text = panel.render_line(y).text
        if words in text:
            left, top = panel.content_offset
            return left + text.index(words), top + y
    raise LookupError(words)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("situation", SITUATIONS)
async def test_every_situation_fits_every_size(
    opened: Opener, situation: type[Snapshot], size: tuple[int, int]
) -> None:
    async with opened(situation(), size=size) as (pilot, _):
        screen = pilot.app.screen
        names = ("speed", "bet", "settings", "verdict", "keys") if size >= (80, 24) else ("verdict", "keys")
        for key in ("g", "o", "o", "i", "i"):
            for name in names if size >= (40, 12) else ():
                region = screen.query_one(f"#{name}").region
                assert region.area, name
                assert screen.region.contains_region(region), name
            await pilot.press(key)
            await pilot.pause()


async def test_resize_moves_between_arrangements(opened: Opener) -> None:
    async with opened(size=(200, 60)) as (pilot, _):
        for size in ((80, 24), (40, 12), (120, 36), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert pilot.app.screen.query_one("#curve").region.area


@pytest.mark.parametrize(
    ("name", "words", "screen"),
    [
        ("settings", "mode", PickerScreen),
        ("settings", "27-blocks", DraftScreen),
        ("settings", "p_min", PickerScreen),
        ("settings", "workload", PickerScreen),
        ("keys", "? help", HelpScreen),
        ("command", "llama-server", CommandScreen),
    ],
)
async def test_clicks_open_dialogs(opened: Opener, name: str, words: str, screen: type[object]) -> None:
    async with opened(fakes.staged()) as (pilot, _):
        await pilot.click(f"#{name}", offset=place(pilot.app.screen, name, words))
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(pilot.app.screen, screen)


@pytest.mark.parametrize(
    ("name", "words", "call"),
    [
        ("verdict", "r restart with", ("restart",)),
        ("verdict", "B apply", ("apply_best",)),
        ("verdict", "u undo", ("undo",)),
        ("keys", "traffic", ("toggle_traffic",)),
        ("settings", "T", ("set_temperature", 0.1)),
        ("settings", "t T", ("set_temperature", 0.0)),
        ("settings", "]", ("stage",)),
        ("settings", "traffic", ("toggle_traffic",)),
    ],
)
async def test_clicks_act(opened: Opener, name: str, words: str, call: tuple[object, ...]) -> None:
    async with opened(fakes.staged()) as (pilot, controller):
        await pilot.click(f"#{name}", offset=place(pilot.app.screen, name, words))
        await pilot.pause()
        assert controller.calls == [call]


async def test_click_on_the_banner_undoes(opened: Opener) -> None:
    async with opened(fakes.failed()) as (pilot, controller):
        await pilot.click("#banner", offset=place(pilot.app.screen, "banner", "u back"))
        await pilot.pause()
        assert controller.calls == [("undo",)]


async def test_tabs_are_clickable(opened: Opener) -> None:
    async with opened() as (pilot, _):
        screen = pilot.app.screen
        for words, name in (("speedup", "curve"), ("log", "log"), ("kept", "survival")):
            await pilot.click("#tabs", offset=place(screen, "tabs", words))
            await pilot.pause()
            assert screen.query_one(f"#{name}").region.area, name


async def test_a_click_on_a_chart_shows_it_alone(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, _):
        await pilot.click("#survival")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)
        assert pilot.app.screen.chosen == "survival"
        await pilot.click("#survival")
        assert pilot.app.screen.chosen == ""


async def test_a_click_beside_a_dialog_closes_it(opened: Opener) -> None:
    async with opened() as (pilot, _):
        await pilot.press("n")
        await pilot.click(offset=(0, 0))
        await pilot.pause()
        assert isinstance(pilot.app.screen, DashboardScreen)


async def test_hover_marks_what_a_click_would_do(opened: Opener) -> None:
    async with opened() as (pilot, _):
        panel = pilot.app.screen.query_one("#settings", Panel)
        await pilot.hover("#settings", offset=place(pilot.app.screen, "settings", "mode"))
        await pilot.pause()
        assert any(segment.style is not None and segment.style.underline for segment in panel.render_line(0))
        await pilot.hover("#verdict")
        await pilot.pause()
        assert not any(
            segment.style is not None and segment.style.underline for segment in panel.render_line(0)
        )


async def test_an_equal_snapshot_paints_nothing_and_a_change_only_its_lines(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        painted: list[tuple[str | None, int]] = []
        refresh = Widget.refresh

        def counted(self: Widget, *regions: object, **options: Any) -> Widget:
            painted.append((self.id, len(regions)))
            return refresh(self, *regions, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Widget, "refresh", counted)
        controller.show(controller.snapshot)
        await pilot.pause()
        assert painted == []
        bet = replace(controller.snapshot.bet, live_tokens_per_second=21.3)
        controller.show(replace(controller.snapshot, bet=bet))
        await pilot.pause()
        assert painted == [("speed", 1)]


async def test_the_history_is_drawn_once_a_second(opened: Opener) -> None:
    async with opened(size=(120, 36)) as (pilot, controller):
        base = controller.snapshot
        chart = pilot.app.screen.query_one("#history", Panel)
        before = chart.view(base)
        points = (*base.history.points, HistoryPoint(t=base.t + 0.25, tokens_per_second=18.0))
        soon = replace(base, t=base.t + 0.25, history=replace(base.history, points=points))
        assert chart.view(soon) == before
        assert chart.view(replace(soon, t=base.t + 1.0)) != before


async def test_the_theme_can_be_changed(opened: Opener) -> None:
    async with opened() as (pilot, _):
        panel = pilot.app.screen.query_one("#bet", Panel)
        dark = [segment.style for segment in panel.render_line(0)]
        for theme in ("spectui-light", "textual-dark", "nord"):
            pilot.app.theme = theme
            await pilot.pause()
            assert [segment.style for segment in panel.render_line(0)] != dark


def test_the_first_frame_loads_nothing_heavy() -> None:
    heavy = {"httpx", "pydantic", "plotext", "numpy", "psutil", "llama_cpp", "gguf", "tomlkit"}
    code = "import sys, spectui.tui.app; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert heavy.isdisjoint(run.stdout.split())
