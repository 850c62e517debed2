from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet import acceptance
from spectui.core.bet.acceptance import RequestSums, sums_of
from spectui.core.bet.passes import RequestPasses, TargetPass


def request_of(*passes: TargetPass) -> RequestPasses:
    return RequestPasses(
        passes=passes,
        drafted=sum(p.drafted for p in passes),
        accepted=sum(p.accepted for p in passes),
        predicted_n=1 + sum(p.committed for p in passes),
        predicted_ms=float(len(passes)),
    )


def simulated(
    rate: Callable[[int], float], k: int, passes: int, rng: random.Random, per_request: int = 40
) -> list[RequestSums]:
    """Passes whose token at position j is accepted with probability rate(j), given the ones before."""
    found = []
    for start in range(0, passes, per_request):
        steps = []
        for _ in range(min(per_request, passes - start)):
            accepted = 0
            while accepted < k and rng.random() < rate(accepted + 1):
                accepted += 1
            steps.append(TargetPass(k, accepted, accepted + 1, 1.0))
        found.append(sums_of(request_of(*steps), fixed_length=True, positions=k))
    return found


def shares(rate: Callable[[int], float], k: int) -> list[float]:
    return [math.prod(rate(i) for i in range(1, j + 1)) for j in range(1, k + 1)]


def test_full_acceptance_is_censored_and_the_ratio_is_not_alpha() -> None:
    k = 4
    steps = [TargetPass(k, 4, 5, 1.0), TargetPass(k, 0, 1, 1.0), TargetPass(k, 2, 3, 1.0)]
    sums = [sums_of(request_of(*steps), fixed_length=True, positions=k)]
    alpha = acceptance.alpha_estimate(sums)
    assert alpha is not None
    assert alpha.value == pytest.approx(6 / 8)
    assert acceptance.acceptance_ratio(12, 6) == 0.5


def test_nothing_drafted_gives_no_alpha() -> None:
    sums = [sums_of(request_of(TargetPass(0, 0, 1, 1.0)), fixed_length=True, positions=4)]
    assert acceptance.alpha_estimate(sums) is None
    assert acceptance.acceptance_ratio(0, 0) is None
    assert acceptance.alpha_estimate([]) is None
    assert acceptance.survival([]) == ()
    assert acceptance.tokens_per_pass([]) is None


def test_a_cut_by_the_requests_end_is_censored() -> None:
    steps = [TargetPass(4, 2, 3, 1.0), TargetPass(1, 1, 1, 1.0, last=True)]
    rows = acceptance.survival([sums_of(request_of(*steps), fixed_length=True, positions=4)])
    assert [(r.survival, r.at_risk) for r in rows] == [(1.0, 2), (1.0, 1), (0.0, 1)]


def test_an_informative_cut_is_not_censored() -> None:
    steps = [TargetPass(4, 2, 3, 1.0), TargetPass(1, 1, 2, 1.0)]
    rows = acceptance.survival([sums_of(request_of(*steps), fixed_length=False, positions=4)])
    assert [r.survival for r in rows] == [1.0, 0.5, 0.0]


def test_groups_enter_totals_and_not_per_pass_statistics() -> None:
    steps = [TargetPass(8, 3, 5, 2.0, merged=2), TargetPass(4, 1, 2, 1.0)]
    sums = sums_of(request_of(*steps), fixed_length=True, positions=4)
    assert (sums.drafted, sums.accepted, sums.passes) == (12, 4, 3)
    assert sums.alpha.n == 1
    assert acceptance.survival([sums])[0].at_risk == 1


@pytest.mark.parametrize(
    ("rate", "k"),
    [
        (lambda _: 0.3, 4),
        (lambda _: 0.9, 16),
        (lambda j: min(0.95, 0.5 + 0.05 * j), 6),
        (lambda j: max(0.2, 0.85 - 0.08 * j), 8),
        (lambda _: 0.6, 1),
    ],
    ids=["low", "high", "rising", "falling", "k1"],
)
def test_intervals_hold_the_truth(rate: Callable[[int], float], k: int) -> None:
    rng = random.Random(7)
    truth = shares(rate, k)
    runs, held_alpha, held, rows_seen = 120, 0, 0, 0
    for _ in range(runs):
        sums = simulated(rate, k, 400, rng)
        alpha = acceptance.alpha_estimate(sums)
        assert alpha is not None
        assert alpha.low is not None
        assert alpha.high is not None
        held_alpha += alpha.low <= acceptance.true_alpha(truth) <= alpha.high
        for row in acceptance.survival(sums):
            assert row.low is not None
            assert row.high is not None
            rows_seen += 1
            held += row.low <= truth[row.position - 1] <= row.high
    assert held_alpha / runs >= 0.9
    assert held / rows_seen >= 0.92


@given(st.floats(0.01, 0.99), st.integers(1, 32))
def test_alpha_comes_back_from_the_mean(alpha: float, k: int) -> None:
    mean = math.fsum(alpha**j for j in range(1, k + 1))
    found = acceptance.alpha_from_mean_accepted(mean, k)
    assert found == pytest.approx(alpha, abs=1e-6)


def test_alpha_from_an_impossible_mean_is_unknown() -> None:
    assert acceptance.alpha_from_mean_accepted(4.1, 4) is None
    assert acceptance.alpha_from_mean_accepted(-0.1, 4) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40))
def test_estimates_stay_in_range(pairs: list[tuple[int, int]]) -> None:
    steps = [TargetPass(max(d, a), min(d, a), min(d, a) + 1, 1.0) for d, a in pairs]
    sums = [sums_of(request_of(s), fixed_length=True, positions=6) for s in steps]
    alpha = acceptance.alpha_estimate(sums)
    if alpha is not None:
        assert 0 <= alpha.value <= 1
        assert alpha.low is None or 0 <= alpha.low <= alpha.value + 1e-9
        assert alpha.high is None or alpha.value - 1e-9 <= alpha.high <= 1
    previous = 1.0
    for row in acceptance.survival(sums):
        assert 0 <= row.survival <= previous + 1e-12
        assert row.low is not None
        assert row.high is not None
        assert 0 <= row.low <= row.high <= 1
        previous = row.survival
