"""A question with yes and no."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Button, Static

from spectui.tui.screens.dialog import Dialog

_WIDE: Final = 96
"""Columns from which the longest line of a question fits beside the frame; below, it wraps at the frame."""


class ConfirmScreen(Dialog[bool]):
    """Gives True for yes, and None otherwise."""

    HINT = "y yes, n no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "yes", tooltip="Do it", id="yes"),
        Binding("n", "cancel", "no", tooltip="Leave things as they are", id="no"),
    ]

    def __init__(self, title: str, question: str, *, yes: str) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]
        self._title_text = title
        self._question = question
        self._yes = yes

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """The question and two buttons."""
        yield Static(Text(self._question), classes="note")
        yield Horizontal(
            Button(self._yes, variant="primary", id="yes", compact=True),
            Button("cancel", id="no", compact=True),
        )

    def on_mount(self) -> None:
        """Enter says yes."""
        self.query_one("#yes", Button).focus()

    def action_yes(self) -> None:
        """Yes."""
        self.dismiss(result=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(True if event.button.id == "yes" else None)
