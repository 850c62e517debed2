"""What is predicted of n-gram settings from the baseline's answers, before and after one of them was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay, row_surplus
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Setting
from spectui.core.sweep.prediction import CellResult, CellResults, Prediction, Predictions

CODE, REWRITE = Condition("code", 0.0), Condition("rewrite", 0.0)
GRID = Grid(
    workloads=("code", "rewrite"),
    temperatures=(0.0, 0.8),
    modes=("ngram-simple", "ngram-map-k"),
    ks=(),
    lookups=(2, 4),
    lengths=(8, 16),
)
SHORT, LONG = (Setting(mode="ngram-simple", ngram_lookup=2, ngram_length=m) for m in (8, 16))
REPLAYS = {
    CODE: {SHORT: Replay(2, 8, 100, 94, 95, 20, 0.05), LONG: Replay(2, 16, 100, 90, 92, 60, 0.05)},
    REWRITE: {SHORT: Replay(2, 8, 100, 30, 40, 200, 0.1), LONG: Replay(2, 16, 100, 20, 32, 280, 0.1)},
}


def baselines() -> dict[Cell, CellResult]:
    return {
        Cell(condition, PLAIN): CellResult(requests=8, speedup=None, replayed=tuple(replays.values()))
        for condition, replays in REPLAYS.items()
    }


def ran(
    known: CellResults, condition: Condition, setting: Setting, *, surplus: float
) -> dict[Cell, CellResult]:
    value = REPLAYS[condition][setting].speedup(surplus)
    return {**known, Cell(condition, setting): CellResult(requests=8, speedup=value)}


def predicted(known: CellResults, condition: Condition, setting: Setting) -> Prediction:
    found = Predictions(GRID, known).of(Cell(condition, setting))
    assert found is not None
    return found


def test_before_any_ran_a_row_costs_what_is_usual_and_nobody_knows() -> None:
    replay, found = REPLAYS[REWRITE][LONG], predicted(baselines(), REWRITE, LONG)
    assert found.speedup.value == pytest.approx(replay.speedup(0.075).value)
    dear, cheap = replay.speedup(0.15).value, replay.speedup(0.0).value
    assert found.speedup.low is not None
    assert found.speedup.high is not None
    assert found.speedup.low < dear
    assert found.speedup.high > cheap
    assert found.speedup.value < found.at_best < replay.ceiling


def test_what_drafts_nothing_cannot_win() -> None:
    nothing = Replay(2, 8, 100, 100, 100, 0, 0.0)
    known = {Cell(CODE, PLAIN): CellResult(requests=8, speedup=None, replayed=(nothing,))}
    assert predicted(known, CODE, SHORT).at_best == 1


def test_one_that_ran_tells_the_cost_for_all_others_and_all_workloads() -> None:
    known = ran(baselines(), REWRITE, LONG, surplus=0.05)
    for condition, setting in ((CODE, SHORT), (CODE, LONG), (REWRITE, SHORT)):
        found = predicted(known, condition, setting)
        assert found.speedup.value == pytest.approx(
            REPLAYS[condition][setting].speedup(0.05).value, rel=0.005
        )
        assert found.speedup.value < found.at_best < 1.1 * found.speedup.value


def test_a_cell_that_ran_predicts_nothing_of_itself() -> None:
    known = ran(baselines(), REWRITE, LONG, surplus=0.3)
    alone = predicted(known, REWRITE, LONG)
    assert alone == predicted(baselines(), REWRITE, LONG)
    known = ran(known, CODE, LONG, surplus=0.05)
    # Few rows on code: between what they say and what is usual.
    low, high = (REPLAYS[REWRITE][LONG].speedup(s).value for s in (0.075, 0.05))
    assert low < predicted(known, REWRITE, LONG).speedup.value < high


def test_the_interval_is_that_of_the_texts_of_the_cost_and_of_the_servers() -> None:
    known = ran(baselines(), REWRITE, LONG, surplus=0.05)
    found = predicted(known, REWRITE, SHORT)
    # The run took 46 steps for 280 rows, known to 2.1 %: 0.0035 a row. The cell drafts 200 rows in 50 steps.
    surplus = row_surplus([(REPLAYS[REWRITE][LONG], 100 / 46)], 0.0212)
    assert surplus.error == pytest.approx(0.003485, rel=0.01)
    value = found.speedup.value
    assert value / (found.speedup.low or 0.0) == pytest.approx(1.2786, rel=0.001)
    assert (found.at_best or 0.0) / value == pytest.approx(1.0207, rel=0.001)


def test_few_rows_tell_little_and_leave_what_is_usual() -> None:
    few = predicted(ran(baselines(), CODE, SHORT, surplus=1.5), REWRITE, LONG)
    many = predicted(ran(baselines(), REWRITE, SHORT, surplus=1.5), REWRITE, LONG)
    assert many.speedup.value < 0.4
    assert few.speedup.value > 1
    assert few.at_best / few.speedup.value > 1.1 * many.at_best / many.speedup.value


def test_above_temperature_0_the_texts_themselves_are_unsure_and_tell_no_cost() -> None:
    warm = Condition("rewrite", 0.8)
    known = baselines() | {Cell(warm, PLAIN): baselines()[Cell(REWRITE, PLAIN)]}
    known = ran(known, REWRITE, LONG, surplus=0.05)
    known[Cell(warm, LONG)] = CellResult(requests=8, speedup=Estimate(value=1.0))
    cold, sampled = predicted(known, REWRITE, SHORT), predicted(known, warm, SHORT)
    assert sampled.speedup.value == cold.speedup.value
    assert sampled.at_best > cold.at_best
    del known[Cell(REWRITE, LONG)]
    # The only run there is counts, though it gave other answers.
    assert predicted(known, warm, SHORT).speedup.value < cold.speedup.value


def test_only_what_the_baseline_told_is_predicted() -> None:
    other = Setting(mode="ngram-map-k", ngram_lookup=2, ngram_length=8)
    predictions = Predictions(GRID, ran(baselines(), REWRITE, LONG, surplus=0.05))
    assert predictions.of(Cell(CODE, other)) is None
    assert predictions.is_replayed(CODE, SHORT)
    assert not predictions.is_replayed(CODE, other)
    silent = Predictions(GRID, {Cell(CODE, PLAIN): CellResult(requests=8, speedup=None)})
    assert not silent.is_replayed(CODE, SHORT)


def test_runs_that_drafted_nothing_tell_no_cost() -> None:
    known = baselines()
    nothing = Replay(2, 8, 100, 100, 100, 0, 0.0)
    known[Cell(CODE, PLAIN)] = CellResult(requests=8, speedup=None, replayed=(nothing,))
    known[Cell(CODE, SHORT)] = CellResult(requests=8, speedup=Estimate(value=0.97))
    assert predicted(known, REWRITE, SHORT) == predicted(baselines(), REWRITE, SHORT)


def test_after_two_lookups_failed_and_none_worked_no_more_are_tried() -> None:
    failed = CellResult(requests=0, speedup=None, failed=8)
    # A server that does not start fails under all conditions at once.
    known = baselines() | {Cell(REWRITE, LONG): failed, Cell(CODE, LONG): failed}
    assert predicted(known, REWRITE, SHORT).at_best > 1
    other = Setting(mode="ngram-simple", ngram_lookup=4, ngram_length=8)
    plain = known[Cell(CODE, PLAIN)]
    more = (*plain.replayed, Replay(4, 8, 100, 94, 95, 20, 0.05))
    known |= {Cell(CODE, PLAIN): replace(plain, replayed=more), Cell(CODE, other): failed}
    assert Predictions(GRID, known).of(Cell(REWRITE, SHORT)) is None
    works = ran(known, CODE, SHORT, surplus=0.05)
    assert predicted(works, REWRITE, SHORT).at_best > 1
