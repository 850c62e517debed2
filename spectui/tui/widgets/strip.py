"""The strip of sessions above everything: one mark each, and a line where servers of ours share a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from spectui.core.snapshot import ServerState, SessionMark, Snapshot, StripView
from spectui.core.strip import sharing_sentence
from spectui.core.verdict import Outcome
from spectui.tui.text import short, shown, speed, wrap
from spectui.tui.widgets.header import DOTS
from spectui.tui.widgets.panel import Line, Panel, Span

_OUTCOMES: Final = {
    Outcome.WINNING: ("\u25b2", "good"),
    Outcome.LOSING: ("\u25bc", "bad"),
    Outcome.EVEN: ("=", "warn"),
    Outcome.OFF: ("off", "label"),
    Outcome.UNKNOWN: ("?", "warn"),
    Outcome.BROKEN: ("!", "bad"),
}
"""Mark of a verdict and its ink."""
_UP: Final = frozenset({ServerState.RUNNING, ServerState.ATTACHED})
_LABELS: Final = (24, 16, 10, 6, 0)
"""Cells for a label, from roomy to none."""


def rows_of(strip: StripView) -> int:
    """Rows that the strip takes on a wide terminal; the sentences wrap where it is narrow."""
    return bool(strip.marks) + len(strip.shared)


class SessionStrip(Panel):
    """Hidden while there is one session; a click on a mark brings that session to the front."""

    MAX_LINES = 4
    DEFAULT_CSS = """
    SessionStrip { height: auto; display: none; padding: 0 1; background: $surface; &.-several { display: block; } }
    """

    def view(self, snapshot: Snapshot) -> object:
        """The marks."""
        return snapshot.strip

    def watch_snapshot(self) -> None:
        """Come and go."""
        self.set_class(bool(self.snapshot.strip.marks), "-several")
        super().watch_snapshot()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """One line of marks, as wordy as fits; then what is shared, loud while it spoils a measurement."""
        strip = snapshot.strip
        if not strip.marks:
            return ()
        lines = [_marks(strip.marks, width)]
        for shared in strip.shared:
            style = "badge-bad" if shared.disturbed else "warn"
            lines += [(Span(line, style),) for line in wrap(shown(sharing_sentence(shared)), width)]
        return lines[:height]


def _marks(marks: Sequence[SessionMark], width: int) -> Line:
    for words, label in ((True, _LABELS[0]), *((False, room) for room in _LABELS)):
        pieces = [_mark(mark, words=words, label=label) for mark in marks]
        gap = 2 if label else 1
        if sum(map(_cells, pieces)) + gap * (len(pieces) - 1) <= width:
            break
    spans: list[Span] = []
    for piece in pieces:
        spans += [Span(" " * gap), *piece] if spans else piece
    return tuple(spans)


def _mark(mark: SessionMark, *, words: bool, label: int) -> list[Span]:
    """Number, label, state, speed and verdict; the number of the one in front is a badge."""
    act = "" if mark.front else f"screen.session({mark.number})"
    dot, ink = DOTS[mark.state]
    verdict, colour = _OUTCOMES[mark.outcome]
    spans = [Span(f" {mark.number} ", "badge-mute" if mark.front else "key", act)]
    if label:
        spans.append(Span(f" {short(shown(mark.label), label)}", "strong" if mark.front else "label", act))
    spans.append(Span(f" {dot}" if label else dot, ink, act))
    if words:
        spans.append(Span(f" {mark.state}", "label", act))
    if mark.state in _UP or mark.sending:
        unit = " tok/s" if words else ""
        spans.append(Span(f" {speed(mark.tokens_per_second)}{unit}", "text", act))
        said = f"{verdict} {mark.outcome.value}" if words and verdict != mark.outcome.value else verdict
        spans.append(Span(f" {said}", colour, act))
    elif mark.outcome is Outcome.BROKEN:
        spans.append(Span(f" {verdict}", colour, act))
    return spans


def _cells(spans: Sequence[Span]) -> int:
    return sum(cell_len(span.text) for span in spans)
