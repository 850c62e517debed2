"""The main screen: where every part stands, at every size of the terminal. What the keys do is in
dashboard_actions.py."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.geometry import Size
from textual.reactive import var

from spectui.core.views.snapshot import Snapshot
from spectui.tui.keys import DASHBOARD
from spectui.tui.screens.dashboard_actions import ActionScreen
from spectui.tui.widgets.banner import Banner, alert_of
from spectui.tui.widgets.bet import BetTile
from spectui.tui.widgets.chart import CurveChart
from spectui.tui.widgets.command import CommandLine
from spectui.tui.widgets.header import Header
from spectui.tui.widgets.history import HistoryChart
from spectui.tui.widgets.keybar import KeyBar
from spectui.tui.widgets.sessions import SessionStrip
from spectui.tui.widgets.settings import SettingsTile
from spectui.tui.widgets.speed import SpeedTile
from spectui.tui.widgets.survival import SurvivalChart
from spectui.tui.widgets.tabs import TABS, StageTabs
from spectui.tui.widgets.tail import LogPanel, WrittenPanel
from spectui.tui.widgets.verdict import VerdictBar
from spectui.tui.widgets.verification import VerificationChart

CHARTS = ("history", "survival", "curve", "verification")
SIDES = ("written", "log")

_SMALL_WIDTH, _SMALL_HEIGHT = 110, 30
_TALL_WIDTH, _TALL_HEIGHT = 100, 44
_WIDE_WIDTH = 150
_TINY_WIDTH, _FLAT_HEIGHT = 72, 18


class DashboardScreen(ActionScreen):
    """Everything at a glance. Receives the app's snapshot and hands it to its widgets."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = list(DASHBOARD)

    snapshot: var[Snapshot] = var(Snapshot())
    chosen: var[str] = var("")
    """The chart that is shown alone; empty for all, where all fit."""
    side: var[str] = var("")
    """The side panel that is open."""

    def compose(self) -> ComposeResult:
        """From the top down."""
        self._arrange(self.app.size)
        yield SessionStrip(id="strip").data_bind(DashboardScreen.snapshot)
        yield Header().data_bind(DashboardScreen.snapshot)
        with Horizontal(id="tiles"):
            yield SpeedTile(id="speed").data_bind(DashboardScreen.snapshot)
            yield BetTile(id="bet").data_bind(DashboardScreen.snapshot)
            yield SettingsTile(id="settings").data_bind(DashboardScreen.snapshot)
        yield Banner(id="banner").data_bind(DashboardScreen.snapshot)
        yield StageTabs(id="tabs")
        with Horizontal(id="stage"):
            with Container(id="charts"):
                yield HistoryChart(id="history", classes="-chosen").data_bind(DashboardScreen.snapshot)
                yield SurvivalChart(id="survival").data_bind(DashboardScreen.snapshot)
                yield CurveChart(id="curve").data_bind(DashboardScreen.snapshot)
                yield VerificationChart(id="verification").data_bind(DashboardScreen.snapshot)
            with Container(id="side"):
                yield WrittenPanel(id="written").data_bind(DashboardScreen.snapshot)
                yield LogPanel(id="log").data_bind(DashboardScreen.snapshot)
        yield CommandLine(id="command").data_bind(DashboardScreen.snapshot)
        yield VerdictBar(id="verdict").data_bind(DashboardScreen.snapshot)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Follow the app."""
        self.watch(self.app, "snapshot", self._take)

    def _take(self, snapshot: Snapshot) -> None:
        before = self.snapshot
        with self.app.batch_update():
            self.snapshot = snapshot
            self.set_class(alert_of(snapshot) is not None, "-alert")
        if self.possible(before) != self.possible(snapshot):
            self.refresh_bindings()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the arrangement for this size."""
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        width, height = size
        self.set_class(width < _SMALL_WIDTH or height < _SMALL_HEIGHT, "-small")
        self.set_class(width >= _TALL_WIDTH and height >= _TALL_HEIGHT, "-tall")
        self.set_class(width >= _WIDE_WIDTH, "-wide")
        self.set_class(width < _TINY_WIDTH, "-tiny")
        self.set_class(height < _FLAT_HEIGHT, "-flat")

    def watch_chosen(self, chosen: str) -> None:
        """Show one chart alone, or all."""
        self.set_class(bool(chosen), "-alone")
        for name in CHARTS:
            self.query_one(f"#{name}").set_class(name == (chosen or CHARTS[0]), "-chosen")
        self._mark_tab()

    def watch_side(self, side: str) -> None:
        """Open or close a side panel."""
        self.set_class(bool(side), "-side")
        for name in SIDES:
            self.set_class(name == side, f"-{name}")
        self._mark_tab()

    def _mark_tab(self) -> None:
        self.query_one(StageTabs).shown = self.side or self.chosen or CHARTS[0]

    def action_show_tab(self, name: str) -> None:
        """What a click on a tab does."""
        if name in SIDES:
            self.side = name
        elif name in CHARTS:
            self.side, self.chosen = "", name

    def action_next_chart(self) -> None:
        """The next tab where one shows at a time; else one chart alone, the next, and all again."""
        if self.has_class("-small"):
            names = list(TABS)
            now = self.side or self.chosen or CHARTS[0]
            self.action_show_tab(names[(names.index(now) + 1) % len(names)])
            return
        turns = ["", *CHARTS]
        self.chosen = turns[(turns.index(self.chosen) + 1) % len(turns)]

    def action_written(self) -> None:
        """Open or close what the model just wrote."""
        self.side = "" if self.side == "written" else "written"

    def action_log(self) -> None:
        """Open or close the server's log."""
        self.side = "" if self.side == "log" else "log"

    @on(events.Click, "#charts > Panel")
    def _click_chart(self, event: events.Click) -> None:
        """A chart that is clicked stands alone; a second click brings the others back."""
        name = event.widget.id if event.widget is not None else None
        if name in CHARTS and not self.has_class("-small"):
            self.chosen = "" if self.chosen else str(name)
