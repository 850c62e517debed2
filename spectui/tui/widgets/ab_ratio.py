"""The middle of the A/B screen: how much faster B is, how sure that is, how far the run is, what was written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from spectui.core.views.ab import AbState, AbView
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import interval, shown, times, wrap
from spectui.tui.widgets.ab import AbPanel
from spectui.tui.widgets.digits import big
from spectui.tui.widgets.panel import Line, Span

_AXIS: Final = 7
"""Cells of the labels."""
_CHART, _TALLEST = 6, 15
"""Rows of the smallest and the largest chart."""
_ROOMY: Final = 20
"""Rows from which on it begins with an empty one, as the arms do."""
_AROUND: Final = 1.05
"""At least so much to either side of 1.0x is in sight."""


class RatioPanel(AbPanel):
    """Large figures, the interval, a bar of pairs, and whether the outputs are the same."""

    BORDER_TITLE = "B over A"

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """From the top as much as fits."""
        ab = self.ab
        lines = [*_figures(ab, width), *_interval(ab, width), (), *_pairs(ab, width), ()]
        lines += _outputs(ab, width)
        lines = [*([()] if height >= _ROOMY else []), *lines]
        spare = min(height - len(lines) - 2, _TALLEST)
        if spare >= _CHART and ab.ratios:
            lines += [(), (Span("pair by pair", "label"),), *_dots(ab.ratios, width, spare)]
        return lines


def _figures(ab: AbView, width: int) -> list[Line]:
    value = ab.ratio.value if ab.ratio is not None else None
    style = "faint" if value is None else "good" if ab.faster is not None else "strong"
    rows = big(times(value), 0)
    return [(Span(row.center(width), style),) for row in rows]


def _interval(ab: AbView, width: int) -> list[Line]:
    """The interval; before the end it holds for one look alone, too often wrong to decide by."""
    span = interval(ab.ratio)
    if not span:
        missing = "no interval yet" if ab.busy else ""
        return [(Span(missing.center(width), "label"),)]
    said = "so far" if ab.state is not AbState.ENDED else "95 %, over all looks"
    return [(Span(span.center(width), "text"),), (Span(said.center(width), "label"),)]


def _pairs(ab: AbView, width: int) -> list[Line]:
    filled = min(width, round(width * ab.pairs / ab.planned))
    bar: Line = (Span("\u2501" * filled, "accent"), Span("\u2501" * (width - filled), "faint"))
    return [bar, (Span(f"{ab.pairs} of at most {ab.planned} pairs".center(width), "label"),)]


def _outputs(ab: AbView, width: int) -> list[Line]:
    """Only where both arms are greedy is there anything to compare."""
    outputs = ab.outputs
    if outputs is None:
        warm = [a for a in (ab.a, ab.b) if a is not None and a.profile.sampling.temperature > 0]
        return _wrapped("Outputs are compared at temperature 0 only.", width, "label") if warm else []
    if not outputs.different:
        return _wrapped(f"All {outputs.compared} answers are identical.", width, "text")
    lines = _wrapped(f"{outputs.different} of {outputs.compared} answers differ.", width, "warn")
    if outputs.first is not None:
        where = f"First: {shown(outputs.prompt)} at character {outputs.first.position}"
        lines += _wrapped(where, width, "text")
        lines += _wrapped(f"A {shown(outputs.first.a)}", width, "label")
        lines += _wrapped(f"B {shown(outputs.first.b)}", width, "label")
    return lines


def _wrapped(text: str, width: int, style: str) -> list[Line]:
    return [(Span(line, style),) for line in wrap(text, width, indent="  ")]


def _dots(ratios: Sequence[float], width: int, height: int) -> list[Line]:
    """A dot for each of the last pairs that fit, from left to right, on a logarithmic axis with a line at 1.0x."""
    seen = ratios[-(width - _AXIS) :]
    top, bottom = math.log(max(*seen, _AROUND)), math.log(min(*seen, 1 / _AROUND))

    def row_of(logarithm: float) -> int:
        return round((top - logarithm) / (top - bottom) * (height - 1))

    even = row_of(0.0)
    places = [row_of(math.log(ratio)) for ratio in seen]
    lines: list[Line] = []
    for row in range(height):
        value = math.exp(top - (top - bottom) * row / (height - 1))
        label = "1.00x" if row == even else times(value) if row in {0, height - 1} else ""
        blank = "\u2508" if row == even else " "
        spans = [Span(label.rjust(_AXIS - 1) + " ", "label")]
        for hit, run in groupby(places, key=row.__eq__):
            length = len(list(run))
            spans.append(Span("\u25cf" * length, "second") if hit else Span(blank * length, "faint"))
        lines.append((*spans, Span(blank * (width - _AXIS - len(seen)), "faint")))
    return lines
