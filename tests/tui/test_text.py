from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from spectui.core.bet.estimates import Estimate
from spectui.tui import text
from spectui.tui.screens import setting_steps


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "\u2014"), (9.95, "9.9"), (34.0, "34.0"), (999.96, "1000"), (1523.4, "1523")],
)
def test_speed(value: float | None, written: str) -> None:
    assert text.speed(value) == written


def test_numbers_stand_in_one_column() -> None:
    written = [text.number(value) for value in (None, 0.32, 16.0, 123.456)]
    assert written == ["     \u2014", "  0.32", " 16.00", "123.46"]


def test_margin_needs_an_interval() -> None:
    assert text.margin(Estimate(value=0.3)) == ""
    assert text.margin(Estimate(value=0.32, low=0.29, high=0.35)) == "\u00b10.03"
    assert text.interval(Estimate(value=0.53, low=0.51, high=0.55)) == "0.51 to 0.55"


@given(st.text(), st.integers(2, 40))
def test_wrap_and_short_never_exceed_the_width(words: str, width: int) -> None:
    shown = text.shown(words)
    assert all(cell_len(line) <= width for line in text.wrap(shown, width))
    assert cell_len(text.short(shown, width)) <= width
    assert cell_len(text.fit(shown, width)) == width


def test_wrap_keeps_indentation_and_breaks_long_words() -> None:
    assert text.wrap("    out = []", 20) == ["    out = []"]
    assert text.wrap("one two three", 8) == ["one two", "three"]
    assert text.wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_foreign_text_loses_what_could_move_the_cursor() -> None:
    shown = text.shown("a\x1b[2Jb\x07c\ud800\u202ed")
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    shown.encode("utf-8")


def test_model_name() -> None:
    assert text.model_name("/models/a.b/27-blocks.gguf") == "27-blocks"
    assert text.model_name("C:\\models\\x.gguf") == "x"
    assert text.model_name(None) == "\u2014"


def test_sizes_and_clock() -> None:
    assert [text.size(None), text.size(91_400_000), text.size(19_900_000_000)] == [
        "\u2014",
        "91 MB",
        "19.9 GB",
    ]
    assert [text.clock(5), text.clock(125), text.clock(3725)] == ["0:05", "2:05", "1:02:05"]


@pytest.mark.parametrize(
    ("value", "direction", "expected"),
    [(1, -1, 1), (1, 1, 2), (8, 1, 12), (9, 1, 12), (9, -1, 8), (64, 1, 64), (12, -1, 8)],
)
def test_draft_length_steps(value: int, direction: int, expected: int) -> None:
    assert setting_steps.next_step(value, setting_steps.DRAFT_LENGTHS, direction) == expected


@pytest.mark.parametrize(
    ("value", "direction", "expected"),
    [(0.0, -1, 0.0), (0.2, 1, 0.3), (2.0, 1, 2.0), (3.0, 1, 3.0), (0.05, -1, 0.0)],
)
def test_temperature_steps(value: float, direction: int, expected: float) -> None:
    assert setting_steps.next_temperature(value, direction) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ms", "written"),
    [(None, ("\u2014", "")), (212.4, ("212", "ms")), (9999.4, ("9999", "ms")), (22026.0, ("22", "s"))],
)
def test_durations_take_four_cells(ms: float | None, written: tuple[str, str]) -> None:
    assert text.duration(ms) == written
