from __future__ import annotations

from dataclasses import replace
from typing import Any

import plotext
import pytest
from rich.cells import cell_len

from spectui.core.bet.estimates import CurvePoint, PositionRow
from spectui.core.profile import SpeculationSettings, TuningProfile
from spectui.core.verdict.verdict import Change, Finding, Group, Outcome
from spectui.core.views.snapshot import CurveView, HistoryView, MachineView, ServerState, Snapshot
from spectui.tui.advice import advice_of
from spectui.tui.widgets.banner import alert_of
from spectui.tui.widgets.bet import BetTile
from spectui.tui.widgets.chart import BEST, MEASURED, NOW, at_length, legend, plot
from spectui.tui.widgets.command import CommandLine
from spectui.tui.widgets.digits import big
from spectui.tui.widgets.header import Header, machine_text
from spectui.tui.widgets.history import HistoryChart, bin_seconds, binned, nice_top
from spectui.tui.widgets.panel import Line, Panel
from spectui.tui.widgets.settings import SettingsTile, rows
from spectui.tui.widgets.speed import SpeedTile
from spectui.tui.widgets.survival import SurvivalChart
from spectui.tui.widgets.tail import LogPanel, WrittenPanel
from spectui.tui.widgets.verdict import VerdictBar, describe, key_line
from tests.tui import fakes

SITUATIONS = [
    fakes.losing,
    fakes.winning,
    fakes.staged,
    fakes.loading,
    fakes.failed,
    fakes.attached,
    fakes.silent,
    Snapshot,
]
PANELS = [
    Header,
    SpeedTile,
    BetTile,
    SettingsTile,
    HistoryChart,
    SurvivalChart,
    VerdictBar,
    CommandLine,
    WrittenPanel,
    LogPanel,
]


def written(lines: object) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in lines]  # type: ignore[attr-defined]


def cells(line: Line) -> int:
    return sum(cell_len(span.text) for span in line)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("width", "height"), [(16, 4), (26, 7), (46, 12), (120, 30)])
def test_every_panel_draws_every_situation(
    panel: type[Panel], situation: type[Snapshot], width: int, height: int
) -> None:
    lines = panel().lines(situation(), width, height)
    assert all(span.style for line in lines for span in line)


@pytest.mark.parametrize("width", [26, 43, 60, 84])
def test_numbers_of_the_bet_share_a_column(width: int) -> None:
    text = written(BetTile().lines(fakes.losing(), width, 8))
    points = {line.index(".") for line in text[:6]}
    assert len(points) == 1
    assert all(len(line) <= width for line in text)


def test_bet_says_what_was_measured() -> None:
    text = "\n".join(written(BetTile().lines(fakes.losing(), 70, 8)))
    for part in (
        "0.32  \u00b10.03",
        "1.47  of 17 possible",
        "2.77  plain steps, 81.7 ms per pass",
        "1,204  in 14",
    ):
        assert part in text


def test_unknown_is_a_dash_and_never_zero() -> None:
    text = written(BetTile().lines(fakes.loading(), 60, 8))
    assert [line.split()[-1] for line in text[:6]] == ["\u2014"] * 6


def test_staged_settings_show_old_and_new() -> None:
    lines = SettingsTile().lines(fakes.staged(), 33, 8)
    assert "16 \u2192 4" in written(lines)[2]
    assert any(span.text.strip() == "4" and span.style == "warn" for span in lines[2])


def test_a_staged_value_that_does_not_fit_keeps_the_new_one() -> None:
    snapshot = fakes.with_staged(fakes.losing(), fakes.PROFILE.with_speculation(mode="ngram-simple"))
    line = written(SettingsTile().lines(snapshot, 28, 7))[0]
    assert "\u2192 ngram-simple" in line
    assert "draft-simple" not in line


def test_every_row_of_the_settings_is_as_wide_as_the_tile_and_clickable() -> None:
    for height in (7, 8):
        for line in SettingsTile().lines(fakes.losing(), 30, height):
            assert cells(line) == 30
            assert any(span.action for span in line)


def test_ngram_modes_show_the_lookup_instead_of_p_min() -> None:
    profile = fakes.PROFILE.with_speculation(mode="ngram-simple", ngram_length=8)
    table = {row.label: row for row in rows(fakes.with_staged(fakes.losing(), profile), joined=False)}
    assert table["lookup"].new == "default"
    assert table["length"].new == "8"
    assert not table["draft"].used


def test_settings_of_a_server_that_never_answered_are_unknown() -> None:
    base = fakes.attached()
    unseen = replace(base, settings=replace(base.settings, running=None))
    table = {row.label: (row.old, row.new) for row in rows(unseen, joined=False)}
    assert table["mode"] == table["length"] == ("—", "—")


def test_speed_has_the_speedup_in_large_figures_where_there_is_room() -> None:
    wide = written(SpeedTile().lines(fakes.losing(), 40, 8))
    narrow = written(SpeedTile().lines(fakes.losing(), 18, 7))
    low = written(SpeedTile().lines(fakes.losing(), 18, 5))
    assert wide[0].count("█") > narrow[0].count("█")
    assert "18.0" in low[0]
    assert any("0.53x" in line for line in low)


def test_figures_do_not_move_when_a_digit_is_added() -> None:
    assert [len(row) for row in big("9.9", 13)] == [len(row) for row in big("18.0", 13)] == [13, 13, 13]


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_header_fits_and_keeps_the_state(width: int) -> None:
    (line,) = Header().lines(fakes.losing(), width, 1)
    assert cells(line) <= width
    assert "running" in written([line])[0]


def test_header_drops_the_least_important_first() -> None:
    text = written(Header().lines(fakes.losing(), 60, 1))[0]
    assert "deep-16bit" in text
    assert "b10434" not in text


def test_machine() -> None:
    assert machine_text(MachineView()) == ""
    assert machine_text(MachineView(cpu_percent=7.0)) == "CPU   7%"
    assert machine_text(fakes.losing().machine) == "GPU  61% 18.2/24.0 GiB"


def test_history_bins_stand_still() -> None:
    view = fakes.history(((30, 30.0, "off"),), 30.0)
    longer = HistoryView(points=(*view.points, *fakes.history(((40, 20.0, ""),), None).points[-20:]))
    first, second = binned(view, 0.5), binned(longer, 0.5)
    assert all(second[index] == mean for index, mean in first.items())
    assert bin_seconds(10.0, 60) == 0.25
    assert bin_seconds(130.0, 60) == 3.0
    assert bin_seconds(1e6, 60) >= 1e6 / 60


@pytest.mark.parametrize(("value", "top"), [(34.0, 40.0), (40.1, 50.0), (0.7, 0.8), (990.0, 1500.0)])
def test_history_axis_is_round(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_history_marks_restarts_and_the_baseline() -> None:
    lines = HistoryChart().lines(fakes.losing(), 80, 14)
    text = "\n".join(written(lines))
    for part in ("off", "length 1", "length 16", "baseline 34.0", "0:00", "50.0"):
        assert part in text
    styles = {
        span.style
        for line in lines
        for span in line
        if any("\u2800" < sign <= "\u28ff" for sign in span.text)
    }
    assert styles == {"good", "bad", "accent"}


def test_survival_is_cut_where_nothing_is_kept() -> None:
    text = written(SurvivalChart().lines(fakes.losing(), 40, 14))
    assert text[0].startswith(" 1 █")
    assert text[4] == "   12 more, below 0.01"
    assert text[-1] == "1 of its own + sum = 1.47 per full pass"


def test_survival_bars_grow_with_the_share() -> None:
    snapshot = fakes.losing()
    bet = replace(snapshot.bet, survival=tuple(PositionRow(position=k, survival=1 / k) for k in range(1, 5)))
    lines = SurvivalChart().lines(replace(snapshot, bet=bet), 40, 10)
    widths = [line[1].text.count("█") for line in lines[:4]]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 31


@pytest.mark.parametrize(
    ("situation", "words"),
    [(fakes.loading(), "no passes yet"), (fakes.silent(), "no drafted tokens yet")],
)
def test_survival_says_why_it_is_empty(situation: Snapshot, words: str) -> None:
    assert words in " ".join(written(SurvivalChart().lines(situation, 40, 10)))


def test_curve_has_every_series_and_a_logarithmic_axis() -> None:
    text = plot(plotext, fakes.losing().curve, 60, 16)
    for sign in (NOW, BEST, "\u2508", "·"):
        assert sign in text
    axis = text.splitlines()[-1] if text.splitlines()[-1].strip() else text.splitlines()[-2]
    assert axis.split() == ["1", "2", "4", "8", "16", "32", "64"]
    places = [axis.index(tick) for tick in (" 2", " 8")]
    assert places[1] - places[0] == pytest.approx(2 * (axis.index(" 4") - places[0]), abs=2)


def test_curve_takes_the_running_length_from_the_best_source() -> None:
    curve = fakes.losing().curve
    assert at_length(curve, 16) == CurvePoint(draft_length=16, speedup=0.53)
    assert at_length(curve, 2) in curve.predicted
    assert at_length(curve, None) is None


def test_legend_names_what_is_there_and_fits() -> None:
    assert written([legend(CurveView(measured=(CurvePoint(draft_length=1, speedup=1.0),)), 60)]) == [
        f"{MEASURED} measured"
    ]
    for width in (30, 40, 47, 80):
        assert len(written([legend(fakes.losing().curve, width)])[0]) <= width


def test_verdict_has_a_badge_and_the_keys() -> None:
    lines = VerdictBar().lines(fakes.staged(), 100, 5)
    assert lines[0][0].style == "badge-bad"
    assert lines[0][0].text == " LOSING 0.53x "
    assert written(lines)[-1].startswith("r restart with 1 change   B apply length 1   u undo")


def test_verdict_without_a_verdict_says_what_is_missing() -> None:
    lines = VerdictBar().lines(Snapshot(), 100, 4)
    assert "NO VERDICT YET" in written(lines)[0]
    assert lines[0][0].style == "badge-warn"


def test_verdict_shows_traffic_progress_on_the_right() -> None:
    line = key_line(replace(fakes.losing(), traffic_note="warm-up 1 of 2"), 80)
    assert "".join(span.text for span in line).endswith("warm-up 1 of 2")


def test_changes_in_words() -> None:
    assert describe(Change(mode="off")) == "off"
    assert (
        describe(Change(mode="draft-simple", draft_length=2, p_min=0.5))
        == "draft-simple, length 2, p_min 0.50"
    )
    lookup = Change(mode="ngram-simple", ngram_lookup=2, ngram_length=16)
    assert describe(lookup) == "ngram-simple, lookup 2, n-gram length 16"


def test_banner_of_a_failed_launch() -> None:
    alert = alert_of(fakes.failed())
    assert alert is not None
    assert alert.kind == "bad"
    assert "vocabularies differ" in alert.message
    assert alert.log[-1] == "main: exiting due to model loading error"
    assert [key for key, *_ in alert.keys] == ["u", "r", "i"]


def test_banner_of_silent_speculation_offers_the_change() -> None:
    alert = alert_of(fakes.silent())
    assert alert is not None
    assert (alert.kind, alert.title) == ("warn", "nothing speculates")
    assert [key for key, *_ in alert.keys] == ["B", "i"]


@pytest.mark.parametrize(("owned", "key"), [(True, "r"), (False, "\u2423")])
def test_banner_of_a_lost_server_names_the_key_that_brings_it_back(owned: bool, key: str) -> None:
    base = fakes.attached()
    assert base.settings.staged.server.url is not None
    lost = replace(base, server=replace(base.server, state=ServerState.GONE, owned=owned))
    alert = alert_of(lost)
    assert alert is not None
    assert [k for k, *_ in alert.keys if k in {"r", "\u2423"}] == [key]


@pytest.mark.parametrize(
    ("code", "owned", "advice"),
    [
        ("wrong-pair", True, "try another draft model (d)"),
        ("server-error", True, "try another draft model (r, u)"),
        ("server-error", False, "try another draft model"),
        ("baseline-missing", True, "press b to measure it"),
        ("baseline-missing", False, "press b to give it"),
        ("draft-too-long", True, "try another draft model"),
    ],
)
def test_advice_names_a_key_where_one_follows_it(code: str, owned: bool, advice: str) -> None:
    finding = Finding(code=code, group=Group.TO_KNOW, message="m", advice="try another draft model")
    assert advice_of(finding, owned=owned) == advice


def test_banner_of_a_server_that_went_away_without_a_finding() -> None:
    base = fakes.losing()
    gone = replace(base, server=replace(base.server, state=ServerState.GONE, note="the connection was lost"))
    lost = replace(gone, verdict=replace(base.verdict, outcome=Outcome.UNKNOWN, headline="", findings=()))
    alert = alert_of(lost)
    assert alert is not None
    assert alert.message == "the connection was lost"


def test_no_banner_in_normal_running() -> None:
    assert alert_of(fakes.losing()) is None
    assert alert_of(fakes.attached()) is None


def test_command_line_shows_problems_first() -> None:
    base = fakes.staged()
    broken = replace(base, settings=replace(base.settings, problem="no draft model is set: d chooses one"))
    assert written(CommandLine().lines(broken, 80, 2)) == ["no draft model is set: d chooses one"]
    long = written(CommandLine().lines(base, 60, 2))
    assert long[0].startswith("$ llama-server -m")
    assert long[1].endswith("x shows all")


def test_output_of_a_model_is_shown_plain() -> None:
    evil = replace(fakes.losing(), output="[bold red]x[/]\x1b[2J\x1b]0;title\x07\n\ttab\r\x00end")
    text = "\n".join(written(WrittenPanel().lines(evil, 40, 5)))
    assert "[bold red]x[/]" in text
    assert not any(ord(sign) < 32 and sign != "\n" for sign in text)
    assert "title" not in text


def test_output_shows_its_end() -> None:
    long = replace(fakes.losing(), output="\n".join(f"line {index}" for index in range(100)))
    assert written(WrittenPanel().lines(long, 40, 3)) == ["line 97", "line 98", "line 99"]


def test_settings_of_a_foreign_server_are_unknown_until_its_drafts_show_them() -> None:
    profile = TuningProfile(speculation=SpeculationSettings(mode="draft-simple", draft_length=4))
    base = fakes.with_staged(fakes.losing(), profile)

    def value(label: str, **seen: Any) -> str:
        snapshot = replace(base, settings=replace(base.settings, running=profile, **seen))
        return next(row.new for row in rows(snapshot, joined=False) if row.label == label)

    assert (value("length", drafting_known=False), value("p_min", drafting_known=False)) == ("—", "—")
    assert (value("length"), value("p_min")) == ("4", "0.00")
    assert value("p_min", drafts_vary=True) == "above 0"
