"""A short list of which several are chosen. Used for the axes of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Button, SelectionList, Static
from textual.widgets.selection_list import Selection

from spectui.tui.screens.dialog import Dialog
from spectui.tui.text import shown


class ManyScreen(Dialog[tuple[str, ...]]):
    """Gives the chosen values in the order of the list, one at least."""

    HINT = "space marks, enter takes them, esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "take", tooltip="Take what is marked", id="take", priority=True)
    ]

    def __init__(
        self, title: str, values: Sequence[str], *, chosen: Iterable[str], notes: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._title_text = title
        self._values = tuple(values)
        self._chosen = frozenset(chosen)
        self._notes = tuple(notes) or ("",) * len(self._values)

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """The list, what is wrong with it, and a button for the mouse."""
        yield SelectionList[str](
            *(
                Selection(_row(value, note), value, value in self._chosen)
                for value, note in zip(self._values, self._notes, strict=True)
            )
        )
        yield Static("", classes="problem", id="problem")
        yield Button("take", id="take", compact=True)

    def on_mount(self) -> None:
        """Start in the list."""
        self.query_one(SelectionList).focus()

    @on(Button.Pressed, "#take")
    def _pressed(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        """Close with what is marked; nothing marked is no choice."""
        marked = set(self.query_one(SelectionList).selected)
        if marked:
            self.dismiss(tuple(value for value in self._values if value in marked))
        else:
            self.query_one("#problem", Static).update(Text("mark one at least"))


def _row(value: str, note: str) -> Text:
    text = Text(shown(value), no_wrap=True)
    if note:
        text.append(f"   {shown(note)}", style="dim")
    return text
