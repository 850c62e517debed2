"""The side panels: what the model just wrote, and the server's log. Both show foreign text, from its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events

from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import shown, wrap
from spectui.tui.widgets.panel import Line, Panel, Span


class TailPanel(Panel):
    """The last lines that fit, wrapped; the wheel goes back."""

    EMPTY: ClassVar[str] = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._back = 0

    def text(self, snapshot: Snapshot) -> Sequence[str]:
        """The lines, oldest first."""
        return snapshot.log_tail

    def view(self, snapshot: Snapshot) -> object:
        """The text and how far back one looks."""
        return self.text(snapshot), self._back

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """From the end; only as much is wrapped as is seen."""
        wrapped: list[str] = []
        for line in reversed(self.text(snapshot)):
            wrapped[:0] = wrap(shown(line.replace("\t", "    ")), width)
            if len(wrapped) >= height + self._back:
                break
        if not wrapped:
            return [(Span(self.EMPTY, "label"),)]
        self._back = max(0, min(self._back, len(wrapped) - height))
        end = len(wrapped) - self._back
        return [(Span(line, "text"),) for line in wrapped[max(0, end - height) : end]]

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Look further back."""
        event.stop()
        self._back += 3
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Come back to the end."""
        event.stop()
        self._back = max(0, self._back - 3)
        self.redraw()


class WrittenPanel(TailPanel):
    """What the model just wrote."""

    BORDER_TITLE = "what the model just wrote"
    EMPTY = "nothing yet: space starts the traffic"

    def text(self, snapshot: Snapshot) -> Sequence[str]:
        """The output by lines."""
        return snapshot.output.split("\n") if snapshot.output else ()


class LogPanel(TailPanel):
    """The server's log."""

    BORDER_TITLE = "server log"
    EMPTY = "no log: spectui sees only the log of a server that it started"
