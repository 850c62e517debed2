from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spectui.core.views.series import BoundedSeries
from spectui.core.views.snapshot import HistoryPoint


def filled(capacity: int, count: int) -> BoundedSeries:
    series = BoundedSeries(capacity)
    for i in range(count):
        series.add(float(i), 10.0 * i)
    return series


def times(series: BoundedSeries) -> list[float]:
    return [point.t for point in series.snapshot()]


def test_everything_is_kept_below_the_capacity() -> None:
    assert filled(8, 7).snapshot() == tuple(
        HistoryPoint(t=float(i), tokens_per_second=10.0 * i) for i in range(7)
    )


def test_a_full_series_halves_its_resolution_and_loses_nothing() -> None:
    assert times(filled(8, 8)) == [0.5, 2.5, 4.5, 6.5]
    assert times(filled(8, 9)) == [0.5, 2.5, 4.5, 6.5, 8.0]
    assert times(filled(8, 10)) == [0.5, 2.5, 4.5, 6.5, 8.5]


def test_a_day_is_spanned_evenly() -> None:
    seen = times(filled(100, 86_400))
    gaps = [b - a for a, b in pairwise(seen[:-1])]
    assert min(gaps) == max(gaps)
    assert seen[0] <= max(gaps)
    assert seen[-1] >= 86_400 - max(gaps)


@given(st.integers(0, 40), st.lists(st.floats(0, 1e4), max_size=300))
def test_a_series_is_bounded_ordered_and_invents_nothing(capacity: int, values: list[float]) -> None:
    series = BoundedSeries(capacity)
    for t, value in enumerate(values):
        series.add(float(t), value)
        assert len(series.snapshot()) <= max(8, capacity + 1)
    points = series.snapshot()
    assert all(a.t < b.t for a, b in pairwise(points))
    assert all(min(values) - 1e-6 <= p.tokens_per_second <= max(values) + 1e-6 for p in points)


def test_snapshots_are_the_same_object_until_something_is_added() -> None:
    series = filled(8, 3)
    first = series.snapshot()
    assert series.snapshot() is first
    series.add(3.0, 1.0)
    assert len(first) == 3
    assert len(series.snapshot()) == 4
