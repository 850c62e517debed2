"""The chart `speedup by draft length`, and the base of what plotext draws.

plotext has one master figure, so a chart is cleared, drawn and built in one go; the result is kept until the
curve's revision or the size changes. It is loaded in a thread at the first draw, because loading takes longer
than a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import groupby
from math import ceil, log2
from types import ModuleType
from typing import Any, Final

from spectui.core.bet.estimates import CurvePoint
from spectui.core.views.snapshot import CurveView, Snapshot
from spectui.tui.widgets.panel import Line, Panel, Span, centred

_LEAST_WIDTH, _LEAST_HEIGHT = 16, 5
_TICKS: Final = (1, 2, 4, 8, 16, 32, 64)
MEASURED: Final = "●"
NOW: Final = "◆"
BEST: Final = "★"
_TEXTBOOK: Final = "·"
_LINE: Final = "┈"
_STYLES: Final = {MEASURED: "strong", NOW: "warn", BEST: "good", _TEXTBOOK: "second", _LINE: "label"}


class Plot(Panel):
    """A panel that plotext draws into, once it is loaded."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._plotext: ModuleType | None = None

    def plotter(self, width: int, height: int) -> ModuleType | None:
        """plotext; None while it loads, or where there is no room for a plot."""
        if self._plotext is None:
            name = f"load-{self.id}"
            self.app.run_worker(self._load(), name=name, group=name, exclusive=True, exit_on_error=False)
            return None
        return self._plotext if width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT else None

    async def _load(self) -> None:
        self._plotext = await asyncio.to_thread(import_module, "plotext")
        self.forget()


class CurveChart(Plot):
    """Textbook and predicted speedup over the draft length, with what was measured on top."""

    BORDER_TITLE = "speedup by draft length"

    def view(self, snapshot: Snapshot) -> object:
        """The revision says when anything moved."""
        return snapshot.curve.revision

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The legend and the plot."""
        curve = snapshot.curve
        if not (curve.textbook or curve.predicted or curve.measured):
            return centred("drafted tokens and a baseline (b) make this curve", width, height)
        plotext = self.plotter(width, height)
        if plotext is None:
            return ()
        return [legend(curve, width), *coloured(plot(plotext, curve, width, height - 1))]


def legend(curve: CurveView, width: int) -> Line:
    """What the signs mean, those on the chart only; the curves go first where it is narrow."""
    parts = [
        (bool(curve.predicted), "⠒", "accent", "predicted"),
        (bool(curve.textbook), *((_TEXTBOOK, "second") if curve.predicted else ("⠒", "accent")), "textbook"),
        (bool(curve.measured), MEASURED, "strong", "measured"),
        (curve.now is not None, NOW, "warn", "now"),
        (curve.best is not None, BEST, "good", "best"),
    ]
    return signs([part[1:] for part in parts if part[0]], width)


def signs(present: list[tuple[str, str, str]], width: int) -> Line:
    """Sign, style and word of each thing on a chart, as many of the last as fit."""
    while len(present) > 1 and sum(len(word) + 3 for _, _, word in present) > width + 1:
        del present[0]
    gap = "   " if sum(len(word) + 5 for _, _, word in present) <= width else " "
    spans: list[Span] = []
    for sign, style, word in present:
        spans += [Span(sign, style), Span(f" {word}{gap}", "label")]
    return tuple(spans)


def plot(plotext: ModuleType, curve: CurveView, width: int, height: int) -> str:
    """The plot as plain lines; every sign stands for one series."""
    figure = blank(plotext, width, height)
    points = [*curve.textbook, *curve.predicted, *curve.measured]
    top = max(1.25, ceil(max(point.speedup for point in points) * 1.08 * 4) / 4)
    longest = max([16, *(point.draft_length for point in points)])
    figure.line(1.0, "horizontal", style="dotted")
    if curve.textbook:
        figure.draw(
            figure.signal(*_xy(curve.textbook), marker=_TEXTBOOK if curve.predicted else "braille").lines()
        )
    if curve.predicted:
        figure.draw(figure.signal(*_xy(curve.predicted), marker="braille").lines())
    if curve.measured:
        figure.draw(figure.signal(*_xy(curve.measured), marker=MEASURED))
    now = at_length(curve, curve.now)
    if now is not None:
        figure.draw(figure.signal(*_xy([now]), marker=NOW))
    if curve.best is not None:
        figure.draw(figure.signal(*_xy([curve.best]), marker=BEST))
    margin = 0.15
    ticks = [tick for tick in _TICKS if tick <= longest]
    figure.ruler("x").lim(-margin, log2(longest) + margin)
    figure.ruler("x").ticks([log2(tick) for tick in ticks], [str(tick) for tick in ticks])
    heights = _heights(top, height)
    figure.ruler("y").lim(0, top)
    figure.ruler("y").ticks(heights, [f"{value:.1f}x " for value in heights])
    return built(figure)


def blank(plotext: ModuleType, width: int, height: int) -> Any:
    """plotext's one figure, empty and of this size."""
    figure = plotext.figure
    plotext.terminal.limit(width=False, height=False)
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(width, height)
    return figure


def built(figure: Any) -> str:
    """The figure as text, without axes."""
    figure.axes(active=False)
    return str(figure.build().string(colorless=True))


def at_length(curve: CurveView, length: int | None) -> CurvePoint | None:
    """The point of the running length: measured where it was, else on the best curve there is."""
    for series in (curve.measured, curve.predicted, curve.textbook):
        for point in series:
            if point.draft_length == length:
                return point
    return None


def _heights(top: float, height: int) -> list[float]:
    """Ticks that have 1.0 among them, at least two rows apart."""
    most = max(1, height // 2)
    step = next((step for step in (0.5, 1.0) if top / step <= most), None)
    if step is None:
        return [0.0, 1.0, float(int(top))] if top >= 2 else [0.0, 1.0]
    return [value * step for value in range(int(top / step + 1e-9) + 1)]


def _xy(points: Iterable[CurvePoint]) -> tuple[list[float], list[float]]:
    pairs = [(log2(point.draft_length), point.speedup) for point in points]
    return [x for x, _ in pairs], [y for _, y in pairs]


def coloured(text: str) -> list[Line]:
    """Plain lines as spans in the colours of their signs."""
    return [
        tuple(Span("".join(run), style) for style, run in groupby(line.rstrip(), key=_style_of))
        for line in text.splitlines()
    ]


def _style_of(character: str) -> str:
    if "\u2800" <= character <= "\u28ff":
        return "accent"
    return _STYLES.get(character, "label")
