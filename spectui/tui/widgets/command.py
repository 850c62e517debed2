"""The staged command line, visible while something is staged or cannot be launched."""

from __future__ import annotations

from collections.abc import Sequence

from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import short, shown, wrap
from spectui.tui.widgets.panel import Line, Panel, Span


class CommandLine(Panel):
    """At most two lines; a click shows all of it."""

    MAX_LINES = 2
    DEFAULT_CSS = """
    CommandLine { height: auto; display: none; padding: 0 2; &.-staged { display: block; } }
    """

    def view(self, snapshot: Snapshot) -> object:
        """What is staged."""
        settings = snapshot.settings
        return bool(settings.changes), settings.command, settings.problem

    def watch_snapshot(self) -> None:
        """Come and go."""
        settings = self.snapshot.settings
        self.set_class(bool(settings.changes or settings.problem), "-staged")
        super().watch_snapshot()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The problem, or the command with its end cut where it does not fit."""
        settings = snapshot.settings
        if settings.problem:
            return [(Span(line, "bad"),) for line in wrap(shown(settings.problem), width)]
        if not settings.changes:
            return ()
        lines = wrap(shown(settings.command), width - 2)
        if len(lines) > height:
            more = "  x shows all"
            lines = [*lines[: height - 1], short(" ".join(lines[height - 1 :]), width - 2 - len(more)) + more]
        return [
            (Span("$ " if index == 0 else "  ", "key"), Span(line, "label", "screen.command"))
            for index, line in enumerate(lines)
        ]
