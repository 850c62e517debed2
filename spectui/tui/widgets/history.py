"""The chart `tokens/s`: the whole session's speed in braille, with a mark for each restart and the baseline.

Drawn here and not by plotext, because it moves all the time. Time is cut into bins that stand still: a new point
changes the last column only, and when the chart is full the bins double.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from spectui.core.views.snapshot import HistoryMark, HistoryView, Snapshot
from spectui.tui.text import clock, shown, speed
from spectui.tui.widgets.panel import Line, Panel, Span, centred

_AXIS: Final = 7
"""Cells of the labels at the left."""
_BINS: Final = (
    *(0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 45.0),
    *(60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0),
)
"""Seconds in one column of dots."""
_NICE: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille bits by row and column in a cell (Unicode block 2800)."""
_CLEAR_OF_BASELINE: Final = 0.05
_REFERENCE: Final = "\u2508"
_MARK: Final = "\u250a"
_FREE: Final = f" {_REFERENCE}{_MARK}"

Cell = tuple[str, str]


class HistoryChart(Panel):
    """A line of means over bins of equal time; green above the baseline, red below it."""

    BORDER_TITLE = "tokens/s"

    def view(self, snapshot: Snapshot) -> object:
        """Once a second is often enough, but a mark or a baseline shows at once."""
        history = snapshot.history
        return int(snapshot.t), len(history.marks), history.baseline, not history.points

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The plot with its axis at the left and the time below."""
        history = snapshot.history
        columns, rows = width - _AXIS, height - 1
        if columns < 4 or rows < 2:
            return ()
        if not history.points:
            return centred("space starts the traffic", width, height)
        step = bin_seconds(max(history.points[-1].t, 1.0), columns * 2)
        means = binned(history, step)
        top = nice_top(max([*means.values(), history.baseline or 0.0]))
        breaks = frozenset(int(mark.t / step) for mark in history.marks)
        grid = _curve(means, breaks, history.baseline, top, (columns, rows))
        _reference(grid, history.baseline, top)
        _marks(grid, history.marks, step * 2)
        labels = {0: speed(top), rows // 2: speed(top / 2), rows - 1: "0"}
        lines = [
            (Span(f"{labels.get(row, ''):>{_AXIS - 1}} ", "label"), *_spans(cells))
            for row, cells in enumerate(grid)
        ]
        end = clock(columns * 2 * step)
        return [*lines, (Span(" " * _AXIS + "0:00" + end.rjust(columns - 4), "label"),)]


def bin_seconds(span: float, columns: int) -> float:
    """Seconds per column of dots so that `span` seconds fit into `columns`."""
    return next((step for step in _BINS if span / step <= columns), _BINS[-1] * max(1.0, span / columns))


def binned(history: HistoryView, step: float) -> dict[int, float]:
    """Mean speed by bin."""
    return {
        index: sum(values) / len(values)
        for index, group in groupby(history.points, key=lambda point: int(point.t / step))
        if (values := [point.tokens_per_second for point in group])
    }


def nice_top(value: float) -> float:
    """A round upper end of the axis, a little above `value`."""
    wanted = max(value, 1e-3) * 1.05
    power = 1.0
    while power * 10 < wanted:
        power *= 10
    while power > wanted:
        power /= 10
    return next(power * nice for nice in _NICE if power * nice >= wanted)


def _curve(
    means: dict[int, float],
    breaks: frozenset[int],
    baseline: float | None,
    top: float,
    size: tuple[int, int],
) -> list[list[Cell]]:
    """The line in `size` columns and rows, with a gap where nothing was measured or the settings changed."""
    columns, rows = size
    dots = [[0] * columns for _ in range(rows)]
    styles = [["accent"] * columns for _ in range(rows)]
    before: int | None = None
    for index in range(columns * 2):
        mean = means.get(index)
        if mean is None or index in breaks:
            before = None
        if mean is None:
            continue
        here = min(rows * 4 - 1, max(0, rows * 4 - 1 - int(mean / top * rows * 4)))
        reach = here if before is None else before
        style = _style(mean, baseline)
        for y in range(min(here, reach), max(here, reach) + 1):
            dots[y // 4][index // 2] |= _DOTS[y % 4][index % 2]
            styles[y // 4][index // 2] = style
        before = here
    return [
        [(chr(0x2800 + bits) if bits else " ", style) for bits, style in zip(row, colours, strict=True)]
        for row, colours in zip(dots, styles, strict=True)
    ]


def _style(mean: float, baseline: float | None) -> str:
    if baseline is None:
        return "accent"
    if mean > baseline * (1 + _CLEAR_OF_BASELINE):
        return "good"
    return "bad" if mean < baseline * (1 - _CLEAR_OF_BASELINE) else "accent"


def _reference(grid: list[list[Cell]], baseline: float | None, top: float) -> None:
    """A dotted line at the baseline, behind the curve, with its name where it is free."""
    if baseline is None:
        return
    rows = len(grid)
    row = grid[min(rows - 1, max(0, rows - 1 - int(baseline / top * rows)))]
    for x, (character, _) in enumerate(row):
        if character == " ":
            row[x] = (_REFERENCE, "label")
    name = f" baseline {speed(baseline)}"
    start = len(row) - len(name)
    if start > 0 and all(character == _REFERENCE for character, _ in row[start:]):
        row[start:] = [(character, "label") for character in name]


def _marks(grid: list[list[Cell]], marks: Sequence[HistoryMark], seconds: float) -> None:
    """A vertical line where the settings changed, and what changed beside it in the first row that is free."""
    columns = len(grid[0])
    places = [(min(columns - 1, int(mark.t / seconds)), shown(mark.label)) for mark in marks]
    for x, _ in places:
        for row in grid:
            if row[x][0] in _FREE:
                row[x] = (_MARK, "label")
    for x, label in places:
        for row in grid[: len(grid) // 2]:
            cells = row[x : x + 2 + len(label)]
            if len(cells) > len(label) and all(character in _FREE for character, _ in cells):
                row[x + 1 : x + 1 + len(label)] = [(character, "label") for character in label]
                break


def _spans(cells: list[Cell]) -> list[Span]:
    return [
        Span("".join(character for character, _ in run), style)
        for style, run in ((style, list(group)) for style, group in groupby(cells, key=lambda cell: cell[1]))
    ]
