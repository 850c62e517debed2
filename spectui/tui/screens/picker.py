"""A short list to choose from, with the current choice marked. Used for modes, workloads and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from spectui.tui.screens.dialog import Dialog
from spectui.tui.text import fit, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One line of the list."""

    value: str
    label: str
    note: str = ""
    enabled: bool = True


class PickerScreen(Dialog[str]):
    """Gives the chosen value."""

    HINT = "enter chooses, esc closes"

    def __init__(self, title: str, choices: Sequence[Choice], *, current: str | None, note: str = "") -> None:
        super().__init__()
        self._title_text = title
        self._choices = tuple(choices)
        self._current = current
        self._note = note

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """The remark and the list."""
        if self._note:
            yield Static(Text(self._note), classes="note")
        yield OptionList(*option_rows(self._choices, self._current))

    def on_mount(self) -> None:
        """Start on the current choice."""
        options = self.query_one(OptionList)
        options.highlighted = next(
            (index for index, choice in enumerate(self._choices) if choice.value == self._current), 0
        )

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index].value)


def option_rows(choices: Sequence[Choice], current: str | None) -> list[Option]:
    """Options in columns: mark, label, note."""
    width = max((cell_len(shown(choice.label)) for choice in choices), default=0)
    rows = []
    for choice in choices:
        mark = "\u25cf " if choice.value == current else "  "
        text = Text(mark + fit(shown(choice.label), width), no_wrap=True)
        if choice.note:
            text.append(f"   {shown(choice.note)}", style="" if not choice.enabled else "dim")
        rows.append(Option(text, disabled=not choice.enabled))
    return rows
