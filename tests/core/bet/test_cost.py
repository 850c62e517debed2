from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.cost import CostModel, calibrated, known_costs, split
from spectui.core.bet.estimates import Cost, Costs, Estimate, Source

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


E_AND_SPEED = {"tokens": Estimate(value=2.4), "actual": Estimate(value=1.2, low=1.1, high=1.3)}
PROBED = {n: Estimate(value=v) for n, v in V.items()}


def costs(**changes: Any) -> Costs:
    known: dict[str, Any] = {
        "t1_ms": Estimate(value=50.0, low=49.0, high=51.0),
        "stated": False,
        "draft_ms": 8.0,
        "v": PROBED,
        "drafted_per_pass": 4.0,
        **E_AND_SPEED,
    }
    return known_costs(**{**known, **changes})


def test_each_part_says_where_it_comes_from() -> None:
    found = costs()
    assert found.t1_ms == Cost(value=50.0, source=Source.MEASURED, low=49.0, high=51.0)
    assert found.c == Cost(value=0.16, source=Source.MEASURED, low=8 / 51, high=8 / 49)
    assert found.pass_cost == Cost(value=2.0, source=Source.MEASURED, low=2.4 / 1.3, high=2.4 / 1.1)
    assert found.v[5] == Cost(value=1.53, source=Source.PROBED)
    assert found.u is not None
    assert found.u.source is Source.FITTED
    assert found.u.value == pytest.approx(2.0 - 1.53 - 5 * 0.16)
    assert not found.inseparable


def test_a_stated_baseline_is_given() -> None:
    found = costs(t1_ms=Estimate(value=50.0), stated=True)
    assert found.t1_ms == Cost(value=50.0, source=Source.GIVEN)
    assert found.c == Cost(value=0.16, source=Source.MEASURED)


def test_without_the_servers_timing_c_is_what_a_probe_leaves_over() -> None:
    found = costs(draft_ms=None, actual=Estimate(value=2.4 / (1.53 + 5 * 0.16 + 0.1), low=0.9, high=1.1))
    assert found.c is not None
    assert found.c.source is Source.FITTED
    assert found.c.value == pytest.approx(0.16)
    assert found.c.low is not None
    assert found.c.high is not None
    assert found.c.low < 0.16 < found.c.high
    assert found.u == Cost(value=cast("float", pytest.approx(0.1)), source=Source.ASSUMED, low=0.0, high=0.15)


def test_nothing_tells_drafting_from_verifying_without_either() -> None:
    found = costs(draft_ms=None, v={})
    assert found.c is None
    assert found.u is None
    assert "0.25 plain steps" in found.inseparable
    assert "cannot be told apart" in found.inseparable
    assert "not probed" in costs(v={}).inseparable


@pytest.mark.parametrize("missing", [{"tokens": None}, {"actual": None}, {"drafted_per_pass": None}])
def test_a_pass_that_was_not_measured_claims_nothing(missing: dict[str, None]) -> None:
    found = costs(draft_ms=None, v={}, **missing)
    assert (found.c, found.u, found.inseparable) == (None, None, "")


def test_busy_slots_share_a_pass() -> None:
    model = CostModel(t1_ms=10.0, c=0.2, v={2: 1.2, 4: 1.6, 8: 3.0}, slots=2.0)
    assert model.verification(0) == pytest.approx(1.0)
    assert model.verification(3) == pytest.approx(3.0 / 1.2)


@given(st.floats(1, 8), st.floats(0, 16))
def test_more_rows_never_cost_less(slots: float, drafted: float) -> None:
    model = CostModel(t1_ms=10.0, c=0.1, v=V, slots=slots)
    assert model.verification(drafted + 1) >= model.verification(drafted) - 1e-9
    assert model.verification(0) == pytest.approx(1.0)


def test_drafts_that_vary_in_length_have_no_price_per_token() -> None:
    found = costs(draft_ms=None, fixed_length=False)
    assert (found.c, found.u) == (None, None)
    assert "cannot be told apart" in found.inseparable


def test_a_fitted_c_says_what_else_may_be_in_it() -> None:
    assert "does not time its drafting" in costs(draft_ms=None).inseparable


@given(st.floats(1, 8), st.floats(0, 1), st.integers(1, 16), st.floats(1.01, 12))
def test_calibration_reproduces_its_own_run_with_several_slots(
    slots: float, c: float, drafted: int, cost: float
) -> None:
    fitted = calibrated(
        CostModel(t1_ms=10.0, c=c, v=V, slots=slots), drafted_per_pass=drafted, pass_cost=cost
    )
    assert fitted.pass_cost(drafted) == pytest.approx(cost, rel=1e-6)
