"""The tile `settings`: what runs, what is staged beside it as old -> new, and the key that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

from spectui.core.profile import OFF, TuningProfile, is_ngram, needs_draft_model
from spectui.core.views.snapshot import Snapshot, TrafficState
from spectui.tui.text import UNKNOWN, fit, model_name, short, shown
from spectui.tui.widgets.panel import Line, Panel, Span

_LABEL: Final = 9
_KEYS: Final = 3


class Row(NamedTuple):
    """One setting: running and staged value as written, its keys with their actions, and whether it matters."""

    label: str
    old: str
    new: str
    keys: tuple[tuple[str, str], ...]
    used: bool = True


class SettingsTile(Panel):
    """Eight rows; a click on a row does what its key does."""

    BORDER_TITLE = "settings"

    def view(self, snapshot: Snapshot) -> object:
        """Both profiles, and the traffic."""
        settings = snapshot.settings
        drafting = settings.drafting_known, settings.drafts_vary
        return settings.running, settings.staged, drafting, snapshot.traffic, snapshot.server.state

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The last rows join where there are only seven lines."""
        return [_line(row, width) for row in rows(snapshot, joined=height < 8)]


def rows(snapshot: Snapshot, *, joined: bool) -> list[Row]:
    """The settings in the order of their keys."""
    staged = snapshot.settings.staged
    running = snapshot.settings.running or staged
    new, old = staged.speculation, running.speculation
    ngram = is_ngram(new.mode)
    on = _traffic(snapshot.traffic)
    unreached = snapshot.settings.unreached
    known, vary = snapshot.settings.drafting_known and not unreached, snapshot.settings.drafts_vary
    several = f"{staged.traffic.concurrency} at once"
    table = [
        Row(
            "mode",
            UNKNOWN if unreached else shown(old.mode),
            UNKNOWN if unreached else shown(new.mode),
            (("n", "screen.mode"),),
        ),
        Row("draft", _draft(running), _draft(staged), (("d", "screen.draft"),), needs_draft_model(new.mode)),
        Row(
            "length",
            _length(running) if known else UNKNOWN,
            _length(staged) if known else UNKNOWN,
            (("[", "screen.length(-1)"), (" ", ""), ("]", "screen.length(1)")),
            new.mode != OFF,
        ),
        Row(
            "lookup" if ngram else "p_min",
            _lookup(running) if ngram else _p_min(old.p_min, known=known, vary=vary),
            _lookup(staged) if ngram else _p_min(new.p_min, known=known, vary=vary),
            (("p", "screen.p_min"),),
            new.mode != OFF,
        ),
        Row(
            "temp",
            f"{staged.sampling.temperature:.1f}",
            f"{staged.sampling.temperature:.1f}",
            (("t", "screen.temperature(-1)"), (" ", ""), ("T", "screen.temperature(1)")),
        ),
        Row("workload", "", shown(staged.traffic.workload), (("w", "screen.workload"),)),
    ]
    if joined:
        keys = (("\u2423", "screen.traffic"), (" ", ""), ("c", "screen.concurrency"))
        return [*table, Row("traffic", "", f"{on}, {several}", keys)]
    return [
        *table,
        Row("traffic", "", on, (("\u2423", "screen.traffic"),)),
        Row("requests", "", several, (("c", "screen.concurrency"),)),
    ]


def _line(row: Row, width: int) -> Line:
    keys = sum(len(key) for key, _ in row.keys)
    room = width - _LABEL - max(keys, _KEYS) - 1
    action = next(action for key, action in row.keys if action)
    spans = [Span(row.label.ljust(_LABEL), "label", action)]
    if row.old and row.old != row.new and row.used:
        arrow = f"{row.old} \u2192 {row.new}"
        if cell_len(arrow) <= room:
            spans += [Span(f"{row.old} \u2192 ", "label", action)]
            spans += [Span(fit(row.new, room - cell_len(row.old) - 3), "warn", action)]
        else:
            spans += [Span(fit(f"\u2192 {row.new}", room), "warn", action)]
    else:
        spans += [Span(fit(short(row.new, room), room), "strong" if row.used else "faint", action)]
    spans.append(Span(" " * (width - _LABEL - room - keys)))
    spans += [Span(key, "key", action) for key, action in row.keys]
    return tuple(spans)


def _draft(profile: TuningProfile) -> str:
    return model_name(profile.speculation.draft_model)


def _length(profile: TuningProfile) -> str:
    speculation = profile.speculation
    if is_ngram(speculation.mode):
        return str(speculation.ngram_length) if speculation.ngram_length is not None else "default"
    return str(speculation.draft_length)


def _p_min(value: float, *, known: bool, vary: bool) -> str:
    """A foreign server's p_min is not told: drafts that vary show that there is one."""
    if not known:
        return UNKNOWN
    return "above 0" if vary and value == 0 else f"{value:.2f}"


def _lookup(profile: TuningProfile) -> str:
    lookup = profile.speculation.ngram_lookup
    return str(lookup) if lookup is not None else "default"


def _traffic(state: TrafficState) -> str:
    return "on" if state is TrafficState.ON else str(state)
