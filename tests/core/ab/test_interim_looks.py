from __future__ import annotations

import random

import pytest

from spectui.core.ab.comparison import FINEST, MIN_BLOCKS, Pair, Reading, Winner, compare
from spectui.core.ab.interim_looks import Ended, Looks, Reason, first_look
from spectui.core.bet.intervals import TWO_STARTS_ERROR
from tests.ab_runs import Arms, run_of


def ended(pairs: list[Pair], planned: int, **options: float) -> Ended:
    looks = Looks(planned, **options)
    for number in range(2, len(pairs) + 1, 2):
        end = looks.after(pairs[:number])
        if end is not None:
            return end
    pytest.fail("went on beyond what was planned")


def test_a_large_difference_ends_the_run_early() -> None:
    end = ended(run_of(random.Random(1), Arms(ratio=1.5), 48), 48)
    assert end.reason is Reason.DECIDED
    assert end.result.verdict is Winner.B
    assert end.result.pairs == first_look(48)


def test_a_narrow_interval_ends_the_run_early() -> None:
    end = ended(run_of(random.Random(1), Arms(noise=0.01), 48), 48)
    assert end.reason is Reason.NARROW
    assert end.result.pairs == first_look(48)
    assert end.result.half_width is not None
    assert end.result.half_width <= 0.03
    assert ended(run_of(random.Random(1), Arms(noise=0.01), 48), 48, narrow=1e-4).result.pairs > first_look(
        48
    )


def test_else_it_ends_with_what_was_planned() -> None:
    end = ended(run_of(random.Random(1), Arms(noise=0.15), 24), 24)
    assert (end.reason, end.result.pairs) == (Reason.PAIRS, 24)


def test_time_ends_it_between_looks_with_all_that_is_left_of_the_error() -> None:
    pairs = run_of(random.Random(1), Arms(noise=0.15), 10)
    end = Looks(24).after(pairs, last=Reason.BUDGET)
    assert end is not None
    assert end.reason is Reason.BUDGET
    assert end.result == compare(pairs)
    assert Looks(24).after(pairs) is None


def test_time_can_end_it_with_nothing() -> None:
    end = Looks(24).after([], last=Reason.BUDGET)
    assert end is not None
    assert end.result.ratio is None


def test_looks_that_found_nothing_widen_the_last_interval() -> None:
    pairs = run_of(random.Random(1), Arms(noise=0.15), 24)
    last, alone = ended(pairs, 24).result, compare(pairs)
    assert last.half_width is not None
    assert alone.half_width is not None
    assert alone.half_width < last.half_width < 1.5 * alone.half_width


def test_a_share_finer_than_an_interval_resolves_is_kept_for_a_later_look() -> None:
    """The first looks at a run of 600 may spend 0.00002, for which the draws give the interval of 0.0005."""
    pairs = run_of(random.Random(1), Arms(ratio=2.0, noise=0.15, block=1), 120)
    assert compare(pairs[:12], error=FINEST / 25) == compare(pairs[:12], error=FINEST)
    assert compare(pairs[:12], error=FINEST).verdict is Winner.B
    end = ended(pairs, 600)
    assert end.reason is Reason.DECIDED
    assert end.error >= FINEST
    # All that was not spent before.
    assert end.error == pytest.approx(0.05 * (end.result.pairs / 600) ** 2)


def test_a_look_without_an_interval_spends_nothing() -> None:
    pairs = run_of(random.Random(1), Arms(noise=0.15, block=8), 8 * MIN_BLOCKS)
    looks, end = Looks(len(pairs)), None
    for number in range(8, len(pairs) + 1, 8):
        end = looks.after(pairs[:number])
    assert end is not None
    assert end.reason is Reason.PAIRS
    assert end.error == pytest.approx(0.05)


def test_looking_often_does_not_claim_more() -> None:
    """Identical arms, three kinds of machine: at most 5 % of 120 runs; careless looks claim more."""
    rng = random.Random(21)
    claims = careless = 0
    for arms in (Arms(noise=0.05), Arms(noise=0.12, turn=0.03), Arms(noise=0.08, drift=0.1)):
        for _ in range(40):
            pairs = run_of(rng, arms, 24)
            claims += ended(pairs, 24).result.verdict is not Winner.NEITHER
            careless += any(
                compare(pairs[:number]).verdict is not Winner.NEITHER for number in range(8, 25, 4)
            )
    assert claims <= 6
    assert careless > claims


def test_a_true_difference_of_15_percent_is_found_while_looking() -> None:
    rng = random.Random(22)
    for noise in (0.05, 0.08):
        arms = Arms(ratio=1.15, noise=noise, turn=0.03)
        found = [ended(run_of(rng, arms, 24), 24).result.verdict for _ in range(20)]
        assert found.count(Winner.B) >= 18


def test_what_lives_hide_neither_keeps_a_run_going_nor_is_claimed() -> None:
    pairs = [
        Pair(f"p{i}", i // 2, Reading(100, 5.0), Reading(100, 5.0 / (1.02, 1.04)[i % 2])) for i in range(24)
    ]
    looks = Looks(24, between=TWO_STARTS_ERROR)
    end = next(end for n in range(2, 25, 2) if (end := looks.after(pairs[:n])) is not None)
    assert end.reason is Reason.NARROW
    assert end.result.verdict is Winner.NEITHER
