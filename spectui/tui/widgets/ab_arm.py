"""One arm of the A/B screen: speed, bet and settings in one column, row by row beside its twin's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from spectui.core.bet.estimates import BetReading
from spectui.core.profile import OFF, TuningProfile, is_ngram, needs_draft_model
from spectui.core.secrets import redacted
from spectui.core.views.ab import AbView, ArmName, ArmView, differences
from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import UNKNOWN, duration, fit, margin, model_name, number, shown, speed, times
from spectui.tui.widgets.ab import AbPanel
from spectui.tui.widgets.digits import big
from spectui.tui.widgets.panel import Line, Span, centred
from spectui.tui.widgets.survival import survival_lines

_LABEL: Final = 13
_FIGURE: Final = 17
_HEADED: Final = 5
"""Rows of headings and gaps."""
_CHART: Final = 8
"""Rows from which on the bars are worth it."""
_WIDEST, _TALLEST = 60, 16
"""The largest that the bars grow to."""


class SettingLine(NamedTuple):
    """One row: what it is called, the field it shows, and its value as written."""

    label: str
    field: str
    value: str


class ArmPanel(AbPanel):
    """Grows with its height: figures and settings first, then more of the bet, headings, bars of survival."""

    def __init__(self, side: ArmName) -> None:
        super().__init__(id=f"arm-{side}", classes="arm")
        self._side: ArmName = side

    def on_mount(self) -> None:
        """Name the side."""
        self._entitle()

    def watch_ab(self) -> None:
        """The title tells whose turn it is."""
        self._entitle()
        super().watch_ab()

    def watch_chosen(self) -> None:
        """The edge tells which arm is chosen."""
        self.set_class((self.chosen or self.ab.faster) == self._side, "-chosen")
        super().watch_chosen()

    def _entitle(self) -> None:
        arm = self.ab.arm(self._side)
        name = f" {shown(arm.name)}" if arm is not None else ""
        turn = ", answers now" if self.ab.turn == self._side else ""
        self.border_title = f"{self._side.upper()}{name}{turn}".replace("[", "\\[")
        self.set_class((self.chosen or self.ab.faster) == self._side, "-chosen")
        self.set_class(self.ab.turn == self._side, "-turn")

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The rows of both arms are the same ones, so that they stand side by side."""
        arm = self.ab.arm(self._side)
        if arm is None:
            return centred("l takes a saved profile" if self._side == "b" else "nothing runs", width, height)
        parts = _Parts(
            head=_figures(arm, self.ab, width),
            bet=_bet_rows(arm.bet, width),
            settings=_setting_lines(self.ab, self._side, width),
        )
        spare = height - parts.height - _HEADED
        if spare < 0:
            return _tight(parts, arm, width, height)
        lines: list[Line] = [(), *parts.head, (), _heading("the bet"), *parts.bet, ()]
        lines += [_heading("settings"), *parts.settings]
        if spare >= _CHART:
            bars = min(width, _WIDEST)
            chart = survival_lines(arm.bet, arm.profile, bars, min(spare - 2, _TALLEST))
            lines += [(), _heading("kept at position"), *chart]
        return lines


class _Parts(NamedTuple):
    """What stands in an arm's column, from the top."""

    head: list[Line]
    bet: list[Line]
    settings: list[Line]

    @property
    def height(self) -> int:
        return sum(map(len, self))


def _tight(parts: _Parts, arm: ArmView, width: int, height: int) -> list[Line]:
    """Settings always; large figures where they fit beside these; as much of the bet as there is room for."""
    head, settings = parts.head, parts.settings
    if height < len(head) + len(settings):
        head = [_row("tokens/s", speed(arm.bet.tokens_per_second).rjust(6), "", width)]
    rows = parts.bet[: max(0, height - len(head) - len(settings))]
    spare = height - len(head) - len(rows) - len(settings)
    gap: list[Line] = [()]
    return [*head, *(gap if spare > 1 else []), *rows, *(gap if spare else []), *settings]


def _heading(text: str) -> Line:
    return (Span(text, "label"),)


def _figures(arm: ArmView, ab: AbView, width: int) -> list[Line]:
    value = speed(arm.bet.tokens_per_second)
    style = "good" if ab.faster is not None and ab.arm(ab.faster) is arm else "strong"
    field = _FIGURE if len(value) > 4 else _FIGURE - 4
    unit = " tok/s" if width >= field + 6 else ""
    return [
        (
            Span(row, style if value != UNKNOWN else "faint"),
            Span(unit if index == 2 else "", "label"),
        )
        for index, row in enumerate(big(value, field))
    ]


def _bet_rows(bet: BetReading, width: int) -> list[Line]:
    """The most telling first: what does not fit is left out from the end."""
    alpha, per_pass = bet.alpha, bet.tokens_per_pass
    first, unit = duration(bet.time_to_first_token_ms)
    actual = bet.speedup_actual
    return [
        _row("tokens/pass", number(per_pass.value if per_pass else None), margin(per_pass), width),
        _row("alpha", number(alpha.value if alpha else None), margin(alpha), width),
        _row("first token", first.rjust(6), unit, width),
        _row(
            "actual",
            times(actual.value).rjust(7) if actual else UNKNOWN.rjust(6),
            f"over {shown(bet.baseline_source)}" if actual and bet.baseline_source else "",
            width,
        ),
        _row("draft cost c", number(bet.c), "steps" if bet.c is not None else "", width),
        _row("pass cost R", number(bet.pass_cost), "steps" if bet.pass_cost is not None else "", width),
        _row("ratio", number(bet.acceptance_ratio), "", width),
        _row("passes", f"{bet.passes:,}".rjust(6) if bet.passes else UNKNOWN.rjust(6), "", width),
    ]


def _row(label: str, value: str, note: str, width: int) -> Line:
    room = width - _LABEL - len(value) - 1
    unknown = value.strip() == UNKNOWN
    return (
        Span(label.ljust(_LABEL), "label"),
        Span(value, "label" if unknown else "strong"),
        Span(f" {note}" if note and len(note) <= room and not unknown else "", "label"),
    )


def settings_of(profile: TuningProfile, others: Sequence[str]) -> list[SettingLine]:
    """The usual settings, and behind them whatever else of `others` the arms differ in."""
    rows = [
        SettingLine("target", "server.model", model_name(profile.server.model or profile.server.url)),
        SettingLine("mode", "speculation.mode", shown(profile.speculation.mode)),
        SettingLine("draft", "speculation.draft_model", _draft(profile)),
        SettingLine("length", "speculation.draft_length", _length(profile)),
        SettingLine("p_min", "speculation.p_min", _p_min(profile)),
        SettingLine("temperature", "sampling.temperature", f"{profile.sampling.temperature:.1f}"),
    ]
    usual = {"speculation.ngram_length", *(row.field for row in rows)}
    for name in (name for name in others if name not in usual):
        section, field = name.split(".")
        value = getattr(getattr(profile, section), field)
        rows.append(SettingLine(field.replace("_", " "), name, _written(value)))
    return rows


def _setting_lines(ab: AbView, side: ArmName, width: int) -> list[Line]:
    """An arm's settings, those that its twin has otherwise highlighted."""
    arm, twin = ab.arm(side), ab.arm("b" if side == "a" else "a")
    if arm is None:
        return []
    others = differences(arm.profile, twin.profile) if twin is not None else ()
    mine = settings_of(arm.profile, others)
    theirs = settings_of(twin.profile, others) if twin is not None else mine
    return [
        (
            Span(fit(row.label, _LABEL - 1) + " ", "label"),
            Span(fit(row.value, width - _LABEL), "warn" if row.value != other.value else "text"),
        )
        for row, other in zip(mine, theirs, strict=True)
    ]


def _p_min(profile: TuningProfile) -> str:
    drafts = profile.speculation.mode != OFF and not is_ngram(profile.speculation.mode)
    return f"{profile.speculation.p_min:.2f}" if drafts else UNKNOWN


def _draft(profile: TuningProfile) -> str:
    used = needs_draft_model(profile.speculation.mode)
    return model_name(profile.speculation.draft_model) if used else UNKNOWN


def _length(profile: TuningProfile) -> str:
    spec = profile.speculation
    if spec.mode == OFF:
        return UNKNOWN
    if is_ngram(spec.mode):
        return str(spec.ngram_length) if spec.ngram_length is not None else "default"
    return str(spec.draft_length)


def _written(value: object) -> str:
    """A setting's value as it is shown."""
    if value is None or value == ():
        return "default"
    return shown(" ".join(redacted(value)) if isinstance(value, tuple) else str(value))
