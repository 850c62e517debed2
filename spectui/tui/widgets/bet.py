"""The tile `the bet`: what is kept, what a token costs, and how much was seen, in the glossary's terms."""

from __future__ import annotations

from collections.abc import Sequence

from spectui.core.bet.estimates import LossSplit
from spectui.core.text import counted
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import margin, number
from spectui.tui.widgets.panel import Line, Panel, Span

_LONG = 40


class BetTile(Panel):
    """Seven rows: label, number in one column, remark; below the cost of a pass its parts, where they are known."""

    BORDER_TITLE = "the bet"

    def view(self, snapshot: Snapshot) -> object:
        """The whole bet but its speeds."""
        bet, running = snapshot.bet, snapshot.settings.running
        return (
            bet.alpha,
            bet.acceptance_ratio,
            bet.tokens_per_pass,
            bet.drafted_per_pass,
            bet.c,
            bet.pass_cost,
            bet.pass_ms,
            bet.draft_ms,
            bet.passes,
            bet.stalled,
            bool(bet.drafted),
            bet.requests,
            bet.loss,
            running.speculation if running else None,
        )

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Remarks are short in a narrow tile."""
        bet, running = snapshot.bet, snapshot.settings.running
        long = width >= _LONG
        label = 18 if long else 13
        room = width - label - 8
        possible = ""
        if running is not None and running.speculation.fixed_length and bet.drafted:
            possible = f"of {running.speculation.draft_length + 1}"
        alpha, per_pass, every = bet.alpha, bet.tokens_per_pass, margin(bet.alpha)
        rows: tuple[tuple[str, float | None, tuple[str, ...]], ...] = (
            ("alpha", alpha.value if alpha else None, (f"{every}  kept per drafted token", every)),
            ("ratio", bet.acceptance_ratio, ("accepted of all drafted", "of all drafted", "of drafted")),
            (
                "tokens per pass",
                per_pass.value if per_pass else None,
                (f"{possible} possible" if possible else "", possible),
            ),
            ("drafted per pass", bet.drafted_per_pass, ()),
            ("draft cost c", bet.c, (_cost(bet.draft_ms, "per step"), "plain steps", "steps")),
            ("pass cost R", bet.pass_cost, (_cost(bet.pass_ms, "per pass"), "plain steps", "steps")),
        )
        lines: list[Line] = []
        for name, value, notes in rows:
            note = next((note for note in notes if len(note) <= room), "") if value is not None else ""
            lines.append(
                (
                    Span((name if long else _SHORT.get(name, name)).ljust(label), "label"),
                    Span(number(value), "label" if value is None else "strong"),
                    Span(f"  {note}", "label"),
                )
            )
        if bet.loss is not None and height > len(lines) + 1:
            lines += _loss_lines(bet.loss, width, height - len(lines) - 1)
        seen = f"in {counted(bet.requests, 'request')}" + (f", {bet.stalled} stalled" if bet.stalled else "")
        lines.append(
            (
                Span(("target passes" if long else "passes").ljust(label), "label"),
                Span(f"{bet.passes:,}".rjust(6), "text"),
                Span(f"  {seen}" if len(seen) <= room else "", "label"),
            )
        )
        return lines


def _loss_lines(loss: LossSplit, width: int, room: int) -> list[Line]:
    """What one pass costs, part by part, and with a second row to spare a bar of the same."""
    parts = (
        ("target", loss.target, "label"),
        ("draft", loss.drafting, "accent"),
        ("check", loss.verification, "warn"),
        ("rest", loss.overhead + loss.unexplained, "bad"),
    )
    named: list[Span] = []
    for name, value, style in parts:
        text = f"{value:g} step" if not named else f" {value:+.2f} {name}"
        if sum(len(span.text) for span in named) + len(text) <= width:
            named.append(Span(text, style))
    total = sum(max(0.0, value) for _, value, _ in parts)
    bar = [Span("\u2588" * round(width * max(0.0, value) / total), style) for _, value, style in parts]
    return [tuple(named), tuple(bar)] if room > 1 else [tuple(named)]


_SHORT = {"tokens per pass": "tokens/pass", "drafted per pass": "drafted/pass"}


def _cost(ms: float | None, per: str) -> str:
    return f"plain steps, {ms:.1f} ms {per}" if ms is not None else "plain steps"
