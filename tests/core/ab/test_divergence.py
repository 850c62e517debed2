from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.ab.divergence import Divergence, first_divergence


def test_equal_texts_do_not_part() -> None:
    assert first_divergence("", "") is None
    assert first_divergence("for i in x:\n", "for i in x:\n") is None


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("return a + b", "return a - b", Divergence(9, "return a + b", "return a - b")),
        ("abc", "abcdef", Divergence(3, "abc", "abcdef")),
        ("", "x", Divergence(0, "", "x")),
        ("\u00e4\u00f6x", "\u00e4\u00f6y", Divergence(2, "\u00e4\u00f6x", "\u00e4\u00f6y")),
    ],
)
def test_the_first_difference(a: str, b: str, found: Divergence) -> None:
    assert first_divergence(a, b) == found


def test_the_context_is_short_and_plain() -> None:
    head = "word " * 100
    found = first_divergence(head + "a\x1b[31m\nnext\x07" + "z" * 900, head + "b" * 900)
    assert found is not None
    assert found.position == 500
    assert found.a.isprintable()
    assert max(len(found.a), len(found.b)) <= 48
    assert "31m" not in found.a


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_what_both_share_ends_at_the_position(head: str, one: str, other: str) -> None:
    a, b = head + one, head + other
    found = first_divergence(a, b)
    assert (found is None) == (a == b)
    if found is not None:
        assert len(head) <= found.position <= min(len(a), len(b))
        assert a[: found.position] == b[: found.position]
        assert a[found.position : found.position + 1] != b[found.position : found.position + 1]
        assert found == first_divergence(a, b)
