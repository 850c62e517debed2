"""What is recommended from measured and predicted settings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Setting
from spectui.core.sweep.recommendation import Candidate, doubts_of, has_drifted, recommend


def candidate(
    k: int, value: float, low: float | None = None, high: float | None = None, *, measured: bool = True
) -> Candidate:
    setting = Setting(mode="draft-simple", draft="/d.gguf", k=k, p_min=0.0)
    return Candidate(setting, Estimate(value=value, low=low, high=high), measured)


def test_the_fastest_that_surely_wins() -> None:
    found = recommend([candidate(1, 1.2, 1.1, 1.3), candidate(2, 1.4, 1.2, 1.6), candidate(4, 1.5, 0.9, 2.0)])
    assert found.setting.k == 2
    assert found.speedup == Estimate(value=1.4, low=1.2, high=1.6)
    assert not found.off


def test_off_where_nothing_wins_by_enough_or_for_sure() -> None:
    for losing in (candidate(1, 1.04, 1.02, 1.06), candidate(2, 1.5, 0.99, 2.0), candidate(4, 3.0)):
        found = recommend([losing])
        assert found.off
        assert found.setting == PLAIN
        assert found.speedup is None
    assert recommend([]).off


def test_a_prediction_takes_the_place_of_a_measurement_only_for_sure() -> None:
    ran = candidate(4, 1.2, 1.1, 1.3)
    assert recommend([ran, candidate(2, 1.4, 1.15, 1.6, measured=False)]).setting.k == 4
    sure = recommend([ran, candidate(2, 1.4, 1.25, 1.6, measured=False)])
    assert (sure.setting.k, sure.measured) == (2, False)
    assert recommend([candidate(2, 1.4, 1.25, 1.6, measured=False)]).setting.k == 2


def test_a_machine_drifted_by_more_than_a_tenth_either_way() -> None:
    drifts = (None, 1.05, 0.95, 1.2, 0.8)
    assert [has_drifted(drift) for drift in drifts] == [False, False, False, True, True]


def test_drift_and_few_requests_are_doubts() -> None:
    assert doubts_of(None, 10) == doubts_of(1.05, 24) == ()
    assert doubts_of(0.77, 10) == ("the machine drifted by -23%",)
    assert doubts_of(1.2, 9) == ("the machine drifted by +20%", "from 9 requests only")


numbers = st.floats(0.1, 5)


@given(st.lists(st.tuples(numbers, numbers, st.booleans()), max_size=8))
def test_whatever_is_recommended_wins(values: list[tuple[float, float, bool]]) -> None:
    candidates = [
        candidate(k + 1, value, min(low, value), value * 1.1, measured=measured)
        for k, (value, low, measured) in enumerate(values)
    ]
    found = recommend(candidates)
    if found.speedup is not None:
        assert found.speedup.value >= 1.05
        assert found.speedup.low is not None
        assert found.speedup.low > 1
    else:
        assert not any(c.speedup.value >= 1.05 and (c.speedup.low or 0) > 1 for c in candidates)
