"""A command line, whole, to read and to copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from spectui.tui.screens.dialog import Dialog
from spectui.tui.text import shown


class CommandScreen(Dialog[str]):
    """Shows a remark and the command; gives nothing."""

    HINT = "y copies, esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", tooltip="Copy the command to the clipboard", id="copy")
    ]

    def __init__(self, title: str, command: str, *, note: str = "") -> None:
        super().__init__()
        self._title_text = title
        self._command = shown(command)
        self._note = note

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def parts(self) -> Iterable[Widget]:
        """Remark above, command below."""
        if self._note:
            yield Static(Text(self._note), classes="note")
        yield VerticalScroll(Static(Text(self._command), classes="command"), can_focus=True, id="scroll")

    def action_copy(self) -> None:
        """Hand the command to the terminal's clipboard."""
        self.app.copy_to_clipboard(self._command)
        self.notify("copied, where the terminal allows it")
