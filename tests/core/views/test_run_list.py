from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.views.run_list import Number, RunRow, marked, matching

ROWS = (
    RunRow(id=3, started="2026-11-30 10:00", workload="code", mode="draft-simple", k=4, build="b10434"),
    RunRow(id=2, started="2026-11-29 10:00", workload="prose", mode="off", model="Qwen-32B.gguf"),
    RunRow(id=1, started="2026-11-28 10:00", workload="code", mode="ngram-mod", remark="stale"),
)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("", [3, 2, 1]),
        ("   ", [3, 2, 1]),
        ("code", [3, 1]),
        ("CODE stale", [1]),
        ("qwen", [2]),
        ("k=4", [3]),
        ("b104 draft", [3]),
        ("11-29", [2]),
        ("code prose", []),
        ("t=0", [3, 2, 1]),
    ],
)
def test_a_filter_wants_each_word_somewhere(wanted: str, ids: list[int]) -> None:
    assert [row.id for row in matching(ROWS, wanted)] == ids


@given(st.lists(st.integers(1, 5), max_size=20))
def test_two_marks_at_most_and_a_second_one_takes_it_away(runs: list[int]) -> None:
    marks: tuple[int, ...] = ()
    for run in runs:
        before = marks
        marks = marked(marks, run)
        assert len(marks) <= 2
        assert (run in marks) == (run not in before)


def test_the_third_mark_drops_the_oldest() -> None:
    assert marked(marked(marked((), 1), 2), 3) == (2, 3)


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [(20.0, 30.0, 1.5), (None, 30.0, None), (20.0, None, None), (0.0, 30.0, None), (20.0, 0.0, None)],
)
def test_a_ratio_needs_both_numbers(a: float | None, b: float | None, ratio: float | None) -> None:
    assert Number(name="tokens/s", a=a, b=b).ratio == ratio
