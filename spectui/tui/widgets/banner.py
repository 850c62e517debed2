"""The banner: what is wrong, or what one has to wait for, where it cannot be missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectui.core.verdict.verdict import Finding, Group, Outcome
from spectui.core.views.snapshot import ServerState, Snapshot
from spectui.tui.advice import advice_of
from spectui.tui.text import model_name, short, shown, wrap
from spectui.tui.widgets.panel import Line, Panel, Span
from spectui.tui.widgets.sessions import rows_of
from spectui.tui.widgets.verdict import describe

_BAR_WIDTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What the banner says. kind is bad, warn or busy."""

    kind: str
    title: str
    message: str
    advice: str = ""
    log: tuple[str, ...] = ()
    progress: float | None = None
    keys: tuple[tuple[str, str, str], ...] = ()
    """Key, words, action."""


def alert_of(snapshot: Snapshot) -> Alert | None:
    """The one thing that goes before everything else on screen, or None."""
    server, verdict = snapshot.server, snapshot.verdict
    worst = next((finding for finding in verdict.findings if finding.group <= Group.FAILING), None)
    down = server.state in {ServerState.FAILED, ServerState.GONE}
    if server.state in {ServerState.STARTING, ServerState.LOADING, ServerState.STOPPING}:
        target = server.target or snapshot.settings.staged.server.model
        return Alert(
            kind="busy",
            title=str(server.state),
            message=": ".join(
                part for part in (model_name(target) if target else "", shown(server.note)) if part
            ),
            log=snapshot.log_tail[-3:],
            progress=server.progress,
        )
    if worst is None and not down and verdict.outcome is not Outcome.BROKEN:
        return None
    bad = down or verdict.outcome is Outcome.BROKEN
    return Alert(
        kind="bad" if bad else "warn",
        title=_title(worst, server.state),
        message=shown(worst.message if worst else verdict.headline or server.note),
        advice=advice_of(worst, owned=server.owned) if worst else "",
        log=snapshot.log_tail if bad else (),
        keys=_keys(snapshot, down=down),
    )


def _title(worst: Finding | None, state: ServerState) -> str:
    if worst is None:
        return f"server {state}"
    return {
        Group.CANNOT_START: "the server cannot start",
        Group.NOT_SPECULATING: "nothing speculates",
    }.get(worst.group, "the server is failing")


def _keys(snapshot: Snapshot, *, down: bool) -> tuple[tuple[str, str, str], ...]:
    keys = []
    if snapshot.settings.can_undo:
        keys.append(("u", "back to the last running settings", "screen.undo"))
    if down and (snapshot.server.owned or snapshot.settings.staged.server.url is None):
        keys.append(("r", "try again", "screen.restart"))
    elif down:
        keys.append(("\u2423", "connect again and send traffic", "screen.traffic"))
    change = snapshot.verdict.change
    if change is not None:
        keys.append(("B", f"apply {describe(change)}", "screen.apply_best"))
    keys.append(("i", "server log", "screen.log"))
    return tuple(keys)


class Banner(Panel):
    """Hidden while there is nothing to say."""

    MAX_LINES = 12
    DEFAULT_CSS = """
    Banner {
        height: auto; display: none; padding: 0 1; margin: 0; border: round $primary;
        &.-busy { display: block; border: round $primary; }
        &.-warn { display: block; border: round $warning; background: $warning 8%; }
        &.-bad { display: block; border: heavy $error; background: $error 12%; }
    }
    """

    def view(self, snapshot: Snapshot) -> object:
        """What is said."""
        return alert_of(snapshot)

    def watch_snapshot(self) -> None:
        """Come and go."""
        alert = alert_of(self.snapshot)
        for kind in ("busy", "warn", "bad"):
            self.set_class(alert is not None and alert.kind == kind, f"-{kind}")
        title = alert.title if alert else ""
        if title != (self.border_title or ""):
            self.border_title = title
        super().watch_snapshot()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Reason and advice whole, then as much of the log as fits above the keys."""
        alert = alert_of(snapshot)
        if alert is None:
            return ()
        height = min(height, self._room())
        strong = {"bad": "bad", "warn": "warn"}.get(alert.kind, "strong")
        top: list[Line] = [(Span(line, strong),) for line in wrap(alert.message, width)[:3]]
        if alert.progress is not None:
            top.append(_progress(alert.progress, width))
        top += [(Span(line, "text"),) for line in wrap(alert.advice, width)[:3] if alert.advice]
        keys = _key_line(alert, width)
        room = max(0, height - len(top) - len(keys))
        log = [(Span(short(shown(line), width), "label"),) for line in alert.log[-room:] if room]
        return [*top, *log, *keys]

    def _room(self) -> int:
        """Lines that the screen leaves when the tiles, the verdict and the footer stand."""
        above = rows_of(self.snapshot.strip)
        return max(3, self.screen.size.height - above - (16 if self.screen.size.height >= 18 else 7))


def _progress(share: float, width: int) -> Line:
    room = min(_BAR_WIDTH, width - 6)
    full = round(max(0.0, min(1.0, share)) * room)
    return (Span("━" * full, "accent"), Span("━" * (room - full), "faint"), Span(f" {share:4.0%}", "strong"))


def _key_line(alert: Alert, width: int) -> list[Line]:
    spans: list[Span] = []
    used = 0
    for key, words, action in alert.keys:
        if used + len(key) + len(words) + 1 > width:
            break
        spans += [Span(key, "key", action), Span(f" {words}", "text", action), Span("   ")]
        used += len(key) + len(words) + 4
    return [tuple(spans)] if spans else []
