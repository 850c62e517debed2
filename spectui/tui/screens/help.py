"""Help: the keys, made from the bindings, how to read the screen, and the guide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static

from spectui.guide.pages import TOPICS, page
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


KEYS: Final = "keys"
"""What stands first; the guide's pages follow."""


class HelpScreen(Dialog[None]):
    """Keys and glossary, and the pages of the guide; gives nothing."""

    TITLE_TEXT = "help"
    HINT = "\u2190 \u2192 turn the page \u00b7 \u2191 \u2193 scroll \u00b7 esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,tab", "turn(1)", "next", tooltip="The next page of the guide"),
        Binding("left,shift+tab", "turn(-1)", "previous", tooltip="The page before it"),
    ]

    shown: var[str] = var(KEYS, init=False)

    def __init__(self, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._rows = tuple(bindings)

    def parts(self) -> Iterable[Widget]:
        """Keys first, then the glossary; pages when they are asked for."""
        yield Static(topics(KEYS), id="topics")
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

    def action_turn(self, by: int) -> None:
        """Show the next page, or the one before."""
        pages = (KEYS, *TOPICS)
        self.shown = pages[(pages.index(self.shown) + by) % len(pages)]

    def action_show(self, topic: str) -> None:
        """Show the page that was clicked on."""
        self.shown = topic

    async def watch_shown(self, topic: str) -> None:
        """Another page: the keys only hide, pages are read anew."""
        from textual.widgets import Markdown  # noqa: PLC0415  not needed for the first frame

        scroll = self.query_one("#scroll", VerticalScroll)
        self.query_one("#topics", Static).update(topics(topic))
        await scroll.query(Markdown).remove()
        scroll.query_children(Static).set(display=topic == KEYS)
        if topic != KEYS:
            await scroll.mount(Markdown(page(topic), open_links=False))
        scroll.scroll_home(animate=False)


def topics(shown: str) -> Content:
    """Names of the pages to click on; the one shown is bright."""
    styles = {topic: "bold reverse" if topic == shown else "dim" for topic in (KEYS, *TOPICS)}
    links = (
        Content.styled(
            f" {topic} ", Style.parse(style) + Style.from_meta({"@click": f"screen.show('{topic}')"})
        )
        for topic, style in styles.items()
    )
    return Content(" ").join(links)


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
