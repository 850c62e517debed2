from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.text import counted, one_line, without_escapes


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("as it is", "as it is"),
        ("größer ✓ 日本", "größer ✓ 日本"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", ""),
        ("a\tb\nc\r", "a b c "),
        ("\x1b(Bx\x1b7y", "xy"),
        ("bell\x07 c1\x9b31m", "bell  c1 31m"),
        ("evil\u202etxt.exe", "evil txt.exe"),
        ("/m/\udcff.gguf", "/m/ .gguf"),
    ],
)
def test_plain(text: str, plain: str) -> None:
    assert one_line(text) == plain


def test_escapes_alone_are_taken_out() -> None:
    assert without_escapes("\x1b[31mred\x1b[0m\tand \x1bPq\x1b\\bell\x07") == "red\tand bell\x07"
    assert without_escapes("as it is") == "as it is"


def test_a_number_has_its_noun() -> None:
    assert [counted(1, "change"), counted(2, "change"), counted(1204, "pass")] == [
        "1 change",
        "2 changes",
        "1,204 passes",
    ]


def test_limit_marks_the_cut() -> None:
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


@given(st.text(), st.one_of(st.none(), st.integers(1, 30)))
def test_never_a_control_character_and_never_longer_than_asked(text: str, limit: int | None) -> None:
    line = one_line(text, limit)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line)
    line.encode()
    assert limit is None or len(line) <= limit
