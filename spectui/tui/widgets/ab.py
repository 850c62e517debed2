"""The parts of the A/B screen that both arms share: the panel they are made of, the top line, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.reactive import var

from spectui.core.text import counted
from spectui.core.views.ab import AbState, AbView
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import short, shown, wrap
from spectui.tui.widgets.header import server_returns, with_server
from spectui.tui.widgets.panel import Line, Panel, Span

_BADGES: Final = {
    AbState.READY: "badge-mute",
    AbState.STARTING: "badge-warn",
    AbState.RUNNING: "badge-warn",
    AbState.STOPPING: "badge-warn",
    AbState.STOPPED: "badge-mute",
    AbState.ENDED: "badge-mute",
    AbState.FAILED: "badge-bad",
}
_NO_B: Final = "There is no B yet: l takes a saved profile, or stage a change on the dashboard and come back."
_NOTHING: Final = "Nothing runs yet that could be compared: go back and start a server."


class AbPanel(Panel):
    """A panel that shows the run; `chosen` is the arm that is chosen by hand, empty for none."""

    ab: var[AbView] = var(AbView())
    chosen: var[str] = var("")

    def view(self, snapshot: Snapshot) -> object:
        """The run and the choice."""
        return self.ab, self.chosen

    def watch_ab(self) -> None:
        """Take a new instant."""
        self.redraw()

    def watch_chosen(self) -> None:
        """Take a new choice."""
        self.redraw()


class AbHeader(AbPanel):
    """One line: what is compared on what, and how the dashboard's own server is."""

    DEFAULT_CSS = """
    AbHeader { height: 1; background: $panel; padding: 0 1; }
    """

    def view(self, snapshot: Snapshot) -> object:
        """The run, and the state of the server."""
        return self.ab, snapshot.server.state

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Remarks go first where it is narrow."""
        spans = [Span("spectui", "accent"), Span("   A/B", "strong")]
        if self.ab.a is not None:
            traffic = self.ab.a.profile.traffic
            spans.append(Span(f"   {short(shown(traffic.workload), 12)}"))
            spans.append(Span(f"   at most {counted(self.ab.planned, 'prompt')}", "label"))
        return [with_server(spans, snapshot.server.state, busy=self.ab.busy, width=width)]


class AbVerdict(AbPanel):
    """What came out or what goes on, in one sentence; warnings; and what the keys would do."""

    def view(self, snapshot: Snapshot) -> object:
        """The run, the choice, and whether the dashboard's server comes back."""
        return self.ab, self.chosen, snapshot.settings.running is not None

    def watch_ab(self) -> None:
        """Colour the edge as well."""
        self.set_class(self.ab.faster is not None, "-decided")
        self.set_class(self.ab.state is AbState.FAILED, "-failed")
        super().watch_ab()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The sentence, its warnings, and in the last line what happens next."""
        ab = self.ab
        badge, style = badge_of(ab)
        lead = cell_len(badge) + 1
        first = wrap("\u00a0" * lead + _said(ab), width)
        ink = "strong" if ab.sentence or ab.problem else "text"
        lines: list[Line] = [(Span(badge, style), Span(first[0][lead - 1 :], ink))]
        lines += [(Span(line, ink),) for line in first[1:]]
        for text in ab.remarks:
            lines += [(Span(line, "text"),) for line in wrap(shown(text), width, indent="  ")]
        after = wrap(_next(ab, self.chosen, server_returns(snapshot, busy=ab.busy)), width)
        room = max(1, height - len(after))
        body = lines[:room]
        return [*body, *[()] * (room - len(body)), *((Span(line, "label"),) for line in after)][:height]


def badge_of(ab: AbView) -> tuple[str, str]:
    """The outcome or the state as a badge with its style."""
    if ab.faster is not None:
        return " DECIDED ", "badge-good"
    if ab.state is AbState.ENDED:
        return " UNDECIDED ", "badge-mute"
    return f" {ab.state.value.upper()} ", _BADGES[ab.state]


def _said(ab: AbView) -> str:
    if ab.problem:
        return shown(ab.problem)
    if ab.sentence:
        return shown(ab.sentence)
    if ab.a is None:
        return _NOTHING
    if ab.b is None:
        return _NO_B
    if ab.state is AbState.STOPPED:
        return f"Stopped after {counted(ab.pairs, 'pair')}, before anything was decided."
    return shown(ab.note) or "Both arms get the same prompts and seeds in turns, A B B A."


def _next(ab: AbView, chosen: str, returns: str) -> str:
    """returns: as `server_returns` has it."""
    if ab.busy:
        return f"space stops it{returns}"
    arm = chosen or ab.faster
    if ab.state is not AbState.READY and arm:
        again = "" if chosen else ", the faster arm"
        return f"enter applies {arm.upper()}{again}; space compares again"
    if ab.a is None or ab.b is None:
        return ""
    foreign = [shown(a.profile.server.url or "") for a in (ab.a, ab.b) if a.profile.attached]
    asked = f"; it sends to {' and '.join(foreign)}" if foreign else ""
    if ab.a.profile.attached:
        return f"space starts: the dashboard's traffic stops meanwhile{asked}"
    return f"space starts{returns}{asked}"
