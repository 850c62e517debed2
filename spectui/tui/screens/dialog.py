"""What all dialogs share: a box in the middle, escape and a click beside it close it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

Result = TypeVar("Result")


if TYPE_CHECKING:
    _Base = Screen[Any]
else:
    # Textual takes styles from the first base that is a widget: that must be the screen beside this one.
    _Base = object


class ClosesOnce(_Base):
    """A screen that is closed by the first key or click that says so; more of them while it goes do nothing."""

    _dismissed = False

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close, once."""
        if self._dismissed:
            return AwaitComplete()
        self._dismissed = True
        return super().dismiss(result)


class Palette(ClosesOnce, CommandPalette):
    """Textual's palette."""


class Dialog(ClosesOnce, ModalScreen[Result | None], Generic[Result]):
    """A box with a title; the result is None when it is closed without a choice."""

    CSS_PATH = "dialog.tcss"
    TITLE_TEXT: ClassVar[str] = ""
    HINT: ClassVar[str] = "esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "close", tooltip="Close without a choice", id="cancel")
    ]

    def parts(self) -> Iterable[Widget]:
        """What stands in the box."""
        return ()

    def compose(self) -> ComposeResult:
        """The box around the parts."""
        box = Vertical(*self.parts(), id="dialog")
        box.border_title = self.dialog_title()
        box.border_subtitle = self.dialog_hint()
        yield box

    def dialog_title(self) -> str:
        """The title, safe to show."""
        return self.TITLE_TEXT

    def dialog_hint(self) -> str:
        """What the keys do."""
        return self.HINT

    def action_cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """A click beside the box closes it."""
        if event.widget is self:
            self.dismiss(None)
