"""The A/B screen: two configurations in two columns, between them how much faster one is."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.reactive import var
from textual.screen import Screen

from spectui.core.views.ab import AbState, AbView, ArmName
from spectui.core.views.snapshot import Snapshot
from spectui.tui.control.interface import Controller
from spectui.tui.keys import AB
from spectui.tui.messages import Severity
from spectui.tui.screens.profiles import LoadScreen
from spectui.tui.text import shown
from spectui.tui.widgets.ab import AbHeader, AbPanel, AbVerdict
from spectui.tui.widgets.ab_arm import ArmPanel
from spectui.tui.widgets.ab_ratio import RatioPanel
from spectui.tui.widgets.keybar import KeyBar

_SMALL_WIDTH, _SMALL_HEIGHT = 100, 30
_TINY_WIDTH, _FLAT_HEIGHT = 72, 12


class AbScreen(Screen[None]):
    """Receives the app's AbView and hands it to its widgets. A run goes on when the screen is left."""

    AUTO_FOCUS = ""
    CSS_PATH = "ab.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(AB)

    snapshot: var[Snapshot] = var(Snapshot())
    ab: var[AbView] = var(AbView())
    chosen: var[str] = var("")
    """The arm that was chosen by hand; empty for none."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    def compose(self) -> ComposeResult:
        """From the top down."""
        self._arrange(self.app.size)
        yield AbHeader().data_bind(AbScreen.snapshot, AbScreen.ab)
        with Horizontal(id="arms"):
            yield ArmPanel("a").data_bind(AbScreen.ab, AbScreen.chosen)
            yield RatioPanel(id="ratio").data_bind(AbScreen.ab)
            yield ArmPanel("b").data_bind(AbScreen.ab, AbScreen.chosen)
        yield AbVerdict(id="result").data_bind(AbScreen.snapshot, AbScreen.ab, AbScreen.chosen)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Follow the app."""
        self.watch(self.app, "snapshot", self._take_snapshot)
        self.watch(self.app, "ab", self._take)

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def _take(self, ab: AbView) -> None:
        possible = self._possible(self.ab)
        with self.app.batch_update():
            self.ab = ab
        if possible != self._possible(ab):
            self.refresh_bindings()

    def watch_chosen(self) -> None:
        """What enter would do changes with it."""
        self.refresh_bindings()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the arrangement for this size."""
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        self.set_class(size.width < _SMALL_WIDTH or size.height < _SMALL_HEIGHT, "-small")
        self.set_class(size.width < _TINY_WIDTH, "-tiny")
        self.set_class(size.height < _FLAT_HEIGHT, "-flat")

    def _possible(self, ab: AbView) -> frozenset[str]:
        holds = {
            "run": ab.b is not None and ab.state is not AbState.STOPPING,
            "choose": ab.a is not None and not ab.busy,
            "apply": not ab.busy and bool(self.chosen or ab.faster) and ab.b is not None,
        }
        return frozenset(action for action, here in holds.items() if here)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim a key in the footer while it would do nothing."""
        if action in {"run", "choose", "apply"} and action not in self._possible(self.ab):
            return None
        return super().check_action(action, parameters)

    def action_run(self) -> None:
        """Start the run, or stop it."""
        if self.ab.busy:
            self._controller.front.ab.stop()
        else:
            self.app.run_worker(
                self._controller.front.ab.start(), name="A/B", group="ab", exit_on_error=False
            )

    def action_choose(self) -> None:
        """Choose arm B among the saved profiles."""
        name = self.ab.b.name if self.ab.b is not None else None
        self.app.push_screen(
            LoadScreen(
                self._controller,
                current=name,
                title="arm B from a profile",
                hint="enter takes it, esc closes",
            ),
            self._choose,
        )

    def _choose(self, name: str | None) -> None:
        if name is not None:
            self.chosen = ""
            self.app.run_worker(
                self._controller.front.ab.choose(name), name="arm B", group="profile", exit_on_error=False
            )

    def action_mark(self, arm: ArmName) -> None:
        """Choose an arm by hand."""
        self.chosen = arm

    def action_apply(self) -> None:
        """Stage the arm that is chosen, else the faster one, and go back to the dashboard."""
        arm: ArmName | None = "a" if self.chosen == "a" else "b" if self.chosen == "b" else self.ab.faster
        if arm is not None:
            self.app.run_worker(self._apply(arm), name="apply", group="ab", exit_on_error=False)

    async def _apply(self, arm: ArmName) -> None:
        self._say(await self._controller.front.ab.apply(arm))
        if self.is_attached:
            self.dismiss()

    def action_back(self) -> None:
        """Back to the dashboard."""
        self.dismiss()

    @on(events.Click, ".arm")
    def _click_arm(self, event: events.Click) -> None:
        """A click on an arm chooses it."""
        name = event.widget.id if isinstance(event.widget, AbPanel) else None
        if name in {"arm-a", "arm-b"}:
            self.chosen = name[-1]

    def _say(self, text: str, severity: Severity = "information") -> None:
        self.notify(shown(text), severity=severity, markup=False)
