"""The tile `speed`: tokens per second, and what speculation makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spectui.core.bet.estimates import BetReading
from spectui.core.verdict.verdict import Outcome
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import UNKNOWN, duration, interval, shown, speed, times
from spectui.tui.widgets.digits import big
from spectui.tui.widgets.panel import Line, Panel, Span

OUTCOME_STYLES: Final = {
    Outcome.WINNING: "good",
    Outcome.LOSING: "bad",
    Outcome.EVEN: "warn",
    Outcome.OFF: "label",
    Outcome.UNKNOWN: "warn",
    Outcome.BROKEN: "bad",
}
_FIGURE: Final = 17
"""Cells of `888.8` in large figures; `88.8` takes 13."""


class SpeedTile(Panel):
    """Large figures for the segment's mean speed and, where there is room, for the speedup; details below."""

    BORDER_TITLE = "speed, tokens/s"

    def view(self, snapshot: Snapshot) -> object:
        """The speeds, as they are written."""
        bet = snapshot.bet
        return (
            speed(bet.tokens_per_second),
            speed(bet.live_tokens_per_second),
            bet.baseline,
            bet.baseline_source,
            bet.speedup_actual,
            _predicted(bet),
            bet.time_to_first_token_ms,
            snapshot.verdict.outcome,
        )

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Figures of three rows where four rows are left for the details, else one row."""
        bet = snapshot.bet
        style = OUTCOME_STYLES[snapshot.verdict.outcome]
        actual = bet.speedup_actual.value if bet.speedup_actual else None
        mean = bet.tokens_per_second if bet.tokens_per_second is not None else bet.live_tokens_per_second
        details = _details(bet, style, width)
        if height < len(details) + 2 or width < _FIGURE:
            head: Line = (Span("mean".ljust(10), "label"), Span(speed(mean).rjust(6), "strong"))
            return [head, *details]
        now = speed(mean)
        field = _FIGURE if len(now) > 4 else _FIGURE - 4
        left = big(now, field)
        right = big(times(actual), _FIGURE) if width >= 2 * _FIGURE else ("", "", "")
        gap = " " * (width - field - _FIGURE) if right[0] else ""
        figures = [
            (
                Span(a, "strong" if now != UNKNOWN else "faint"),
                Span(gap),
                Span(b, style if actual is not None else "faint"),
            )
            for a, b in zip(left, right, strict=True)
        ]
        spare = height - len(details) - len(figures)
        live = _row(
            "now", speed(bet.live_tokens_per_second), "text", "the last seconds" if width >= 28 else ""
        )
        between: list[Line] = [live] if spare > 0 else []
        return [*[()] * (spare > 1), *figures, *between, *details]


def _predicted(bet: BetReading) -> tuple[str, float | None]:
    if bet.speedup_predicted is not None:
        return "predicted", bet.speedup_predicted
    return "textbook", bet.speedup_textbook


def _details(bet: BetReading, style: str, width: int) -> list[Line]:
    baseline = bet.baseline.value if bet.baseline else None
    name, predicted = _predicted(bet)
    first, unit = duration(bet.time_to_first_token_ms)
    wide = width >= 28
    return [
        _row("baseline", speed(baseline), "strong", shown(bet.baseline_source) if wide else ""),
        _row(
            "actual",
            times(bet.speedup_actual.value if bet.speedup_actual else None),
            style if bet.speedup_actual else "label",
            interval(bet.speedup_actual) if wide else "",
        ),
        _row(name, times(predicted), "text", ""),
        _row("first token" if wide else "first tok.", first, "text", unit if width > 19 else ""),
    ]


def _row(label: str, value: str, style: str, note: str) -> Line:
    """A label, a value whose unit stands outside the column, and a remark."""
    unit = "x" if value.endswith("x") else " "
    return (
        Span(label.ljust(11), "label"),
        Span(value.removesuffix("x").rjust(5) + unit, style),
        Span(f" {note}" if note else "", "label"),
    )
