"""The top line: which server, which models, which traffic, and how busy the machine is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from spectui.core.views.snapshot import MachineView, ServerState, ServerView, Snapshot, TrafficState
from spectui.tui.text import model_name, short, shown
from spectui.tui.widgets.panel import Line, Panel, Span

DOTS: Final = {
    ServerState.NONE: ("\u25cb", "label"),
    ServerState.STARTING: ("\u25cf", "warn"),
    ServerState.LOADING: ("\u25cf", "warn"),
    ServerState.RUNNING: ("\u25cf", "good"),
    ServerState.ATTACHED: ("\u25cf", "good"),
    ServerState.STOPPING: ("\u25cf", "warn"),
    ServerState.FAILED: ("\u25cf", "bad"),
    ServerState.GONE: ("\u25cf", "bad"),
}
"""Dot and ink of a server's state."""


class Header(Panel):
    """One line; when it gets narrow the least important pieces go first."""

    DEFAULT_CSS = """
    Header { height: 1; background: $panel; padding: 0 1; }
    """

    def view(self, snapshot: Snapshot) -> object:
        """Server, machine and what is sent."""
        staged = snapshot.settings.staged
        return (
            snapshot.server,
            machine_text(snapshot.machine),
            staged.sampling,
            staged.traffic,
            snapshot.traffic,
        )

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """Pieces from the left, the machine on the right; in full, else compact, else the important ones."""
        for tight, less in ((False, False), (True, False), (True, True)):
            right = machine_text(snapshot.machine, compact=less)
            pieces, gap = _pieces(snapshot, compact=tight), 2 if tight else 3
            if _length(pieces, gap) + cell_len(right) + gap <= width:
                break
        while len(pieces) > 1 and _length(pieces, gap) + cell_len(right) + gap > width:
            del pieces[max(range(len(pieces)), key=lambda index: pieces[index][0])]
        spans: list[Span] = []
        for _rank, piece in pieces:
            spans += [Span(" " * gap), *piece] if spans else piece
        room = width - _length(pieces, gap) - cell_len(right)
        if right and room > 0:
            spans += [Span(" " * room), Span(right, "label")]
        return [tuple(spans)]


def machine_text(machine: MachineView, *, compact: bool = False) -> str:
    """The GPU where there is one, else the processor; memory in GiB unless compact."""
    gpu = machine.gpu_used_gib is not None or machine.gpu_percent is not None
    used, total, percent = (
        (machine.gpu_used_gib, machine.gpu_total_gib, machine.gpu_percent)
        if gpu
        else (machine.memory_used_gib, machine.memory_total_gib, machine.cpu_percent)
    )
    memory = f"{used:.1f}/{total:.1f} GiB" if used is not None and total is not None and not compact else ""
    load = f"{percent:3.0f}%" if percent is not None else ""
    if not memory and not load:
        return ""
    return " ".join(part for part in ("GPU" if gpu else "CPU", load, memory) if part)


def _place(server: ServerView) -> str:
    """Where the models are: once if both are on the same kind of device, else target + draft."""
    target, draft = server.target_place, server.draft_place
    if target and draft and target.split()[0] != draft.split()[0]:
        return f"{target} + {draft}"
    return target or ""


def _pieces(snapshot: Snapshot, *, compact: bool) -> list[tuple[int, list[Span]]]:
    """Pieces with their rank; the highest rank is dropped first."""
    server, staged = snapshot.server, snapshot.settings.staged
    dot, style = DOTS[server.state]
    state = str(server.state)
    if server.state is ServerState.LOADING and server.progress is not None:
        state = f"loading {server.progress:4.0%}"
    pieces = [(9, [Span("spectui", "accent")]), (0, [Span(dot, style), Span(f" {state}", "strong")])]
    known = " ".join(part for part in (shown(server.build or ""), _address(server.url)) if part)
    if known:
        pieces.append((8, [Span(short(known, 28), "label")]))
    target = server.target or staged.server.model
    if target:
        name = short(model_name(target), 18 if compact else 24)
        name += " (padded)" if server.padded and "padded" not in name else ""
        pieces.append((1, [Span("" if compact else "target ", "label"), Span(name)]))
    if server.draft:
        name = short(model_name(server.draft), 14 if compact else 20)
        pieces.append((4, [Span("+ " if compact else "draft ", "label"), Span(name)]))
    place = _place(server)
    if place:
        pieces.append((6, [Span("on ", "label"), Span(place, "warn" if "+" in place else "text")]))
    if snapshot.traffic is not TrafficState.OFF:
        pieces.append((3, [Span(short(shown(staged.traffic.workload), 12))]))
    pieces.append((5, [Span("T ", "label"), Span(f"{staged.sampling.temperature:.1f}")]))
    if server.slots is not None:
        pieces.append((7, [Span("np ", "label"), Span(str(server.slots))]))
    return pieces


def _address(url: str | None) -> str:
    if not url:
        return ""
    address = shown(url).split("://", 1)[-1].rstrip("/")
    host, _, port = address.rpartition(":")
    return f":{port}" if host in {"127.0.0.1", "localhost", "[::1]"} else address


def _length(pieces: list[tuple[int, list[Span]]], gap: int) -> int:
    return sum(cell_len(span.text) for _, piece in pieces for span in piece) + gap * (len(pieces) - 1)


def server_returns(snapshot: Snapshot, *, busy: bool) -> str:
    """What becomes of the dashboard's server, to follow what starts or stops a borrower; empty where none runs."""
    if snapshot.settings.running is None:
        return ""
    if busy:
        return "; the dashboard's server comes back afterwards"
    return ": the dashboard's server stops first and comes back afterwards"


def with_server(spans: Sequence[Span], state: ServerState, *, busy: bool, width: int) -> Line:
    """The line of a screen that borrows the device, and at its right end how the dashboard's own server is.

    busy: whether the borrower has the device, or is about to.
    """
    lent = busy and state is ServerState.NONE
    right = "dashboard's server: stopped for this" if lent else f"dashboard's server: {state}"
    used = sum(cell_len(span.text) for span in spans)
    if used + cell_len(right) + 3 > width:
        right = right.removeprefix("dashboard's ")
    room = width - used - cell_len(right)
    if room <= 2:
        return tuple(spans)
    return (*spans, Span(" " * room), Span(right, "warn" if lent else "label"))
