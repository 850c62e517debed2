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

    def __init__(self, values: Sequence[str], *, chosen: Iterable[str]) -> None:
        self._values = tuple(values)
        self._chosen = set(chosen)
        super().__init__(*(Option(self._row(value)) for value in self._values))

    @property
    def chosen(self) -> tuple[str, ...]:
        """What is marked, in the order of the list."""
        return tuple(value for value in self._values if value in self._chosen)

    def action_select(self) -> None:
        """Mark the row, or take its mark away: at once, since an enter may follow in the same breath."""
        index = self.highlighted
        if index is not None:
            self._chosen ^= {self._values[index]}
            self.replace_option_prompt_at_index(index, self._row(self._values[index]))

    def _row(self, value: str) -> Text:
        return Text(f"{'●' if value in self._chosen else '○'} {shown(value)}", no_wrap=True)


class ManyScreen(Dialog[tuple[str, ...]]):
    """Gives the chosen values in the order of the list, one at least."""

    HINT = "space marks, enter takes"

    def __init__(self, title: str, values: Sequence[str], *, chosen: Iterable[str]) -> None:
        super().__init__()
        self._title_text = title
        self._values = tuple(values)
        self._chosen = tuple(chosen)

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """The list, what is wrong with it, and a button for the mouse."""
        yield Marks(self._values, chosen=self._chosen)
        yield Static("", classes="problem", id="problem")
        yield Button("take", id="take", compact=True)

    def on_mount(self) -> None:
        """Start in the list."""
        marks = self.query_one(Marks)
        marks.highlighted = 0
        marks.focus()

    @on(Button.Pressed, "#take")
    def _pressed(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        """Close with what is marked; nothing marked is no choice."""
        chosen = self.query_one(Marks).chosen
        if chosen:
            self.dismiss(chosen)
        else:
            self.query_one("#problem", Static).update(Text("mark one at least"))
