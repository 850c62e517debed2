"""The chart `kept at position`: S(j), the share of passes that accept at least j drafted tokens, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spectui.core.bet.estimates import BetReading, PositionRow
from spectui.core.profile import OFF, TuningProfile
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import short
from spectui.tui.widgets.panel import Line, Panel, Span

_VISIBLE: Final = 0.005
"""Shares below this are written as 0.00 and get no row."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


class SurvivalChart(Panel):
    """One bar per position; their sum is the gain in tokens per pass."""

    BORDER_TITLE = "kept at position"

    def view(self, snapshot: Snapshot) -> object:
        """The curve, and whether there can be one."""
        running = snapshot.settings.running
        return (
            tuple((row.position, round(row.survival, 3)) for row in snapshot.bet.survival),
            snapshot.bet.tokens_per_pass,
            running.speculation if running else None,
        )

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """As many positions as fit, and the sum."""
        return survival_lines(snapshot.bet, snapshot.settings.running, width, height)


def survival_lines(bet: BetReading, profile: TuningProfile | None, width: int, height: int) -> list[Line]:
    """The bars of one bet, or why there are none."""
    rows = bet.survival
    if not rows:
        why = short(_why_empty(bet, profile), width).center(width)
        return [*([()] * ((height - 1) // 2)), (Span(why, "label"),)]
    room = height - 1
    seen = tuple(row for row in rows if row.survival >= _VISIBLE) or rows[:1]
    fits = seen if len(seen) == len(rows) <= room else seen[: max(1, room - 1)]
    lines: list[Line] = [_bar(row, width) for row in fits]
    rest = rows[len(fits) :]
    if rest:
        top = max(row.survival for row in rest)
        below = f"at most {top:.2f}" if top >= _VISIBLE else "below 0.01"
        lines.append((Span(short(f"   {len(rest)} more, {below}", width), "label"),))
    if len(lines) < height:
        lines += [()] * (height - len(lines) > 1)
        total = f"{1 + sum(row.survival for row in rows):.2f}"
        text = "1 of its own + sum" if width >= 36 else "1 + sum"
        lines.append(
            (
                Span(f"{text} = ", "label"),
                Span(total, "strong"),
                Span(" per full pass" if width >= 30 else " per pass", "label"),
            )
        )
    return lines


def _bar(row: PositionRow, width: int) -> Line:
    room = width - 9
    eighths = round(max(0.0, min(1.0, row.survival)) * room * 8)
    full, part = divmod(eighths, 8)
    bar = "█" * full + (_EIGHTHS[part] if part else "")
    return (
        Span(f"{row.position:>2} ", "label"),
        Span(bar, "accent"),
        Span(" " * (room - len(bar)) + f" {row.survival:.2f}", "text"),
    )


def _why_empty(bet: BetReading, profile: TuningProfile | None) -> str:
    if profile is None or bet.passes == 0:
        return "no passes yet"
    if profile.speculation.mode == OFF:
        return "speculation is off"
    if not profile.speculation.fixed_length:
        return "only with a fixed length (p_min 0)"
    return "no drafted tokens yet"
