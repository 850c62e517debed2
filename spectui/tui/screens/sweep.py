"""The sweep screen: what is swept and what that takes, a heat map per workload, and what to use."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.reactive import var
from textual.screen import Screen

from spectui.core.sweep.defaults import DRAFT_LENGTHS
from spectui.core.views.snapshot import Snapshot
from spectui.core.views.sweep import KeptSweep, SweepChoice, SweepStage, SweepView
from spectui.tui.control.interface import Controller
from spectui.tui.keys import SWEEP
from spectui.tui.messages import Severity
from spectui.tui.screens import setting_steps
from spectui.tui.screens.multi_picker import ManyScreen
from spectui.tui.screens.picker import Choice, PickerScreen
from spectui.tui.text import model_name, shown
from spectui.tui.widgets.heatmap import HeatMap
from spectui.tui.widgets.keybar import KeyBar
from spectui.tui.widgets.sweep import SweepAxes, SweepHeader, SweepTabs, SweepVerdict

_SMALL_WIDTH, _SMALL_HEIGHT = 100, 30
_FLAT_HEIGHT, _TINY_HEIGHT = 18, 10
_NEW = "new"
_CHOOSING = frozenset({"workloads", "modes", "lengths", "p_mins", "open"})


class SweepScreen(Screen[None]):
    """Receives the app's SweepView and hands it to its widgets. A sweep goes on when the screen is left."""

    AUTO_FOCUS = ""
    CSS_PATH = "sweep.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(SWEEP)

    snapshot: var[Snapshot] = var(Snapshot())
    sweep: var[SweepView] = var(SweepView())
    front: var[int] = var(0)
    """Index of the workload in front."""
    every: var[bool] = var(default=False)
    """Whether there is room for the other workloads' maps below it."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    def compose(self) -> ComposeResult:
        """From the top down."""
        self._arrange(self.app.size)
        yield SweepHeader().data_bind(SweepScreen.snapshot, SweepScreen.sweep)
        yield SweepAxes(id="axes").data_bind(SweepScreen.sweep)
        yield SweepTabs(id="workloads").data_bind(SweepScreen.sweep, SweepScreen.front)
        with VerticalScroll(id="maps", can_focus=False):
            yield HeatMap(id="heat").data_bind(SweepScreen.sweep, SweepScreen.front, SweepScreen.every)
        yield SweepVerdict(id="result").data_bind(SweepScreen.snapshot, SweepScreen.sweep, SweepScreen.front)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Follow the app, and have a sweep planned."""
        self.watch(self.app, "snapshot", self._take_snapshot)
        self.watch(self.app, "sweep", self._take)
        self._plan(self._controller.front.sweep.open())

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def _take(self, sweep: SweepView | None) -> None:
        if sweep is None:
            return
        possible = self._possible(self.sweep)
        with self.app.batch_update():
            self.front = min(self.front, max(0, len(sweep.maps) - 1))
            self.sweep = sweep
        if possible != self._possible(sweep):
            self.refresh_bindings()

    def watch_front(self) -> None:
        """Whether enter would do something may change with it."""
        self.refresh_bindings()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the arrangement for this size."""
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        self.set_class(size.width < _SMALL_WIDTH or size.height < _SMALL_HEIGHT, "-small")
        self.every = not self.has_class("-small")
        self.set_class(size.height < _FLAT_HEIGHT, "-flat")
        self.set_class(size.height < _TINY_HEIGHT, "-tiny")

    def _possible(self, sweep: SweepView) -> frozenset[str]:
        idle = not sweep.busy
        best = sweep.maps[self.front].best if self.front < len(sweep.maps) else None
        running = {SweepStage.RUNNING, SweepStage.PAUSING, SweepStage.PAUSED}
        holds = {
            "run": sweep.startable or sweep.stage in running,
            "stop": sweep.busy and sweep.stage is not SweepStage.STOPPING,
            "apply": idle and best is not None and not sweep.command,
            "front": len(sweep.maps) > 1,
            "open": idle,
            **dict.fromkeys(_CHOOSING - {"open"}, idle and sweep.choice is not None and not sweep.command),
        }
        return frozenset(action for action, here in holds.items() if here)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim a key in the footer while it would do nothing."""
        conditional = {"run", "stop", "apply", "front", *_CHOOSING}
        if action in conditional and action not in self._possible(self.sweep):
            return None
        return super().check_action(action, parameters)

    def action_run(self) -> None:
        """Start, pause, or go on."""
        if self.sweep.stage is SweepStage.RUNNING:
            self._controller.front.sweep.pause()
        elif self.sweep.stage in {SweepStage.PAUSED, SweepStage.PAUSING}:
            self._controller.front.sweep.go_on()
        else:
            self.app.run_worker(
                self._controller.front.sweep.start(), name="sweep", group="sweep", exit_on_error=False
            )

    def action_stop(self) -> None:
        """End the sweep."""
        self._controller.front.sweep.stop()

    def action_apply(self) -> None:
        """Restart with what is recommended for the workload in front, and go back to the dashboard."""
        self.app.run_worker(self._apply(self.front), name="apply", group="sweep", exit_on_error=False)

    async def _apply(self, index: int) -> None:
        self._say(await self._controller.front.sweep.apply(index))
        if self.is_attached:
            self.dismiss()

    def action_workloads(self) -> None:
        """Choose the workloads."""
        self._choose("workloads", self.sweep.workloads, "workloads")

    def action_modes(self) -> None:
        """Choose the modes."""
        self._choose("modes", self.sweep.modes, "modes")

    def action_lengths(self) -> None:
        """Choose the draft lengths."""
        lengths = sorted({*setting_steps.DRAFT_LENGTHS, *DRAFT_LENGTHS})
        self._choose("draft lengths", [str(k) for k in lengths], "ks")

    def action_p_mins(self) -> None:
        """Choose the values of p_min."""
        self._choose("p_min", [f"{p:g}" for p in setting_steps.P_MINS], "p_mins")

    def _choose(self, title: str, values: Sequence[str], axis: str) -> None:
        choice = self.sweep.choice
        if choice is None:
            return
        kind = {"ks": int, "p_mins": float}.get(axis, str)
        chosen = [f"{value:g}" if kind is float else str(value) for value in getattr(choice, axis)]
        offered = [*values, *(value for value in chosen if value not in values)]

        def take(taken: tuple[str, ...] | None) -> None:
            if taken is not None and set(taken) != set(chosen):
                self._plan(self._controller.front.sweep.choose(_with(choice, axis, tuple(map(kind, taken)))))

        self.app.push_screen(ManyScreen(title, offered, chosen=chosen), take)

    def action_open(self) -> None:
        """Choose among the kept sweeps."""
        self.app.run_worker(self._open(), name="sweeps", group="sweep", exclusive=True, exit_on_error=False)

    async def _open(self) -> None:
        kept = await self._controller.front.sweep.kept()
        if not self.is_current:
            return
        choices = [Choice(value=_NEW, label="new", note="a sweep of what runs")]
        choices += [_row(sweep) for sweep in kept]
        current = _NEW if self.sweep.number is None else str(self.sweep.number)
        self.app.push_screen(PickerScreen("kept sweeps", choices, current=current), self._pick)

    def _pick(self, value: str | None) -> None:
        if value is not None:
            self._plan(self._controller.front.sweep.pick(None if value == _NEW else int(value)))

    def _plan(self, work: Coroutine[Any, Any, None]) -> None:
        self.app.run_worker(work, name="plan", group="sweep plan", exclusive=True, exit_on_error=False)

    def action_front(self, direction: int) -> None:
        """Bring the next workload to the front, or the one before."""
        self.action_bring((self.front + direction) % max(1, len(self.sweep.maps)))

    def action_bring(self, index: int) -> None:
        """What a click on a workload does."""
        if index < len(self.sweep.maps):
            self.front = index
            self.query_one("#maps").scroll_home(animate=False)

    def action_scroll(self, direction: int) -> None:
        """Scroll the heat map by a line."""
        self.query_one("#maps").scroll_relative(y=direction, animate=False)

    def action_back(self) -> None:
        """Back to the dashboard."""
        self.dismiss()

    def _say(self, text: str, severity: Severity = "information") -> None:
        self.notify(shown(text), severity=severity, markup=False)


def _with(choice: SweepChoice, axis: str, values: tuple[object, ...]) -> SweepChoice:
    changed: dict[str, Any] = {axis: values}
    return replace(choice, **changed)


def _row(sweep: KeptSweep) -> Choice:
    label = f"{sweep.number:>4}  {sweep.started}"
    if sweep.problem:
        return Choice(value=str(sweep.number), label=label, note="of another version", enabled=False)
    state = "done" if sweep.state == "done" else f"unfinished, {sweep.known} of at most {sweep.cells} cells"
    note = f"{model_name(sweep.model)}  {', '.join(sweep.workloads)}  {state}"
    return Choice(value=str(sweep.number), label=label, note=note)
