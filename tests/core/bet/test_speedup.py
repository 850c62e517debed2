from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet import speedup
from spectui.core.bet.estimates import CurvePoint

LENGTHS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.32, [1.18, 1.15, 0.99, 0.75, 0.50]), (0.71, [1.53, 1.79, 1.91, 1.68, 1.18])],
)
def test_the_classic_example(alpha: float, expected: list[float]) -> None:
    found = [speedup.textbook_speedup(speedup.expected_tokens(alpha, k), k, 0.12) for k in LENGTHS]
    assert [round(s, 2) for s in found] == expected


@given(st.floats(0.01, 0.95), st.integers(1, 32))
def test_break_even_is_where_the_speedup_is_one(c: float, k: int) -> None:
    alpha = speedup.break_even_alpha(k, c)
    assert alpha is not None
    assert speedup.textbook_speedup(speedup.expected_tokens(alpha, k), k, c) == pytest.approx(1, abs=1e-6)


def test_a_draft_as_dear_as_the_target_never_breaks_even() -> None:
    assert speedup.break_even_alpha(4, 1.0) is None


@given(st.floats(0.05, 0.95), st.integers(1, 16), st.integers(1, 64))
def test_a_geometric_survival_continues_as_itself(alpha: float, k: int, wanted: int) -> None:
    shares = [alpha**j for j in range(1, k + 1)]
    assert speedup.tokens_at(shares, wanted) == pytest.approx(
        speedup.expected_tokens(alpha, wanted), rel=1e-6
    )


def test_a_survival_that_reached_zero_stays_there() -> None:
    assert speedup.tokens_at([0.5, 0.0], 10) == pytest.approx(1.5)


def test_implied_c_undoes_the_cost() -> None:
    assert speedup.implied_c(1 + 4 * 0.15, 4) == pytest.approx(0.15)
    assert speedup.implied_c(0.9, 4) == 0.0
    assert speedup.implied_c(1.5, 0) is None


def test_one_bad_run_predicts_the_others() -> None:
    """A public report: k = 8 at 0.86x with ratio 0.11; k = 1 to 4 measured 1.33, 1.26, 1.23, 1.16."""
    tokens = 1 + 8 * 0.11
    alpha = 0.47
    price = speedup.implied_c(tokens / (30.89 / 36.0), 8)
    assert price is not None
    found = [speedup.textbook_speedup(speedup.expected_tokens(alpha, k), k, price) for k in (1, 2, 3, 4)]
    for value, measured in zip(found, (1.33, 1.26, 1.23, 1.16), strict=True):
        assert value == pytest.approx(measured, rel=0.05)


def test_verification_cost_between_and_beyond_its_points() -> None:
    v = {2: 1.1, 4: 1.5}
    assert speedup.verification_cost(v, 1) == 1.0
    assert speedup.verification_cost(v, 3) == pytest.approx(1.3)
    assert speedup.verification_cost(v, 6) == pytest.approx(1.5 + 2 * 0.5 / 3)
    assert speedup.verification_cost({}, 9) == 1.0


def test_verification_never_falls_for_noise() -> None:
    v = {13: 2.0, 17: 1.9}
    assert speedup.verification_cost(v, 17) == 2.0
    assert speedup.verification_cost(v, 65) >= speedup.verification_cost(v, 33) >= 2.0


def test_the_shortest_of_equal_lengths_is_best() -> None:
    points = [CurvePoint(draft_length=k, speedup=1.2) for k in (4, 2, 8)]
    best = speedup.best_point(points)
    assert best is not None
    assert best.draft_length == 2
    assert speedup.best_point([]) is None


def test_a_full_pass_costs_the_extra_draft_step() -> None:
    assert speedup.full_speedup(2.0, 4, 0.1, 1.5, 0.1) == pytest.approx(2.0 / 2.1)
    assert math.isclose(speedup.full_speedup(1.8, 1, 0.0, 3.05), 1.8 / 3.05)
