from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.series import BoundedSeries
from spectui.core.snapshot import HistoryPoint


def filled(capacity: int, count: int) -> BoundedSeries:
    series = BoundedSeries(capacity)
    for i in range(count):
        series.add(float(i), 10.0 * i)
    return series


def times(series: BoundedSeries) -> list[float]:
    return [point.t for point in series.snapshot()]


def test_everything_is_kept_below_the_capacity() -> None:
    assert filled(8, 8).snapshot() == tuple(
        HistoryPoint(t=float(i), tokens_per_second=10.0 * i) for i in range(8)
    )


@pytest.mark.parametrize("capacity", [8, 9, 10, 11])
def test_the_older_half_is_merged_in_pairs_and_no_point_is_lost(capacity: int) -> None:
    series = filled(capacity, capacity + 1)
    weights = {t: 1 if t.is_integer() else 2 for t in times(series)}
    assert sum(weights.values()) == capacity + 1
    assert sum(t * n for t, n in weights.items()) == sum(range(capacity + 1))
    assert times(series)[:2] == [0.5, 2.5]
    assert [point.tokens_per_second for point in series.snapshot()] == [10 * t for t in times(series)]


def test_the_newest_points_stay_as_they_are() -> None:
    series = filled(100, 10_000)
    assert times(series)[-40:] == [float(i) for i in range(9_960, 10_000)]
    gaps = [b - a for a, b in pairwise(times(series))]
    assert gaps[0] >= 20
    assert gaps[-1] == 1.0


@given(st.integers(0, 40), st.lists(st.floats(0, 1e4), max_size=300))
def test_a_series_is_bounded_ordered_and_invents_nothing(capacity: int, values: list[float]) -> None:
    series = BoundedSeries(capacity)
    for t, value in enumerate(values):
        series.add(float(t), value)
        assert len(series.snapshot()) <= max(8, capacity)
    points = series.snapshot()
    assert all(a.t < b.t for a, b in pairwise(points))
    assert all(min(values) <= p.tokens_per_second <= max(values) for p in points)
    if values:
        assert points[-1] == HistoryPoint(t=float(len(values) - 1), tokens_per_second=values[-1])


def test_snapshots_are_the_same_object_until_something_is_added() -> None:
    series = filled(8, 3)
    first = series.snapshot()
    assert series.snapshot() is first
    series.add(3.0, 1.0)
    assert len(first) == 3
    assert len(series.snapshot()) == 4
