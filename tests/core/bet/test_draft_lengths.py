from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet import draft_lengths, speedup


def simulated_request(rate: float, k: int, tokens: int, rng: random.Random) -> int:
    """Passes that one request takes, drafts cut as a server cuts them."""
    left, passes = tokens, 0
    while left > 0:
        drafted = min(k, left - 1)
        accepted = 0
        while accepted < drafted and rng.random() < rate:
            accepted += 1
        left -= accepted + 1
        passes += 1
    return passes


@pytest.mark.parametrize(("rate", "k", "tokens"), [(0.7, 4, 20), (0.9, 16, 40), (0.3, 8, 10), (0.6, 1, 9)])
def test_expected_passes_are_those_of_a_simulation(rate: float, k: int, tokens: int) -> None:
    rng = random.Random(3)
    shares = [rate**j for j in range(1, k + 1)]
    found = draft_lengths.request_cost(shares, k, tokens, lambda _: 1.0)
    runs = 20000
    seen = sum(simulated_request(rate, k, tokens, rng) for _ in range(runs)) / runs
    assert found.passes == pytest.approx(seen, rel=0.01)
    assert found.steps == pytest.approx(found.passes)


@given(st.floats(0.1, 0.9), st.integers(1, 8), st.floats(1, 6))
def test_long_requests_tend_to_tokens_over_cost(alpha: float, k: int, cost: float) -> None:
    shares = [alpha**j for j in range(1, k + 1)]
    value = draft_lengths.predicted_speedup(shares, k, 256, lambda _: cost)
    assert value == pytest.approx(speedup.expected_tokens(alpha, k) / cost, rel=0.06)


def test_the_interval_holds_the_value_and_needs_replicates() -> None:
    shares = [0.7, 0.5, 0.35]
    plain = draft_lengths.full_curve(shares, 60, lambda d: 1 + 0.2 * d, lengths=(1, 2, 8))
    assert all(p.low is None and p.high is None for p in plain)
    drawn = [[0.68, 0.5, 0.33], [0.72, 0.52, 0.36], [0.7, 0.47, 0.36]]
    banded = draft_lengths.full_curve(
        shares, 60, lambda d: 1 + 0.2 * d, replicates=drawn, cost_error=0.02, lengths=(1, 2, 8)
    )
    for point in banded:
        assert point.low is not None
        assert point.high is not None
        assert point.low < point.speedup < point.high
    assert [p.speedup for p in banded] == [p.speedup for p in plain]


def test_a_draft_that_is_never_kept_costs_and_yields_nothing() -> None:
    assert draft_lengths.predicted_speedup([0.0], 4, 50, lambda d: 1.0 + 0.1 * d) < 1
