"""The heat map of a workload: rows by mode and p_min, columns by draft length, coloured by speedup.

Numbers stand in the cells and predicted ones in brackets, so that nothing depends on colours alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from textual.color import Color
from textual.reactive import var

from spectui.core.views.heatmap import CellState, HeatCell
from spectui.tui.text import fit, shown, times
from spectui.tui.widgets.panel import Line, Span
from spectui.tui.widgets.sweep import SweepPanel

if TYPE_CHECKING:
    from spectui.core.views.heatmap import HeatBlock
    from spectui.core.views.snapshot import Snapshot

_CELL: Final = 7
"""Cells of a column, the gap included."""
_NARROWEST, _WIDEST = 12, 34
"""Cells of the labels."""
_STEPS: Final = 6
"""Shades to either side of 1.0x."""
_FULL: Final = 2.0
"""The speedup, or its inverse, from which on the colour does not grow any more."""
_PALE, _STRONG = 0.12, 0.62
"""Opacity of the ground of the first and the last shade."""
_HEAT: Final = "heat"


class HeatMap(SweepPanel):
    """As high as its content; the screen scrolls it."""

    MAX_LINES: ClassVar[int | None] = 400
    DEFAULT_CSS = """
    HeatMap { height: auto; padding: 0 1; }
    """

    every: var[bool] = var(default=False)
    """Whether the other workloads follow below."""

    def view(self, snapshot: Snapshot) -> object:
        """The maps alone: notes and times change more often."""
        return self.sweep.maps, self.front, self.every

    def watch_every(self) -> None:
        """Take the others in, or leave them out."""
        self.redraw()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The blocks of the workload in front, and what the cells mean; below it the others."""
        maps = self.sweep.maps
        if self.front >= len(maps):
            return []
        several = self.every and len(maps) > 1
        others = [index for index in range(len(maps)) if index != self.front]
        lines: list[Line] = []
        for index in [self.front, *(others if several else [])]:
            lines += [(Span(shown(maps[index].name), "strong", f"screen.bring({index})"),)] if several else []
            for block in maps[index].blocks:
                lines += [*block_lines(block, width), ()]
            lines += [_legend(width), *([()] if several else [])] if index == self.front else []
        return lines

    def _resolve(self, name: str) -> Style:
        if not name.startswith(_HEAT):
            return super()._resolve(name)
        _, sign, step, state = name.split(":")
        variables = self.app.theme_variables
        _, ground = self.background_colors
        share = _PALE + (_STRONG - _PALE) * int(step) / _STEPS
        ink = Color.parse(variables["success" if sign == "+" else "error"])
        under = ground + ink.multiply_alpha(share if state != CellState.PREDICTED else share / 2)
        letters = Color.parse(variables["foreground"])
        over = under + letters.multiply_alpha(0.75 if state == CellState.PREDICTED else 1.0)
        bold = state == CellState.MEASURED
        return Style.from_color(over.rich_color, under.rich_color) + Style(bold=bold)


def block_lines(block: HeatBlock, width: int) -> list[Line]:
    """A head and a line for each row; where it is too wide for one stretch, one below the other."""
    longest = max(cell_len(row.label) for row in block.rows)
    label = max(_NARROWEST, min(longest, _WIDEST, width - _CELL * max(1, len(block.columns))))
    fits = max(1, (width - label) // _CELL)
    number = max(1, len(block.columns))
    lines: list[Line] = []
    for start in range(0, number, fits):
        heads = [f"{value}".center(_CELL - 1) for value in block.columns[start : start + fits]]
        if heads:
            lines.append((Span(block.axis.rjust(label) + " ", "label"), Span(" ".join(heads), "label")))
        for row in block.rows:
            spans = [Span(fit(row.label, label) + " ", "text")]
            for cell in row.cells[start : start + fits]:
                spans += [cell_span(cell), Span(" ")]
            lines.append(tuple(spans))
    return lines


def cell_span(cell: HeatCell) -> Span:
    """A cell: 1.25 measured, (1.25) predicted, a dot for unknown."""
    width = _CELL - 1
    if cell.now:
        return Span("now".center(width), "badge-warn")
    if cell.state is CellState.FAILED:
        return Span("failed", "bad")
    if cell.speedup is None:
        return Span("·".center(width), "faint")
    value = cell.speedup.value
    number = f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else times(value)
    text = f"({number})" if cell.state is CellState.PREDICTED else f" {number} "
    return Span(text.center(width)[:width], heat_style(value, cell.state))


def heat_style(value: float, state: CellState) -> str:
    """The name of a shade: which side of 1.0x, how far on a logarithmic scale, and whether it was measured."""
    share = min(1.0, abs(math.log(value)) / math.log(_FULL)) if value > 0 else 1.0
    return f"{_HEAT}:{'+' if value >= 1 else '-'}:{round(share * _STEPS)}:{state}"


def _legend(width: int) -> Line:
    measured, predicted = CellState.MEASURED, CellState.PREDICTED
    line = (
        Span(" 1.30 ", heat_style(1.3, measured)),
        Span(" measured  ", "label"),
        Span("(1.30)", heat_style(1.3, predicted)),
        Span(" predicted  ", "label"),
        Span(" 0.70 ", heat_style(0.7, measured)),
        Span(" slower than plain  ", "label"),
        Span("·", "faint"),
        Span(" unknown", "label"),
    )
    kept: list[Span] = []
    for span in line:
        width -= cell_len(span.text)
        if width < 0:
            break
        kept.append(span)
    return tuple(kept)
