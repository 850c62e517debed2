"""A short list of which several are chosen. Used for the axes of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from spectui.tui.screens.dialog import Dialog
from spectui.tui.text import shown


class Marks(OptionList):
    """A list whose rows are marked with space or a click."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.take", "take", tooltip="Take what is marked"),
        Binding("space", "select", "mark", tooltip="Mark, or take the mark away"),
    ]


class ManyScreen(Dialog[tuple[str, ...]]):
    """Gives the chosen values in the order of the list, one at least."""

    HINT = "space marks, enter takes"

    def __init__(self, title: str, values: Sequence[str], *, chosen: Iterable[str]) -> None:
        super().__init__()
        self._title_text = title
        self._values = tuple(values)
        self._chosen = set(chosen)

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """The list, what is wrong with it, and a button for the mouse."""
        yield Marks(*(Option(self._row(value)) for value in self._values))
        yield Static("", classes="problem", id="problem")
        yield Button("take", id="take", compact=True)

    def on_mount(self) -> None:
        """Start in the list."""
        options = self.query_one(Marks)
        options.highlighted = 0
        options.focus()

    def _row(self, value: str) -> Text:
        mark = "\u25cf" if value in self._chosen else "\u25cb"
        return Text(f"{mark} {shown(value)}", no_wrap=True)

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        value = self._values[event.option_index]
        self._chosen ^= {value}
        self.query_one(Marks).replace_option_prompt_at_index(event.option_index, self._row(value))
        self.query_one("#problem", Static).update("")

    @on(Button.Pressed, "#take")
    def _pressed(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        """Close with what is marked; nothing marked is no choice."""
        if self._chosen:
            self.dismiss(tuple(value for value in self._values if value in self._chosen))
        else:
            self.query_one("#problem", Static).update(Text("mark one at least"))
