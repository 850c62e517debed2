"""Help: the keys, made from the bindings, and how to read the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

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
_KEY_WIDTH: Final = 11


class HelpScreen(Dialog[None]):
    """Scrolls; gives nothing."""

    TITLE_TEXT = "help"
    HINT = "esc closes"

    def __init__(self, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._rows = tuple(bindings)

    def parts(self) -> Iterable[Widget]:
        """Keys first, then the glossary."""
        yield VerticalScroll(Static(keys_text(self._rows, self.app)), Static(reading_text()), id="scroll")

    def on_mount(self) -> None:
        """Arrow keys scroll."""
        self.query_one("#scroll").focus()


def keys_text(bindings: Sequence[Binding], app: App[object]) -> Text:
    """Keys by group."""
    text = Text()
    for group, members in groupby(bindings, key=lambda binding: binding.group):
        text.append(f"{group.description if group else ''}\n", "bold")
        for binding in members:
            keys = binding.key_display or app.get_key_display(binding)
            text.append(f"  {keys:<{_KEY_WIDTH}}", "bold cyan")
            text.append(f"{binding.description:<14}")
            text.append(f"{binding.tooltip}\n", "dim")
    text.append(f"  {'ctrl+p':<{_KEY_WIDTH}}", "bold cyan")
    text.append(f"{'palette':<14}")
    text.append("Every action by name\n", "dim")
    return text


def reading_text() -> Text:
    """How to read the screen."""
    text = Text("\nhow to read the screen\n", "bold")
    text.append(f"{BET}\n", "")
    for term, words in READING:
        text.append(f"  {term:<{_KEY_WIDTH}}", "bold")
        text.append(f"{words}\n")
    return text
