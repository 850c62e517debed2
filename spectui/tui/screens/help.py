"""Help: the keys, made from the bindings, and how to read the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from rich.table import Table
from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from spectui.tui.screens.dialog import Dialog

BET: Final = (
    "Speculation is a bet: a draft proposes k tokens, the target verifies them in one pass and keeps those up to "
    "the first that it would not have written itself. It wins when the tokens that a pass brings outweigh what "
    "the pass costs."
)
READING: Final = (
    (
        "alpha",
        "Share of drafted tokens that are kept, each judged where the one before it was kept. The draft's quality.",
    ),
    ("ratio", "Accepted of all drafted tokens, as servers print it. It falls with k; it is not alpha."),
    (
        "E",
        "Tokens per target pass: 1 of its own and those kept. The sum of the bars `kept at position`, plus 1.",
    ),
    ("c", "What one drafted token costs, in plain decode steps. 0.1 is good, 0.5 is rarely worth it."),
    (
        "R",
        "What one pass costs in plain steps, drafting and verifying together. The bet wins when E is above R.",
    ),
    ("actual", "Tokens/s against the baseline: the same prompts without speculation. 1.00x is even."),
    ("textbook", "E / (1 + k c): verification taken as free. Usually too hopeful."),
    (
        "staged",
        "Changes show as old \u2192 new and run after r; temperature, workload and requests apply at once.",
    ),
    ("baseline", "b measures it. Without one there is no verdict."),
)


class HelpScreen(Dialog[None]):
    """Scrolls; gives nothing."""

    TITLE_TEXT = "help"
    HINT = "esc closes"

    def __init__(self, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._rows = tuple(bindings)

    def parts(self) -> Iterable[Widget]:
        """Keys first, then the glossary."""
        yield VerticalScroll(
            Static(keys_table(self._rows, self.app)),
            Static(Text("how to read the screen", "bold"), classes="after"),
            Static(Text(f"  {BET}", "dim")),
            Static(reading_table()),
            id="scroll",
        )

    def on_mount(self) -> None:
        """Arrow keys scroll."""
        self.query_one("#scroll").focus()


def keys_table(bindings: Sequence[Binding], app: App[object]) -> Table:
    """Keys by group; the last column wraps."""
    table = _grid(3)
    for group, members in groupby(bindings, key=lambda binding: binding.group):
        table.add_row(Text(group.description if group else "", "bold"))
        for binding in members:
            if binding.system:
                continue
            key = binding.key_display or app.get_key_display(binding)
            table.add_row(_key(key), binding.description, Text(binding.tooltip, "dim"))
    table.add_row(_key("ctrl+p"), "palette", Text("Every action by name", "dim"))
    return table


def reading_table() -> Table:
    """The glossary of the screen."""
    table = _grid(2)
    for term, words in READING:
        table.add_row(_key(term), words)
    return table


def _grid(columns: int) -> Table:
    table = Table.grid(padding=(0, 2))
    for column in range(columns):
        table.add_column(no_wrap=column < columns - 1)
    return table


def _key(name: str) -> Text:
    return Text(f"  {name}", "bold cyan")
