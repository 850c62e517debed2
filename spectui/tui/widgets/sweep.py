"""The parts of the sweep screen around the heat map: the top line, plan or progress, the workloads, the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual.reactive import var

from spectui.core.text import counted
from spectui.core.views.snapshot import Snapshot
from spectui.core.views.sweep import SweepStage, SweepView, export_command
from spectui.tui.text import model_name, short, shown, speed, times, wrap
from spectui.tui.widgets.header import server_returns, with_server
from spectui.tui.widgets.panel import Line, Panel, Span

if TYPE_CHECKING:
    from spectui.core.views.sweep import SweepPlan

_BADGES: Final = {
    SweepStage.READY: "badge-mute",
    SweepStage.STOPPED: "badge-mute",
    SweepStage.DONE: "badge-good",
    SweepStage.FAILED: "badge-bad",
}
_IDLE: Final = "Measures where the best setting may hide, and predicts the rest. Every cell is kept."
_FOREIGN: Final = (
    "spectui did not start this server and never restarts it: a sweep needs a profile that starts this model."
)
_LABEL: Final = 12


class SweepPanel(Panel):
    """A panel that shows the sweep; `front` is the index of the workload in front."""

    sweep: var[SweepView] = var(SweepView())
    front: var[int] = var(0)

    def view(self, snapshot: Snapshot) -> object:
        """The sweep and which workload is in front."""
        return self.sweep, self.front

    def watch_sweep(self) -> None:
        """Take a new instant."""
        self.redraw()

    def watch_front(self) -> None:
        """Bring another workload to the front."""
        self.redraw()


class SweepHeader(SweepPanel):
    """One line: which sweep of which model, and how the dashboard's own server is."""

    DEFAULT_CSS = """
    SweepHeader { height: 1; background: $panel; padding: 0 1; }
    """

    def view(self, snapshot: Snapshot) -> object:
        """The sweep, and the state of the server."""
        return self.sweep, snapshot.server.state

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Remarks go first where it is narrow."""
        sweep = self.sweep
        name = "sweep" if sweep.number is None else f"sweep {sweep.number}"
        spans = [Span("spectui", "accent"), Span(f"   {name}", "strong")]
        if sweep.model:
            spans.append(Span(f"   {short(model_name(sweep.model), 24)}"))
        return [with_server(spans, snapshot.server.state, busy=sweep.busy, width=width)]


class SweepAxes(SweepPanel):
    """What is swept and what that takes; while it goes on, how far it is."""

    MAX_LINES: ClassVar[int | None] = 8
    DEFAULT_CSS = """
    SweepAxes { height: auto; padding: 0 1; }
    """

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The axes with their keys, then the plan; one line each for a sweep that goes on."""
        sweep = self.sweep
        choice = sweep.choice
        if choice is None:
            return []
        axes = (
            ("workloads", "w", "workloads", ", ".join(map(shown, choice.workloads))),
            ("modes", "n", "modes", ", ".join(map(shown, choice.modes))),
            ("length k", "k", "lengths", " ".join(map(str, choice.ks))),
            ("p_min", "p", "p_mins", " ".join(f"{p:g}" for p in choice.p_mins)),
        )
        if sweep.busy:
            words = " · ".join(
                f"{name} {value}" if name == "p_min" else value for name, _, _, value in axes if value
            )
            return [(Span(short(words, width), "label"),), _progress(sweep, width)]
        rows: list[Line] = [
            (
                Span(f"{name:<{_LABEL - 2}}", "label"),
                Span(f"{key} ", "key", f"screen.{action}"),
                Span(short(value, width - _LABEL), "text"),
            )
            for name, key, action, value in axes
        ]
        if sweep.plan is not None:
            left = wrap(plan_sentence(sweep.plan), width - _LABEL)
            rows += [
                (Span(("" if index else "plan").ljust(_LABEL), "label"), Span(line, "strong"))
                for index, line in enumerate(left)
            ]
        return [*rows, *([_progress(sweep, width)] if sweep.done and sweep.plan is not None else [])]


class SweepTabs(SweepPanel):
    """The workloads with the best that was measured of each, and plain speed; a click brings one to the front."""

    DEFAULT_CSS = """
    SweepTabs { height: 1; padding: 0 1; background: $panel; }
    """

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """As many as fit, beginning so that the one in front is in sight."""
        words = [
            f" {shown(each.name)} {times(each.top)} " if each.top is not None else f" {shown(each.name)} "
            for each in self.sweep.maps
        ]
        first = 0
        while first < self.front and sum(map(cell_len, words[first : self.front + 1])) > width:
            first += 1
        spans = [
            Span(
                word,
                "badge-mute" if index + first == self.front else "label",
                f"screen.bring({index + first})",
            )
            for index, word in enumerate(words[first:])
        ]
        plain = self.sweep.maps[self.front].plain if self.front < len(self.sweep.maps) else None
        said = f"without speculation {speed(plain)} tokens/s" if plain is not None else ""
        room = width - sum(cell_len(span.text) for span in spans) - cell_len(said)
        return [(*spans, Span(" " * room), Span(said, "label")) if said and room > 1 else tuple(spans)]


class SweepVerdict(SweepPanel):
    """What is recommended for the workload in front or what goes on, in a sentence; and what the keys would do."""

    def view(self, snapshot: Snapshot) -> object:
        """The sweep, which workload is in front, and whether the dashboard's server comes back."""
        return self.sweep, self.front, snapshot.settings.running is not None

    def watch_sweep(self) -> None:
        """Colour the edge as well."""
        self.set_class(self.sweep.finished, "-decided")
        self.set_class(self.sweep.stage is SweepStage.FAILED or bool(self.sweep.problem), "-failed")
        super().watch_sweep()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The sentence, what is recommended so far, and in the last lines what happens next."""
        sweep = self.sweep
        badge = f" {sweep.stage.value.upper()} "
        if sweep.problem and sweep.stage is SweepStage.READY:
            badge, style = " NO PLAN ", "badge-bad"
        else:
            style = _BADGES.get(sweep.stage, "badge-warn")
        lead = cell_len(badge) + 1
        said = _said(sweep, self.front)
        first = wrap("\u00a0" * lead + said[0], width)
        ink = "strong" if sweep.finished or sweep.problem else "text"
        lines: list[Line] = [(Span(badge, style), Span(first[0][lead - 1 :], ink))]
        lines += [(Span(line, ink),) for line in first[1:]]
        lines += [(Span(line, "warn"),) for line in wrap(shown(sweep.unkept), width)] if sweep.unkept else []
        for text in said[1:]:
            lines += [(Span(line, "text"),) for line in wrap(text, width, indent="  ")]
        after = wrap(_next(sweep, self.front, server_returns(snapshot, busy=sweep.busy)), width)
        room = max(1, height - len(after))
        body = lines[:room]
        return [*body, *[()] * (room - len(body)), *((Span(line, "label"),) for line in after)][:height]


def plan_sentence(plan: SweepPlan) -> str:
    """What a sweep takes, in a few words."""
    starts = _span(*(f"{each}" for each in plan.starts))
    minutes = _span(*(f"{each / 60:.0f}" if each >= 600 else f"{each / 60:.1f}" for each in plan.seconds))
    source = "measured" if plan.measured else "assumed"
    return (
        f"{counted(plan.cells, 'cell')}, {starts} server starts, about {minutes} min "
        f"at {plan.speed:.1f} tokens/s ({source}) and {plan.tokens} tokens per answer"
    )


def time_left(left: tuple[float, float]) -> str:
    """The time that is left, in a few words; a short one in seconds."""
    unit, seconds = ("s", 1) if left[1] < 90 else ("min", 60)
    low, high = (f"{each / seconds:.0f}" for each in left)
    return f"at most {high} {unit} left" if low == "0" else f"about {_span(low, high)} {unit} left"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _progress(sweep: SweepView, width: int) -> Line:
    total = sweep.plan.cells if sweep.plan is not None else 0
    words = f"{sweep.done} of at most {counted(total, 'cell')}"
    if sweep.left is not None and not sweep.finished:
        words += f", {time_left(sweep.left)}"
    room = max(0, min(40, width - cell_len(words) - 2))
    filled = room if sweep.finished else min(room, round(room * sweep.done / total)) if total else 0
    return (
        Span("\u2501" * filled, "accent"),
        Span("\u2501" * (room - filled), "faint"),
        Span(f"  {words}", "text"),
    )


def _said(sweep: SweepView, front: int) -> tuple[str, ...]:
    """Sentences, the most important first."""
    if sweep.problem:
        return (shown(sweep.problem),)
    if sweep.command and not sweep.maps:
        return (_FOREIGN,)
    best = sweep.maps[front] if front < len(sweep.maps) else None
    so_far = shown(best.said) if best is not None else ""
    if sweep.finished:
        return (so_far,)
    stopped = "Not finished." if sweep.stage is SweepStage.STOPPED else ""
    if sweep.note or stopped:
        known = best is not None and best.top is not None
        return (shown(sweep.note) or stopped, *([f"so far {so_far}"] if known else []))
    return (_IDLE if sweep.plan is not None else "",)


def _next(sweep: SweepView, front: int, returns: str) -> str:
    """returns: as `server_returns` has it."""
    if sweep.busy:
        held = sweep.stage in {SweepStage.PAUSED, SweepStage.PAUSING}
        what = "space goes on" if held else "space pauses"
        stops = "s stops" if sweep.unkept and sweep.number is None else "s stops and keeps what is known"
        return f"{what}, {stops}{returns}"
    if sweep.finished and sweep.number is not None:
        best = sweep.maps[front].best if front < len(sweep.maps) else None
        apply = "enter restarts with it; " if best is not None and not sweep.command else ""
        again = "" if sweep.command else "; space sweeps anew"
        return f"{apply}{export_command(sweep.number)} writes it out{again}"
    if sweep.command:
        return f"use: {shown(sweep.command)}"
    if sweep.plan is None:
        return ""
    return f"space {'goes on where it was' if sweep.number is not None else 'starts'}{returns}"
