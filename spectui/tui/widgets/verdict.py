"""The verdict: the bet in one sentence, what would be better, and the keys that do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from spectui.core.text import counted
from spectui.core.verdict.verdict import Change, Group, Outcome, Verdict
from spectui.core.views.snapshot import Snapshot
from spectui.tui.advice import advice_of
from spectui.tui.text import short, shown, wrap
from spectui.tui.widgets.panel import Line, Panel, Span

_BADGES: Final = {
    Outcome.WINNING: "badge-good",
    Outcome.LOSING: "badge-bad",
    Outcome.EVEN: "badge-warn",
    Outcome.OFF: "badge-mute",
    Outcome.UNKNOWN: "badge-warn",
    Outcome.BROKEN: "badge-bad",
}


class VerdictBar(Panel):
    """Headline, advice and further findings as the height allows; the keys always in the last line."""

    def view(self, snapshot: Snapshot) -> object:
        """The verdict and what is staged."""
        settings = snapshot.settings
        return snapshot.verdict, settings.changes, settings.can_undo, snapshot.traffic, snapshot.traffic_note

    def watch_snapshot(self) -> None:
        """Colour the edge as well."""
        outcome = self.snapshot.verdict.outcome
        for other in Outcome:
            self.set_class(other is outcome, f"-{other.value}")
        super().watch_snapshot()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Two lines at most for the headline."""
        keys = key_line(snapshot, width)
        room = height - 1 if keys else height
        head = _headline(snapshot.verdict, width)[: min(2, room)]
        rest = [
            (Span(text, style),)
            for style, paragraph in _details(snapshot.verdict, owned=snapshot.server.owned)
            for text in wrap(paragraph, width, indent="  ")
        ]
        body = [*head, *rest][:room]
        return [*body, *[()] * (room - len(body)), *([keys] if keys else [])]


def describe(change: Change) -> str:
    """What a recommended change sets, in a few words."""
    parts = [
        shown(change.mode) if change.mode is not None else "",
        f"length {change.draft_length}" if change.draft_length is not None else "",
        f"lookup {change.ngram_lookup}" if change.ngram_lookup is not None else "",
        f"n-gram length {change.ngram_length}" if change.ngram_length is not None else "",
        f"p_min {change.p_min:.2f}" if change.p_min is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def key_line(snapshot: Snapshot, width: int) -> Line:
    """What can be done now: apply the best, restart, undo; and what the traffic is at, on the right."""
    settings, change = snapshot.settings, snapshot.verdict.change
    offers: list[tuple[str, str, str]] = []
    if settings.changes and settings.staged.attached:
        offers.append(("x", "the command line to restart it with", "screen.command"))
    elif settings.changes:
        offers.append(("r", f"restart with {counted(len(settings.changes), 'change')}", "screen.restart"))
    if change is not None:
        offers.append(("B", f"apply {describe(change)}", "screen.apply_best"))
    if settings.can_undo:
        offers.append(("u", "undo", "screen.undo"))
    spans: list[Span] = []
    used = 0
    for key, text, action in offers:
        if used + len(key) + cell_len(text) + 1 > width:
            break
        spans += [Span(key, "key", action), Span(f" {text}", "text", action), Span("   ")]
        used += len(key) + cell_len(text) + 4
    note = short(shown(snapshot.traffic_note), width - used)
    if note:
        spans += [Span(" " * (width - used - cell_len(note))), Span(note, "label")]
    return tuple(spans)


def _headline(verdict: Verdict, width: int) -> list[Line]:
    """The headline with its outcome as a badge, which the sentence may or may not begin with."""
    text = shown(verdict.headline)
    word = verdict.outcome.value.upper()
    first, colon, rest = text.partition(": ")
    badge, sentence = (first, rest) if colon and first.upper().startswith(word) else (word, text)
    if not text and verdict.outcome is Outcome.UNKNOWN:
        badge, sentence = "NO VERDICT YET", "It takes traffic and a baseline: space starts one, b the other."
    badge = f" {badge} "
    lead = cell_len(badge) + 1
    first_lines = wrap("\u00a0" * lead + sentence, width) if sentence else [" " * lead]
    head: Line = (Span(badge, _BADGES[verdict.outcome]), Span(first_lines[0][lead - 1 :], "strong"))
    return [head, *((Span(line, "strong"),) for line in first_lines[1:])]


def _details(verdict: Verdict, *, owned: bool) -> list[tuple[str, str]]:
    """Findings with their advice, leaving out what the headline or the banner says already."""
    headline = shown(verdict.headline)
    details: list[tuple[str, str]] = []
    for index, finding in enumerate(verdict.findings):
        if finding.group <= Group.FAILING:
            continue
        message, advice = shown(finding.message), advice_of(finding, owned=owned)
        if message and message not in headline:
            details.append(("label" if index else "text", message))
        if advice and advice not in headline:
            details.append(("text", advice))
    return details
