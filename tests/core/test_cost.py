from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.cost import CostModel, Source, calibrated, split

V = {2: 1.11, 3: 1.33, 4: 1.45, 5: 1.53, 17: 4.46}
"""Probed on a real server (b10434, two cores, 180 blocks, code, temperature 0)."""


@pytest.mark.parametrize(("k", "cost"), [(1, 1.46), (2, 1.83), (3, 2.10), (4, 2.33), (16, 7.06)])
def test_the_cost_of_a_pass_on_a_real_server(k: int, cost: float) -> None:
    model = CostModel(t1_ms=59.0, c=0.15, v=V, u=0.05)
    assert model.pass_cost(k) == pytest.approx(cost, abs=0.006)


def test_a_usual_surplus_is_fixed() -> None:
    bare = CostModel(t1_ms=59.0, c=0.15, v=V)
    fitted = calibrated(bare, drafted_per_pass=4, pass_cost=2.35)
    assert fitted.u == pytest.approx(0.07)
    assert fitted.row_surplus == 0
    assert fitted.u_source is Source.FITTED
    assert fitted.pass_cost(16) == pytest.approx(7.08, abs=0.01)


def test_a_large_surplus_grows_with_the_rows() -> None:
    """Where the vocabulary is large against the model the probe reads low, in proportion to n."""
    fitted = calibrated(
        CostModel(t1_ms=7.0, c=0.1, v={5: 2.65}), drafted_per_pass=4, pass_cost=3.56 + 0.5 + 0.15
    )
    assert fitted.u == pytest.approx(0.15)
    assert fitted.verification(4) == pytest.approx(3.56)
    assert fitted.verification(0) == 1.0


def test_a_run_cheaper_than_its_parts_lowers_both() -> None:
    fitted = calibrated(CostModel(t1_ms=59.0, c=0.3, v=V), drafted_per_pass=4, pass_cost=2.0)
    assert 0 < fitted.c < 0.3
    assert 1 < fitted.verification(4) < 1.53
    assert fitted.pass_cost(4) == pytest.approx(2.0)


@given(st.floats(0, 1), st.floats(0.5, 12), st.floats(1.01, 12), st.floats(1.0, 3.0))
def test_calibration_reproduces_its_own_run(c: float, drafted: float, cost: float, v5: float) -> None:
    fitted = calibrated(CostModel(t1_ms=10.0, c=c, v={5: v5}), drafted_per_pass=drafted, pass_cost=cost)
    assert fitted.c >= 0
    assert fitted.u >= 0
    assert fitted.pass_cost(drafted) == pytest.approx(cost, rel=1e-6)


@given(st.floats(0, 1), st.floats(0.5, 16), st.floats(1, 12), st.floats(0, 0.2))
def test_the_parts_of_a_loss_sum_to_the_cost(c: float, drafted: float, cost: float, u: float) -> None:
    loss = split(CostModel(t1_ms=10.0, c=c, v=V, u=u), tokens=2.0, drafted_per_pass=drafted, pass_cost=cost)
    total = loss.target + loss.drafting + loss.verification + loss.overhead + loss.unexplained
    assert total == pytest.approx(cost)


def test_without_a_probe_verification_is_taken_as_free() -> None:
    model = CostModel(t1_ms=10.0, c=0.1)
    assert not model.probed
    assert model.pass_cost(4) == pytest.approx(1.5)
