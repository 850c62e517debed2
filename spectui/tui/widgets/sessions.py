"""The strip of sessions above everything: one mark each, and a line where servers of ours share a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from spectui.core.verdict.verdict import Outcome
from spectui.core.views.sessions import sharing_sentence
from spectui.core.views.snapshot import ServerState, SessionMark, Snapshot, StripView
from spectui.tui.text import short, shown, speed
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
_FLAT_HEIGHT: Final = 18
_UP: Final = frozenset({ServerState.RUNNING, ServerState.ATTACHED})


@dataclass(frozen=True, slots=True)
class _Room:
    """How much a mark says."""

    label: int
    """Cells for the label at most; 0 leaves it out."""
    words: bool = False
    decimals: int | None = 1
    """Of the speed; None leaves it out."""

    @property
    def gap(self) -> int:
        """Cells between two marks."""
        return 2 if self.label else 1


_ROOMS: Final = (
    _Room(24, words=True),
    *(_Room(label) for label in (24, 16, 10, 6)),
    _Room(0),
    _Room(0, decimals=0),
    _Room(0, decimals=None),
)
"""From roomy to nine sessions on forty columns."""


def rows_of(strip: StripView) -> int:
    """Rows that the strip takes where there is room for all of them."""
    return bool(strip.marks) + len(strip.shared)


class SessionStrip(Panel):
    """Hidden while there is one session; a click on a mark brings that session to the front."""

    MAX_LINES = 4
    DEFAULT_CSS = """
    SessionStrip { height: auto; display: none; padding: 0 1; background: $surface; &.-several { display: block; } }
    """

    def view(self, snapshot: Snapshot) -> object:
        """The marks, and whether there is height for all that is shared."""
        return snapshot.strip, self._flat

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
        for shared in sorted(strip.shared, key=lambda shared: not shared.disturbed):
            style = "badge-bad" if shared.disturbed else "warn"
            lines.append((Span(short(shown(sharing_sentence(shared)), width), style),))
        return lines[: 2 if self._flat else height]

    @property
    def _flat(self) -> bool:
        return self.screen.size.height < _FLAT_HEIGHT


def _marks(marks: Sequence[SessionMark], width: int) -> Line:
    for room in _ROOMS:
        pieces = [_mark(mark, room) for mark in marks]
        if sum(map(_cells, pieces)) + room.gap * (len(pieces) - 1) <= width:
            break
    spans: list[Span] = []
    for piece in pieces:
        spans += [Span(" " * room.gap), *piece] if spans else piece
    return tuple(spans)


def _mark(mark: SessionMark, room: _Room) -> list[Span]:
    """Number, label, state, speed and verdict; the number of the one in front is a badge in brackets."""
    act = "" if mark.front else f"screen.session({mark.number})"
    dot, ink = DOTS[mark.state]
    blank = " " if room.label else ""
    number = f"[{mark.number}]" if mark.front else f"{blank}{mark.number}{blank}"
    spans = [Span(number, "badge-mute" if mark.front else "key", act)]
    if room.label:
        label = short(shown(mark.label), room.label)
        spans.append(Span(f" {label} ", "strong" if mark.front else "label", act))
    spans.append(Span(dot, ink, act))
    if room.words:
        spans.append(Span(f" {mark.state}", "label", act))
    if mark.tokens_per_second is not None and room.decimals is not None:
        value = speed(mark.tokens_per_second) if room.decimals else f"{mark.tokens_per_second:.0f}"
        spans.append(Span(f"{blank}{value}{' tok/s' if room.words else ''}", "text", act))
    if mark.state in _UP or mark.sending or mark.outcome is Outcome.BROKEN:
        verdict, colour = _OUTCOMES[mark.outcome]
        named = room.words and mark.outcome not in {Outcome.UNKNOWN, Outcome.OFF}
        spans.append(Span(f"{blank}{verdict}" + (f" {mark.outcome}" if named else ""), colour, act))
    return spans


def _cells(spans: Sequence[Span]) -> int:
    return sum(cell_len(span.text) for span in spans)
