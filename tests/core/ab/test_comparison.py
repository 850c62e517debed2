from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectui.core.ab.comparison import Comparison, Pair, Reading, Winner, compare, compare_together, sentence
from spectui.core.bet.intervals import TWO_STARTS_ERROR, student_quantile
from tests.ab_runs import Arms, run_of

HARD = (
    Arms(noise=0.03),
    Arms(noise=0.15),
    Arms(noise=0.08, turn=0.04, drift=0.1),
    Arms(noise=0.03, turn=0.08),
    Arms(noise=0.06, slow=0.1),
)
"""Machines on which identical arms are compared."""


def pairs_of(ratios: list[float], *, block: int = 1) -> list[Pair]:
    return [
        Pair(f"p{i}", i // block, Reading(100, 5.0), Reading(100, 5.0 / ratio))
        for i, ratio in enumerate(ratios)
    ]


def swapped(pairs: list[Pair]) -> list[Pair]:
    return [Pair(p.prompt, p.block, p.b, p.a) for p in pairs]


def test_the_ratio_is_the_geometric_mean_of_speeds_not_of_times() -> None:
    longer = [
        Pair("x", 0, Reading(100, 10.0), Reading(40, 2.0)),
        Pair("y", 1, Reading(50, 5.0), Reading(90, 18.0)),
    ]
    found = compare(longer)
    assert found.ratio == pytest.approx(1.0)
    assert compare(longer[:1]).ratio == pytest.approx(2.0)


def test_without_pairs_nothing_is_known() -> None:
    assert compare([]) == Comparison(pairs=0)
    assert compare([]).verdict is Winner.NEITHER
    assert compare([]).half_width is None


@pytest.mark.parametrize(("number", "block"), [(7, 1), (8, 4), (12, 6)])
def test_too_few_pairs_or_blocks_have_no_interval(number: int, block: int) -> None:
    found = compare(pairs_of([1.5] * number, block=block))
    assert found.ratio == pytest.approx(1.5)
    assert (found.low, found.high, found.further_pairs) == (None, None, None)
    assert found.verdict is Winner.NEITHER
    assert "undecided" in sentence(found, "code")


def test_equal_pairs_have_no_spread() -> None:
    found = compare(pairs_of([1.25] * 8))
    assert (found.low, found.high) == pytest.approx((1.25, 1.25))
    assert found.verdict is Winner.B
    assert found.further_pairs == 0
    assert compare(pairs_of([1.0] * 8)).verdict is Winner.NEITHER


def test_the_interval_is_near_students_for_normal_noise() -> None:
    rng = random.Random(2)
    ratios = [math.exp(rng.gauss(0.1, 0.08)) for _ in range(60)]
    logs = [math.log(r) for r in ratios]
    half = student_quantile(0.975, 59) * stdev(logs) / math.sqrt(60)
    found = compare(pairs_of(ratios))
    assert found.low is not None
    assert found.high is not None
    assert math.log(found.low) == pytest.approx(fmean(logs) - half, abs=0.1 * half)
    assert math.log(found.high) == pytest.approx(fmean(logs) + half, abs=0.1 * half)
    assert not found.by_block


def test_a_smaller_error_makes_a_wider_interval() -> None:
    pairs = run_of(random.Random(1), Arms(), 24)
    widths = [compare(pairs, error=e).half_width for e in (0.05, 0.02, 0.005)]
    assert all(w is not None for w in widths)
    assert widths == sorted(widths, key=lambda w: w or 0)
    assert len(set(widths)) == 3


def test_noise_that_a_block_shares_is_seen() -> None:
    pairs = run_of(random.Random(4), Arms(noise=0.02, turn=0.1, block=4), 48)
    found = compare(pairs)
    apart = compare([replace(p, block=i) for i, p in enumerate(pairs)])
    assert found.by_block
    assert not apart.by_block
    assert found.half_width is not None
    assert apart.half_width is not None
    assert found.half_width > 1.5 * apart.half_width


def test_further_pairs_are_those_of_the_formula() -> None:
    """s = 10 %: n = ((1.96 + 0.842) 0.1 / ln 1.03)^2 = 90."""
    value = 0.1 * math.sqrt(23 / 24)
    found = compare(pairs_of([math.exp(value), math.exp(-value)] * 12))
    assert found.further_pairs == pytest.approx(90 - 24, abs=1)


def test_workloads_count_alike_however_many_pairs_they_have() -> None:
    rng = random.Random(3)
    code = run_of(rng, Arms(ratio=1.4, noise=0.03), 40)
    prose = run_of(rng, Arms(ratio=0.9, noise=0.03), 10)
    both = compare_together({"code": code, "prose": prose})
    assert both.pairs == 50
    assert both.ratio == pytest.approx(math.sqrt((compare(code).ratio or 0) * (compare(prose).ratio or 0)))
    assert both.verdict is Winner.B
    assert compare(prose).verdict is Winner.A
    # Workloads that differ are no noise: what counts is the spread within each.
    assert both.half_width is not None
    assert both.half_width < 0.05


def test_one_workload_together_is_that_workload() -> None:
    pairs = run_of(random.Random(6), Arms(), 24)
    assert compare_together({"code": pairs, "prose": []}) == replace(compare(pairs), drift=compare([]).drift)


def test_a_drifting_machine_is_seen_and_cancels_in_the_ratio() -> None:
    found = compare(run_of(random.Random(8), Arms(noise=0.03, content=0.03, drift=-0.4), 32))
    assert found.drift.machine
    assert found.drift.a is not None
    assert found.drift.a.high < 0.95
    assert not found.drift.result
    assert found.verdict is Winner.NEITHER


def test_a_ratio_that_changes_on_the_way_is_seen() -> None:
    rng = random.Random(9)
    early, late = run_of(rng, Arms(noise=0.03), 16), run_of(rng, Arms(noise=0.03, ratio=1.3), 16)
    found = compare(early + [replace(p, block=p.block + 8) for p in late])
    assert found.drift.result
    assert found.drift.ratio is not None
    assert found.drift.ratio.value == pytest.approx(1.3, abs=0.05)


def test_halves_are_cut_between_blocks() -> None:
    drift = compare(pairs_of([1.0, 1.1] * 4 + [2.0, 2.2] * 4, block=2)).drift
    assert drift.ratio is not None
    assert drift.ratio.value == pytest.approx(2.0)
    assert compare(pairs_of([1.0] * 8, block=8)).drift.ratio is None


def test_one_answer_unlike_all_others_leaves_a_finite_interval() -> None:
    found = compare(pairs_of([1.0] * 9 + [1.5]))
    assert found.low is not None
    assert found.high is not None
    assert 0.5 < found.low < 1 < found.high < 2


def test_absurd_timings_overflow_nothing() -> None:
    pairs = [Pair(str(i), i, Reading(1, 1e-300), Reading(10**12, 10.0 ** (i * 20 - 290))) for i in range(10)]
    found = compare(pairs)
    assert all(math.isfinite(x or math.nan) for x in (found.ratio, found.low, found.high))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            Comparison(pairs=24, ratio=1.31, low=1.24, high=1.38, further_pairs=5),
            "B is 1.31x faster than A (1.24 to 1.38) on code, 24 prompts",
        ),
        (
            Comparison(pairs=24, ratio=0.5, low=0.4, high=0.8),
            "A is 2.00x faster than B (1.25 to 2.50) on code, 24 prompts",
        ),
        (
            Comparison(pairs=200, ratio=1.006, low=1.002, high=1.01),
            "B is 1.006x faster than A (1.002 to 1.010) on code, 200 prompts",
        ),
        (
            Comparison(pairs=24, ratio=1.0, low=0.96, high=1.04, further_pairs=40),
            "indistinguishable on code (0.96 to 1.04), 24 prompts: about 40 more would decide 3%",
        ),
        (
            Comparison(pairs=24, ratio=1.0, low=0.8, high=1.2, further_pairs=1234),
            "indistinguishable on code (0.80 to 1.20), 24 prompts: about 1200 more would decide 3%",
        ),
        (
            Comparison(pairs=24, ratio=1.0, low=0.99, high=1.01, further_pairs=0),
            "indistinguishable on code (0.99 to 1.01), 24 prompts: a difference of 3% would have shown",
        ),
        (Comparison(pairs=1, ratio=1.2), "undecided on code: 1 prompt, an interval takes 8 in 4 blocks"),
    ],
)
def test_the_sentence(found: Comparison, text: str) -> None:
    assert sentence(found, "code") == text


readings = st.builds(Reading, st.integers(1, 400), st.floats(0.01, 100))
few = settings(max_examples=30, deadline=None)
runs = st.lists(st.tuples(readings, readings), min_size=8, max_size=40)


@few
@given(runs, st.integers(1, 3))
def test_arms_are_treated_alike(readings: list[tuple[Reading, Reading]], block: int) -> None:
    pairs = [Pair(str(i), i // block, a, b) for i, (a, b) in enumerate(readings)]
    one, other = compare(pairs), compare(swapped(pairs))
    assert one.ratio == pytest.approx(1 / (other.ratio or math.nan), rel=1e-6)
    assert (one.low is None) == (other.low is None) == (len({p.block for p in pairs}) < 4)
    if one.low is not None and one.high is not None and other.high is not None:
        assert one.low <= (one.ratio or 0) * (1 + 1e-9)
        assert one.high >= (one.ratio or 0) * (1 - 1e-9)
        assert math.log(one.low) == pytest.approx(-math.log(other.high), rel=1e-6, abs=1e-9)
        assert one.further_pairs == pytest.approx(other.further_pairs, abs=1, rel=1e-6)


@few
@given(runs, st.floats(0.1, 10))
def test_a_faster_arm_moves_the_interval_and_nothing_else(
    readings: list[tuple[Reading, Reading]], factor: float
) -> None:
    pairs = [Pair(str(i), i, a, b) for i, (a, b) in enumerate(readings)]
    faster = [Pair(p.prompt, p.block, p.a, Reading(p.b.tokens, p.b.seconds / factor)) for p in pairs]
    one, other = compare(pairs), compare(faster)
    assert other.ratio == pytest.approx((one.ratio or 0) * factor)
    assert other.half_width == pytest.approx(one.half_width, rel=1e-6, abs=1e-9)


def test_identical_arms_are_rarely_told_apart() -> None:
    """Ten times forty comparisons on machines of five kinds: at most 4 claims of 40, and 5 % of all."""
    rng = random.Random(11)
    claims = [
        sum(compare(run_of(rng, arms, 24)).verdict is not Winner.NEITHER for _ in range(40))
        for arms in HARD * 2
    ]
    assert max(claims) <= 4
    assert sum(claims) <= 20


def test_a_true_difference_of_15_percent_is_found() -> None:
    rng = random.Random(12)
    for noise in (0.05, 0.08):
        arms = Arms(ratio=1.15, noise=noise, turn=0.03, drift=0.05)
        found = [compare(run_of(rng, arms, 24)).verdict for _ in range(20)]
        assert found.count(Winner.B) >= 18


def test_what_all_pairs_share_widens_the_interval_and_is_never_averaged_away() -> None:
    ratios = [1.02, 1.04] * 12
    bare, starts = compare(pairs_of(ratios)), compare(pairs_of(ratios), between=TWO_STARTS_ERROR)
    assert (bare.verdict, starts.verdict) == (Winner.B, Winner.NEITHER)
    many = compare(pairs_of(ratios * 20), between=TWO_STARTS_ERROR)
    assert many.high is not None
    assert many.ratio is not None
    assert math.log(many.high / many.ratio) == pytest.approx(1.96 * TWO_STARTS_ERROR, rel=0.02)


def test_with_lives_a_larger_difference_is_what_pairs_decide() -> None:
    noisy = pairs_of([math.exp(0.1), math.exp(-0.1)] * 12)
    bare, starts = compare(noisy), compare(noisy, between=TWO_STARTS_ERROR)
    assert bare.decides == 0.03
    assert starts.decides == pytest.approx(0.077, abs=0.001)
    assert "more would decide 8%" in sentence(starts, "code")
    assert starts.further_pairs is not None
    # After so many, a difference of that size stands 1.96 + 0.84 standard errors clear of none.
    number = 24 + starts.further_pairs
    spread = 0.1 * math.sqrt(24 / 23 / number)
    assert math.log1p(starts.decides) == pytest.approx(2.8 * math.hypot(spread, TWO_STARTS_ERROR), rel=0.01)


def test_equal_servers_that_differ_by_their_lives_are_rarely_told_apart() -> None:
    rng = random.Random(13)
    runs = [
        run_of(rng, Arms(ratio=math.exp(rng.gauss(0.0, TWO_STARTS_ERROR)), noise=0.03), 24)
        for _ in range(100)
    ]
    claims = [
        sum(compare(r, between=b).verdict is not Winner.NEITHER for r in runs) for b in (0, TWO_STARTS_ERROR)
    ]
    assert claims[0] > 20
    assert claims[1] <= 8
