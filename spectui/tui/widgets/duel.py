"""The parts of the A/B screen that both arms share: the panel they are made of, the top line, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.reactive import var

from spectui.core.duel import DuelState, DuelView
from spectui.core.plain import counted
from spectui.core.snapshot import Snapshot
from spectui.tui.text import short, shown, wrap
from spectui.tui.widgets.header import server_returns, with_server
from spectui.tui.widgets.panel import Line, Panel, Span

_BADGES: Final = {
    DuelState.READY: "badge-mute",
    DuelState.STARTING: "badge-warn",
    DuelState.RUNNING: "badge-warn",
    DuelState.STOPPING: "badge-warn",
    DuelState.STOPPED: "badge-mute",
    DuelState.ENDED: "badge-mute",
    DuelState.FAILED: "badge-bad",
}
_NO_B: Final = "There is no B yet: l takes a saved profile, or stage a change on the dashboard and come back."
_NOTHING: Final = "Nothing runs yet that could be compared: go back and start a server."


class DuelPanel(Panel):
    """A panel that shows the run; `chosen` is the arm that is chosen by hand, empty for none."""

    duel: var[DuelView] = var(DuelView())
    chosen: var[str] = var("")

    def view(self, snapshot: Snapshot) -> object:
        """The run and the choice."""
        return self.duel, self.chosen

    def watch_duel(self) -> None:
        """Take a new instant."""
        self.redraw()

    def watch_chosen(self) -> None:
        """Take a new choice."""
        self.redraw()


class DuelHeader(DuelPanel):
    """One line: what is compared on what, and how the dashboard's own server is."""

    DEFAULT_CSS = """
    DuelHeader { height: 1; background: $panel; padding: 0 1; }
    """

    def view(self, snapshot: Snapshot) -> object:
        """The run, and the state of the server."""
        return self.duel, snapshot.server.state

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Remarks go first where it is narrow."""
        spans = [Span("spectui", "accent"), Span("   A/B", "strong")]
        if self.duel.a is not None:
            traffic = self.duel.a.profile.traffic
            spans.append(Span(f"   {short(shown(traffic.workload), 12)}"))
            spans.append(Span(f"   at most {counted(self.duel.planned, 'prompt')}", "label"))
        return [with_server(spans, snapshot.server.state, busy=self.duel.busy, width=width)]


class DuelVerdict(DuelPanel):
    """What came out or what goes on, in one sentence; warnings; and what the keys would do."""

    def view(self, snapshot: Snapshot) -> object:
        """The run, the choice, and whether the dashboard's server comes back."""
        return self.duel, self.chosen, snapshot.settings.running is not None

    def watch_duel(self) -> None:
        """Colour the edge as well."""
        self.set_class(self.duel.faster is not None, "-decided")
        self.set_class(self.duel.state is DuelState.FAILED, "-failed")
        super().watch_duel()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The sentence, its warnings, and in the last line what happens next."""
        duel = self.duel
        badge, style = badge_of(duel)
        lead = cell_len(badge) + 1
        first = wrap("\u00a0" * lead + _said(duel), width)
        ink = "strong" if duel.sentence or duel.problem else "text"
        lines: list[Line] = [(Span(badge, style), Span(first[0][lead - 1 :], ink))]
        lines += [(Span(line, ink),) for line in first[1:]]
        for text in duel.remarks:
            lines += [(Span(line, "text"),) for line in wrap(shown(text), width, indent="  ")]
        after = wrap(_next(duel, self.chosen, server_returns(snapshot, busy=duel.busy)), width)
        room = max(1, height - len(after))
        body = lines[:room]
        return [*body, *[()] * (room - len(body)), *((Span(line, "label"),) for line in after)][:height]


def badge_of(duel: DuelView) -> tuple[str, str]:
    """The outcome or the state as a badge with its style."""
    if duel.faster is not None:
        return " DECIDED ", "badge-good"
    if duel.state is DuelState.ENDED:
        return " UNDECIDED ", "badge-mute"
    return f" {duel.state.value.upper()} ", _BADGES[duel.state]


def _said(duel: DuelView) -> str:
    if duel.problem:
        return shown(duel.problem)
    if duel.sentence:
        return shown(duel.sentence)
    if duel.a is None:
        return _NOTHING
    if duel.b is None:
        return _NO_B
    if duel.state is DuelState.STOPPED:
        return f"Stopped after {counted(duel.pairs, 'pair')}, before anything was decided."
    return shown(duel.note) or "Both arms get the same prompts and seeds in turns, A B B A."


def _next(duel: DuelView, chosen: str, returns: str) -> str:
    """returns: as `server_returns` has it."""
    if duel.busy:
        return f"space stops it{returns}"
    arm = chosen or duel.faster
    if duel.state is not DuelState.READY and arm:
        again = "" if chosen else ", the faster arm"
        return f"enter applies {arm.upper()}{again}; space compares again"
    if duel.a is None or duel.b is None:
        return ""
    foreign = [shown(a.profile.server.url or "") for a in (duel.a, duel.b) if a.profile.attached]
    asked = f"; it sends to {' and '.join(foreign)}" if foreign else ""
    if duel.a.profile.attached:
        return f"space starts: the dashboard's traffic stops meanwhile{asked}"
    return f"space starts{returns}{asked}"
