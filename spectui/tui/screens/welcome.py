"""The first screen of somebody without a profile: three ways to begin."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from spectui.errors import SpectuiError
from spectui.tui.control.interface import Controller
from spectui.tui.keys import GENERAL
from spectui.tui.screens.attach import typed_url
from spectui.tui.screens.profiles import LoadScreen
from spectui.tui.text import shown
from spectui.tui.widgets.keybar import KeyBar


class WelcomeScreen(Screen[None]):
    """Leaves when one of the three was begun."""

    CSS_PATH = "welcome.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d", "demo", "demo", tooltip="Build the demo pair and open it", id="welcome_demo", group=GENERAL
        ),
        Binding("l", "load", "profile", tooltip="Load a profile", id="welcome_load", group=GENERAL),
        Binding(
            "a", "attach", "attach", tooltip="Attach to a running server", id="welcome_attach", group=GENERAL
        ),
        Binding(
            "escape", "leave", "dashboard", tooltip="Go to the dashboard", id="welcome_leave", group=GENERAL
        ),
        Binding("q", "app.quit", "quit", tooltip="Leave", id="welcome_quit", group=GENERAL),
    ]

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    def compose(self) -> ComposeResult:
        """One column in the middle."""
        with Vertical(id="welcome"):
            yield Static(Text("spectui", "bold"), id="name")
            yield Static(
                "Does speculative decoding make your tokens faster? Measure the bet, then tune it.",
                id="claim",
            )
            yield _Way(
                "d", "the demo", "a small real pair that wins and loses; needs no model of yours", "demo"
            )
            yield _Way("l", "a profile", "one that you saved, or an example to start from", "load")
            yield _Way(
                "a",
                "a running server",
                "llama-server at an address; nothing is sent unasked",
                "attach",
            )
            yield Input(placeholder="http://127.0.0.1:8080", id="url")
            yield Static("", id="problem")
        yield KeyBar()

    def action_demo(self) -> None:
        """Open the demo pair."""
        self._begin(self._controller.front.open_demo(), "preparing the demo pair")

    def action_load(self) -> None:
        """Choose a profile."""
        self.app.push_screen(LoadScreen(self._controller, current=None), self._load)

    def _load(self, name: str | None) -> None:
        if name is not None:
            self._begin(self._controller.front.load_profile(name), f"loading {shown(name)}")

    def action_attach(self) -> None:
        """Ask for the address."""
        self.add_class("-asking")
        self.query_one(Input).focus()

    def action_leave(self) -> None:
        """Out of the input first, then to the dashboard."""
        if self.has_class("-asking"):
            self.remove_class("-asking")
            self.set_focus(None)
        else:
            self.dismiss(None)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        url = typed_url(event.value)
        if url is None:
            self._say("an address such as http://127.0.0.1:8080")
            return
        self._begin(self._controller.front.attach(url), f"attaching to {shown(url)}")

    def _begin(self, work: Coroutine[object, object, None], words: str) -> None:
        self._say(words)
        self.app.run_worker(self._finish(work), name=words, group="open", exclusive=True, exit_on_error=False)

    async def _finish(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except SpectuiError as error:
            if self.is_attached:
                self._say(shown(str(error)))
        else:
            if self.is_current:
                self.dismiss(None)

    def _say(self, words: str) -> None:
        self.query_one("#problem", Static).update(Text(words))


class _Way(Static):
    """One way to begin; a click does what its key does."""

    def __init__(self, key: str, title: str, words: str, action: str) -> None:
        text = Text.assemble((key, "bold cyan"), f"  {title}\n   ", (words, "dim"))
        super().__init__(text, classes="way", id=f"way-{action}")
        self._action = action

    async def on_click(self) -> None:
        """Begin."""
        await self.screen.run_action(self._action)
