"""The line of tabs that chooses a chart where only one fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.reactive import var

from spectui.core.views.snapshot import Snapshot
from spectui.tui.widgets.panel import Line, Panel, Span

TABS: Final = {
    "history": "tokens/s",
    "survival": "kept at position",
    "curve": "speedup",
    "verification": "verifying",
    "written": "written",
    "log": "log",
}
"""Widget id and name of everything that can stand in the stage."""


class StageTabs(Panel):
    """Names to click on; the one shown is bright."""

    DEFAULT_CSS = """
    StageTabs { height: 1; padding: 0 1; }
    """

    shown: var[str] = var("history")

    def view(self, snapshot: Snapshot) -> object:
        """Only what is chosen."""
        return self.shown

    def watch_shown(self) -> None:
        """Another tab."""
        self.redraw()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """One line."""
        spans: list[Span] = []
        for name, title in TABS.items():
            style = "badge-mute" if name == self.shown else "label"
            spans += [Span(f" {title} ", style, f"screen.show_tab('{name}')"), Span(" ")]
        return [(*spans, Span("g next", "faint"))]
