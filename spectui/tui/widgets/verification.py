"""The chart `cost of verifying`: V(n), what a target pass over n tokens costs, as it was probed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log2
from types import ModuleType
from typing import Final

from spectui.core.bet.estimates import Cost
from spectui.core.bet.speedup import verification_cost
from spectui.core.views.snapshot import Snapshot
from spectui.tui.widgets.chart import MEASURED, NOW, Plot, blank, built, coloured, signs
from spectui.tui.widgets.panel import Line, centred

_STEPS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_LINE: Final = "\u2508"
_TICKS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class VerificationChart(Plot):
    """V(n) in plain steps over n, the line of free verification at 1, and the running length."""

    BORDER_TITLE = "cost of verifying n tokens"

    def view(self, snapshot: Snapshot) -> object:
        """The probed points and the running length."""
        running = snapshot.settings.running
        bet = snapshot.bet
        return bet.costs.v, running.speculation if running else None, bet.drafted > 0, round(bet.streams)

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The legend and the plot."""
        probed = snapshot.bet.costs.v
        if not any(n > 1 for n in probed):
            return centred("v probes what verifying costs", width, height)
        plotext = self.plotter(width, height)
        if plotext is None:
            return ()
        running = snapshot.settings.running
        fixed = running is not None and running.speculation.fixed_length and snapshot.bet.drafted > 0
        slots = round(snapshot.bet.streams)
        now = slots * (running.speculation.draft_length + 1) if running is not None and fixed else None
        present = [(MEASURED, "strong", "V(n), plain steps"), (_LINE, "label", "free")]
        present += [(NOW, "warn", "now")] if now is not None else []
        return [signs(present, width), *coloured(plot(plotext, probed, now, width, height - 1))]


def plot(plotext: ModuleType, probed: Mapping[int, Cost], now: int | None, width: int, height: int) -> str:
    """The plot as plain lines."""
    v = {n: cost.value for n, cost in probed.items()}
    longest = max([*v, now or 1])
    top = max(2.0, ceil(max([*v.values(), verification_cost(v, longest)]) * 1.08))
    step = next((step for step in _STEPS if top / step <= max(1, height // 2)), top)
    figure = blank(plotext, width, height)
    figure.line(1.0, "horizontal", style="dotted")
    lengths = sorted({*range(1, min(longest, 64) + 1), *v})
    xs = [log2(n) for n in lengths]
    figure.draw(figure.signal(xs, [verification_cost(v, n) for n in lengths], marker="braille").lines())
    figure.draw(figure.signal([log2(n) for n in v], list(v.values()), marker=MEASURED))
    if now is not None:
        figure.draw(figure.signal([log2(now)], [verification_cost(v, now)], marker=NOW))
    margin = 0.15
    ticks = [tick for tick in _TICKS if tick <= longest]
    figure.ruler("x").lim(-margin, log2(longest) + margin)
    figure.ruler("x").ticks([log2(tick) for tick in ticks], [str(tick) for tick in ticks])
    heights = [value * step for value in range(int(top / step + 1e-9) + 1)]
    figure.ruler("y").lim(0, top)
    figure.ruler("y").ticks(heights, [f"{value:.1f} " for value in heights])
    return built(figure)
