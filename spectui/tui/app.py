"""The app: one snapshot in, screens out, and the few actions that hold everywhere."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.actions import parse
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.reactive import var
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from spectui.core.views.ab import AbView
from spectui.core.views.snapshot import DraftOption, Snapshot
from spectui.errors import INTERRUPTED, SpectuiError
from spectui.store.fault_log import fault
from spectui.tui.control.interface import Controller
from spectui.tui.keys import AB, BY_SCREEN, DASHBOARD, GENERAL, HISTORY, SWEEP
from spectui.tui.messages import AbReady, DraftsReady, Notice, SnapshotReady, SweepReady
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.dialog import Palette
from spectui.tui.screens.welcome import WelcomeScreen
from spectui.tui.terminal import forgiving
from spectui.tui.text import shown
from spectui.tui.theme import DARK, LIGHT

if TYPE_CHECKING:
    from spectui.core.views.sweep import SweepView


class SpectuiApp(App[None]):
    """Shows what a controller reports. `welcome` begins with the screen for somebody without a profile."""

    TITLE = "spectui"
    CSS_PATH = "screens/dashboard.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", tooltip="Stop our servers and leave", id="force_quit", show=False),
        Binding(
            "ctrl+c", "interrupt", "quit", tooltip="As quit, with status 130", id="interrupt", show=False
        ),
    ]

    snapshot: var[Snapshot] = var(Snapshot())
    drafts: var[tuple[DraftOption, ...]] = var(())
    ab: var[AbView] = var(AbView())
    sweep: var[SweepView | None] = var(None)
    """None before the sweep screen was opened."""

    def __init__(self, controller: Controller, *, welcome: bool = False) -> None:
        super().__init__()
        self._controller = controller
        self._welcome = welcome
        self._leaving = False
        self.fault = ""
        """What ended the app, in one line; empty while nothing did."""
        self._status = 0
        self.animation_level = "none"
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.set_reactive(App.theme, DARK.name)  # setting it plainly would parse every stylesheet twice
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> Screen[None]:
        """The dashboard lies below everything."""
        return DashboardScreen(self._controller)

    def get_driver_class(self) -> type[Driver]:
        """Textual's driver, made to outlive its terminal."""
        return forgiving(super().get_driver_class())

    def action_command_palette(self) -> None:
        """Every key by name."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def on_mount(self) -> None:
        """The controller begins after the first frame."""
        if self._welcome:
            self.push_screen(WelcomeScreen(self._controller))
        self.call_after_refresh(self._controller.start, self.post_message)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, self._told_to_end)

    @on(SnapshotReady)
    def _take(self, message: SnapshotReady) -> None:
        self.snapshot = message.snapshot

    @on(AbReady)
    def _take_ab(self, message: AbReady) -> None:
        self.ab = message.view

    @on(SweepReady)
    def _take_sweep(self, message: SweepReady) -> None:
        self.sweep = message.view

    @on(DraftsReady)
    def _take_drafts(self, message: DraftsReady) -> None:
        self.drafts = message.drafts

    @on(Notice)
    def _notice(self, message: Notice) -> None:
        self.notify(shown(message.text), severity=message.severity, markup=False)

    @on(Worker.StateChanged)
    def _worker(self, event: Worker.StateChanged) -> None:
        """Whatever goes wrong in a worker becomes one line on screen."""
        error = event.worker.error
        if event.state is not WorkerState.ERROR or error is None:
            return
        text = str(error) if isinstance(error, SpectuiError) else fault(error)
        self.notify(shown(text), severity="error", markup=False, timeout=10)

    def _handle_exception(self, error: Exception) -> None:
        """An error that ends the app: its traceback goes to the log, and one line to the terminal."""
        self.fault = fault(error)
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        """Textual would print the traceback."""
        self._exit_renderables.clear()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key of the screen by name, then Textual's own themes and screenshots."""
        for binding in BY_SCREEN.get(type(screen).__name__, ()):
            _, name, parameters = parse(binding.action)
            if screen.check_action(name, parameters) is False:
                continue
            action = binding.action if binding.action.startswith("app.") else f"screen.{binding.action}"
            key = self.get_key_display(next(iter(Binding.make_bindings([binding]))))
            text = f"{key}  {binding.tooltip}"
            yield SystemCommand(binding.description, text, lambda run=action: self.run_action(run))
        for command in super().get_system_commands(screen):
            if command.title in {"Theme", "Screenshot"}:
                yield command

    def action_help(self) -> None:
        """Keys, glossary and guide."""
        from spectui.tui.screens.help import HelpScreen  # noqa: PLC0415  not needed for the first frame

        others = [binding for binding in (*AB, *SWEEP, *HISTORY) if binding.group is not GENERAL]
        self.push_screen(HelpScreen([*DASHBOARD, *others]))

    async def action_quit(self) -> None:
        """Stop our servers first. Asked a second time, leave at once."""
        if self._leaving:
            self.exit(return_code=self._status)
            return
        self._leaving = True
        self.notify("stopping", timeout=60)
        self.run_worker(self._leave(), name="quit", group="quit", exit_on_error=False)

    async def action_interrupt(self) -> None:
        """Leave as `q` does, so that server and terminal are left in order; the status tells it apart."""
        self._status = INTERRUPTED
        await self.action_quit()

    def _told_to_end(self) -> None:
        """A signal, such as that of a closed terminal."""
        self.run_worker(self.action_interrupt(), name="signal", group="signal", exit_on_error=False)

    async def _leave(self) -> None:
        try:
            await self._controller.shutdown()
        finally:
            self.exit(return_code=self._status)
