from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.intervals import Ratio, RatioSums, ratio, student_quantile, wilson

Z = 1.959963985
members = st.lists(st.tuples(st.integers(0, 17), st.integers(1, 17)), min_size=1, max_size=30)


def cluster(*members: tuple[float, float]) -> RatioSums:
    sums = RatioSums()
    for x, y in members:
        sums = sums.plus(x, y)
    return sums


def shares(*clusters: tuple[int, int]) -> list[RatioSums]:
    """Clusters of `trials` members with y = 1 each, `hits` of them with x = 1."""
    return [RatioSums(n, hits, n, hits, hits, n) for hits, n in clusters]


def width(found: Ratio | None) -> float:
    assert found is not None
    interval = found.interval()
    assert interval is not None
    return interval[1] - interval[0]


@pytest.mark.parametrize(
    ("probability", "degrees", "exact"),
    [
        (0.975, 4, 2.7764),
        (0.975, 5, 2.5706),
        (0.975, 9, 2.2622),
        (0.975, 29, 2.0452),
        (0.975, 1e6, Z),
        (0.95, 10, 1.8125),
        (0.025, 9, -2.2622),
        (0.5, 7, 0.0),
    ],
)
def test_student_quantiles_are_those_of_the_tables(probability: float, degrees: float, exact: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(exact, rel=0.002, abs=1e-6)


@pytest.mark.parametrize(
    ("share", "trials", "low", "high"),
    [(0.5, 10, 0.2366, 0.7634), (0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0), (0.81, 263, 0.7584, 0.8528)],
)
def test_wilson_intervals_are_the_published_ones(
    share: float, trials: float, low: float, high: float
) -> None:
    assert wilson(share, trials, Z) == pytest.approx((low, high), abs=6e-4)


@given(st.floats(0, 1), st.floats(1, 1e6), st.floats(1, 13))
def test_wilson_intervals_hold_the_share_and_stay_between_0_and_1(
    share: float, trials: float, quantile: float
) -> None:
    low, high = wilson(share, trials, quantile)
    assert 0.0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1.0


@given(members, st.integers(0, 30))
def test_sums_do_not_depend_on_how_members_are_grouped(pairs: list[tuple[int, int]], cut: int) -> None:
    assert cluster(*pairs[:cut]).joined(cluster(*pairs[cut:])) == cluster(*pairs)


@given(st.lists(members, min_size=1, max_size=12))
def test_a_ratio_is_that_of_the_totals_however_its_members_cluster(
    clusters: list[list[tuple[int, int]]],
) -> None:
    found = ratio([cluster(*pairs) for pairs in clusters])
    whole = ratio([cluster(*(pair for pairs in clusters for pair in pairs))])
    assert found is not None
    assert whole is not None
    total = sum(y for pairs in clusters for _, y in pairs)
    assert found.value == pytest.approx(sum(x for pairs in clusters for x, _ in pairs) / total)
    assert found.value == pytest.approx(whole.value)
    assert found.trials == total
    assert (found.variance is None) == (sum(map(len, clusters)) == 1)
    # Few clusters can agree by chance: never narrower than what the members alone say.
    if found.variance is not None and whole.variance is not None:
        assert width(found) >= width(whole) * (1 - 1e-9)


def test_the_variance_between_members_is_that_of_the_ratio_estimator() -> None:
    """Members (1, 2), (3, 2), (2, 2): r = 1, residuals -1, 1, 0, so the variance is 3 / 2 * 2 / 36."""
    found = ratio([cluster((1, 2), (3, 2), (2, 2))])
    assert found is not None
    assert found.value == 1.0
    assert found.variance == pytest.approx(3 / 2 * 2 / 36)
    assert found.quantile == student_quantile(0.975, 2)
    half = found.quantile * math.sqrt(3 / 36)
    assert found.interval() == pytest.approx((1 - half, 1 + half))


def test_the_variance_between_clusters_counts_from_five_clusters_on() -> None:
    uneven = [(9, 10), (1, 10)]
    four, six = ratio(shares(*uneven * 2)), ratio(shares(*uneven * 3))
    assert four is not None
    assert six is not None
    between_members = 40 / 39 * 40 * 0.25 / 40**2
    assert four.variance == pytest.approx(between_members)
    assert six.variance == pytest.approx(6 * 4**2 * 6 / 5 / 60**2)
    assert six.quantile == student_quantile(0.975, 5)


def test_empty_clusters_and_a_missing_denominator() -> None:
    assert ratio([]) is None
    assert ratio([RatioSums(), RatioSums()]) is None
    assert ratio([cluster((0, 0), (0, 0))]) is None
    filled = shares((3, 10), (5, 10), (2, 10), (4, 10), (9, 10))
    assert ratio([*filled, RatioSums(), RatioSums()]) == ratio(filled)


def test_a_single_member_has_no_interval() -> None:
    found = ratio([cluster((3, 4))])
    assert found == Ratio(0.75, None, student_quantile(0.975, 1), 4)
    assert found.interval() is None
    assert found.share_interval() is None


@pytest.mark.parametrize("hits", [0, 50])
def test_a_share_without_variance_still_has_a_wide_interval(hits: int) -> None:
    found = ratio(shares((hits, 50)))
    assert found is not None
    assert found.variance == pytest.approx(0.0)
    interval = found.share_interval()
    assert interval is not None
    assert interval == pytest.approx(wilson(hits / 50, 50, found.quantile))
    assert 0.05 < interval[1] - interval[0] < 0.1


def test_intervals_cover_although_requests_differ() -> None:
    """Shares vary between requests from 0.4 to 0.8; an interval over single trials covers far less."""
    rng = random.Random(5)
    covered = narrow = 0
    runs = 400
    for _ in range(runs):
        clusters = []
        for _ in range(25):
            share = rng.uniform(0.4, 0.8)
            clusters.append((sum(rng.random() < share for _ in range(60)), 60))
        found = ratio(shares(*clusters))
        assert found is not None
        interval = found.share_interval()
        assert interval is not None
        covered += interval[0] <= 0.6 <= interval[1]
        single = wilson(found.value, found.trials, Z)
        narrow += single[0] <= 0.6 <= single[1]
    assert 0.92 <= covered / runs <= 0.99
    assert narrow / runs < 0.85
