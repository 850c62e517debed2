"""What a sweep measures next: on simulated servers the best setting in few starts, from anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay
from spectui.core.sweep.grid import PLAIN, WARMUP, Cell, Condition, Grid, Pace
from spectui.core.sweep.planner import ServerStart, Task, best_known, expected_seconds, next_start, short_run
from spectui.core.sweep.prediction import CellResult, CellResults, Predictions

REQUESTS = 8
KS = (1, 2, 3, 4, 6, 8, 12, 16)
Truth = Callable[[Cell], float]


def drafted_speedup(k: int, alpha: float, c: float) -> float:
    """E / R with a verification that costs a tenth of a step per row."""
    tokens = math.fsum(alpha**j for j in range(k + 1))
    return tokens / (1 + 0.1 * k + (k + 1) * c)


def a_machine(
    alpha: float = 0.6, c: float = 0.05, best: tuple[int, int] = (4, 8), peak: float = 0.9
) -> Truth:
    """Drafts by the formula; n-grams with one peak over lookup and length; p_min a little worse than none."""

    def truth(cell: Cell) -> float:
        setting = cell.setting
        if setting.k is not None:
            return drafted_speedup(setting.k, alpha, c) * (1 - 0.2 * (setting.p_min or 0.0))
        distance = abs(math.log2((setting.ngram_lookup or 1) / best[0]))
        distance += abs(math.log2((setting.ngram_length or 1) / best[1]))
        return 0.6 + (peak - 0.6) * math.exp(-distance / 2)

    return truth


def measured(
    grid: Grid, truth: Truth, start: ServerStart, rng: Random, noise: float
) -> dict[Cell, CellResult]:
    found = {}
    for task in start.tasks:
        cell = task.cell
        if cell.setting == PLAIN:
            found[cell] = CellResult(requests=task.requests, speedup=None)
            continue
        factor = math.exp(rng.gauss(0, noise))
        value = truth(cell) * factor
        row = next((row for row in grid.fixed if cell.setting in row), ())
        others = {
            s.k: Estimate(value=truth(Cell(cell.condition, s)) * factor) for s in row if s.k is not None
        }
        estimate = Estimate(value=value, low=value * 0.95, high=value * 1.05)
        found[cell] = CellResult(requests=task.requests, speedup=estimate, predicted=others)
    return found


def swept(
    grid: Grid, truth: Truth, *, noise: float = 0.0, known: CellResults | None = None
) -> list[ServerStart]:
    outcomes, starts, rng = dict(known or {}), [], Random(1)
    while start := next_start(grid, outcomes, REQUESTS):
        assert start.tasks
        starts.append(start)
        assert len(starts) < 100, "never ends"
        for cell, outcome in measured(grid, truth, start, rng, noise).items():
            told = outcomes[cell].replayed if cell in outcomes else ()
            outcomes[cell] = replace(outcome, replayed=told)
    return starts


def pick(starts: list[ServerStart], truth: Truth, condition: Condition) -> float:
    cells = {t.cell for start in starts for t in start.tasks if t.cell.condition == condition}
    return max(truth(cell) for cell in cells if cell.setting != PLAIN)


def a_grid(**axes: Any) -> Grid:
    given_axes: dict[str, Any] = {
        "workloads": ("code",),
        "temperatures": (0.0,),
        "modes": ("draft-simple",),
        "ks": KS,
        **axes,
    }
    return Grid(**{"drafts": ("/d.gguf",), **given_axes})


CODE = Condition("code", 0.0)


def test_the_baseline_comes_first_then_the_run_that_predicts() -> None:
    starts = swept(a_grid(workloads=("code", "prose")), a_machine())
    assert starts[0].setting == PLAIN
    assert [t.cell.condition.workload for t in starts[0].tasks] == ["code", "prose"]
    assert starts[1].setting.k == 4
    assert all(t.requests == REQUESTS for start in starts[:2] for t in start.tasks)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.01, 0.5))
def test_the_best_length_is_found_within_what_is_worth_a_life(alpha: float, c: float) -> None:
    grid, truth = a_grid(), a_machine(alpha, c)
    starts = swept(grid, truth)
    best = max(truth(cell) for cell in grid.cells)
    assert max(1.0, pick(starts, truth, CODE)) >= max(1.0, best) / 1.03
    assert len(starts) <= 8


def test_few_lengths_are_measured_of_many() -> None:
    starts = swept(a_grid(), a_machine(alpha=0.3, c=0.1))
    assert len(starts) <= 5


def test_the_baseline_is_measured_again_where_something_may_win() -> None:
    starts = swept(a_grid(workloads=("code", "prose")), a_machine(alpha=0.7, c=0.05))
    assert [start.setting for start in starts].count(PLAIN) == 2
    assert starts[-1].setting == PLAIN
    assert [(t.cell.condition.workload, t.requests) for t in starts[-1].tasks] == [
        ("code", 2 * REQUESTS),
        ("prose", 2 * REQUESTS),
    ]


def test_a_bet_that_is_lost_anyway_is_not_measured_at_other_lengths() -> None:
    assert [start.setting.k for start in swept(a_grid(), a_machine(alpha=0.1, c=0.5))] == [None, 4]


@pytest.mark.parametrize("best", [(2, 8), (4, 8), (12, 48), (8, 32), (2, 48), (12, 8)])
def test_the_peak_of_ngrams_is_found(best: tuple[int, int]) -> None:
    grid, truth = a_grid(modes=("ngram-simple",)), a_machine(best=best, peak=2.2)
    starts = swept(grid, truth)
    assert pick(starts, truth, CODE) == pytest.approx(2.2)
    whole = [t for start in starts for t in start.tasks if t.requests == REQUESTS and t.cell.setting != PLAIN]
    assert (whole[-1].cell.setting.ngram_lookup, whole[-1].cell.setting.ngram_length) == best
    assert len(whole) == 1
    assert len(starts) < 1 + len(grid.settings)


def with_replays(grid: Grid, truth: Truth, surplus: float) -> dict[Cell, CellResult]:
    """Baselines whose answers tell what each n-gram setting makes of them, but for the cost of a row."""
    known = {}
    for condition in grid.conditions:
        made = []
        for setting in grid.settings:
            if setting.ngram_lookup is not None and setting.ngram_length is not None:
                rows = 10 * setting.ngram_length
                steps = 1000 / truth(Cell(condition, setting)) - surplus * rows
                made.append(Replay(setting.ngram_lookup, setting.ngram_length, 1000, 300, steps, rows, 0.05))
        known[Cell(condition, PLAIN)] = CellResult(requests=REQUESTS, speedup=None, replayed=tuple(made))
    return known


@pytest.mark.parametrize("surplus", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("best", [(2, 8), (4, 8), (12, 48), (8, 32), (2, 48), (12, 8)])
def test_ngrams_that_are_predicted_are_measured_where_they_may_win(
    best: tuple[int, int], surplus: float
) -> None:
    grid, truth = a_grid(modes=("ngram-simple",)), a_machine(best=best, peak=2.2)
    starts = swept(grid, truth, known=with_replays(grid, truth, surplus))
    tasks = [t for start in starts for t in start.tasks if t.cell.setting != PLAIN]
    assert pick(starts, truth, CODE) == pytest.approx(2.2)
    assert {t.requests for t in tasks} == {REQUESTS}
    # The first one tells the cost of a row, the second is the best.
    assert len(tasks) <= 2


def test_ngrams_that_are_predicted_to_lose_are_not_measured() -> None:
    grid, truth = a_grid(modes=("ngram-simple",), workloads=("code", "json")), a_machine(peak=0.9)
    assert swept(grid, truth, known=with_replays(grid, truth, 0.0)) == []


def test_lookups_that_never_match_are_not_measured() -> None:
    grid = a_grid(modes=("ngram-simple",), workloads=("prose", "rewrite"))
    known = with_replays(grid, a_machine(best=(2, 16), peak=2.0), 0.05)
    prose = Cell(Condition("prose", 0.0), PLAIN)
    never = tuple(Replay(r.lookup, r.length, 1000, 1000, 1000, 0, 0.0) for r in known[prose].replayed)
    known[prose] = replace(known[prose], replayed=never)
    starts = swept(grid, a_machine(best=(2, 16), peak=2.0), known=known)
    tasks = [t.cell for start in starts for t in start.tasks if t.cell.setting != PLAIN]
    assert {cell.condition.workload for cell in tasks} == {"rewrite"}


def test_a_workload_whose_answers_cannot_be_read_is_scattered_alone() -> None:
    grid, truth = a_grid(modes=("ngram-simple",), workloads=("code", "json")), a_machine(peak=0.7)
    known = with_replays(grid, truth, 0.0)
    known[Cell(CODE, PLAIN)] = replace(known[Cell(CODE, PLAIN)], replayed=())
    starts = swept(grid, truth, known=known)
    assert len(starts) == 4
    assert {t.cell.condition for start in starts for t in start.tasks} == {CODE}


def test_ngrams_that_lose_get_no_whole_run() -> None:
    starts = swept(a_grid(modes=("ngram-simple",)), a_machine(peak=0.7))
    assert len(starts) == 5
    assert {t.requests for start in starts[1:] for t in start.tasks} == {short_run(REQUESTS)}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.integers(0, 1000), st.sampled_from([0.0, 0.05, 0.2]))
def test_a_sweep_that_was_cut_goes_on_to_the_same_end(cut: int, seed: int, noise: float) -> None:
    grid = a_grid(workloads=("code", "json"), modes=("draft-simple", "ngram-simple"), p_mins=(0.0, 0.5))
    truth = a_machine(peak=1.5)
    tasks: list[tuple[str, int]] = []
    outcomes: dict[Cell, CellResult] = {}
    while (start := next_start(grid, outcomes, REQUESTS)) and len(tasks) < cut:
        found = measured(grid, truth, start, Random(seed), noise)
        first = start.tasks[0]
        outcomes[first.cell] = found[first.cell]
        tasks.append((first.cell.key, first.requests))
    rest = swept(grid, truth, noise=noise, known=outcomes)
    tasks += [(t.cell.key, t.requests) for start in rest for t in start.tasks]
    assert len(set(tasks)) == len(tasks)


def test_exhaustive_measures_every_cell_in_full_once() -> None:
    grid = a_grid(workloads=("code", "json"), modes=("draft-simple", "ngram-simple"), p_mins=(0.0, 0.5))
    outcomes: dict[Cell, CellResult] = {}
    tasks: list[Task] = []
    while start := next_start(grid, outcomes, REQUESTS, exhaustive=True):
        outcomes |= measured(grid, a_machine(), start, Random(1), 0.0)
        tasks += start.tasks
    assert {t.cell for t in tasks if t.cell.setting != PLAIN} == set(grid.cells)
    assert len(tasks) == len(grid.cells) + 2 + 2
    assert {t.requests for t in tasks if t.cell.setting != PLAIN} == {REQUESTS}


def test_a_cell_that_failed_is_not_tried_again() -> None:
    grid = a_grid(ks=(1, 4))
    known = {Cell(CODE, PLAIN): CellResult(requests=REQUESTS, speedup=None)}
    known[Cell(CODE, grid.fixed[0][1])] = CellResult(requests=REQUESTS, speedup=None)
    assert next_start(grid, known, REQUESTS) is None


def test_what_leads_and_may_still_lose_is_run_once_more_with_twice_the_requests() -> None:
    grid = a_grid(ks=(4,), workloads=("code", "json"))
    four = grid.fixed[0][0]
    known = {Cell(c, PLAIN): CellResult(requests=2 * REQUESTS, speedup=None) for c in grid.conditions}
    unsure, sure = Estimate(value=1.15, low=0.95, high=1.35), Estimate(value=1.15, low=1.02, high=1.3)
    for condition, speedup in zip(grid.conditions, (unsure, sure), strict=True):
        known[Cell(condition, four)] = CellResult(requests=REQUESTS, speedup=speedup)
    for exhaustive in (False, True):
        start = next_start(grid, known, REQUESTS, exhaustive=exhaustive)
        assert start == ServerStart(four, (Task(Cell(CODE, four), 2 * REQUESTS),))
    known[Cell(CODE, four)] = CellResult(requests=2 * REQUESTS, speedup=unsure)
    assert next_start(grid, known, REQUESTS) is None
    known[Cell(CODE, four)] = CellResult(requests=REQUESTS, speedup=unsure, failed=2 * REQUESTS)
    assert next_start(grid, known, REQUESTS) is None
    known[Cell(CODE, four)] = CellResult(requests=REQUESTS, speedup=Estimate(value=1.02, low=0.9, high=1.1))
    assert next_start(grid, known, REQUESTS) is None


def test_what_leads_and_fails_in_its_whole_run_is_not_tried_for_ever() -> None:
    grid, truth = a_grid(modes=("ngram-simple",)), a_machine(peak=2.2)
    outcomes: dict[Cell, CellResult] = {}
    tasks: list[Task] = []
    while start := next_start(grid, outcomes, REQUESTS):
        tasks += start.tasks
        assert len(set(tasks)) == len(tasks), "the same again"
        for cell, outcome in measured(grid, truth, start, Random(1), 0.0).items():
            fails = cell.setting != PLAIN and outcome.requests == REQUESTS
            outcomes[cell] = replace(outcomes[cell], failed=REQUESTS) if fails else outcome
    whole = [t.cell for t in tasks if t.requests == REQUESTS and t.cell.setting != PLAIN]
    assert len(whole) > 1
    assert truth(whole[0]) == max(truth(t.cell) for t in tasks if t.cell.setting != PLAIN)


def test_a_prediction_widens_with_the_distance_and_more_so_beyond() -> None:
    grid = a_grid(ks=(1, 2, 4, 8))
    (row,) = grid.fixed
    guesses = {k: Estimate(value=1.2, low=1.1, high=1.3) for k in (1, 2, 8)}
    ran = CellResult(requests=8, speedup=Estimate(value=1.3), predicted=guesses)
    known = {Cell(CODE, row[2]): ran}
    predictions = Predictions(grid, known)
    found = [predictions.of(Cell(CODE, row[i])) for i in (0, 1, 3)]
    lows = [each.speedup.low for each in found if each is not None and each.speedup.low is not None]
    assert len(lows) == 3
    assert lows[0] < lows[1] < 1.1
    # Two doublings of 2 % each, and the starts of the run that predicts and of the baseline.
    assert lows[0] == pytest.approx(1.0066, abs=0.0001)
    assert lows[2] < lows[1]
    assert predictions.of(Cell(CODE, row[2])) is None
    assert predictions.of(Cell(Condition("prose", 0.0), row[0])) is None
    assert best_known(CODE, known) == 1.3
    assert best_known(Condition("prose", 0.0), known) == 1.0


def test_what_is_left_counts_only_what_is_unknown() -> None:
    grid, pace = (
        a_grid(ks=(1, 4), modes=("draft-simple", "ngram-simple")),
        Pace(tokens=10, speed=10, start=100, first_token=0),
    )
    least, most = expected_seconds(grid, (), pace, REQUESTS)
    whole, short = REQUESTS + WARMUP, short_run(REQUESTS) + WARMUP
    assert least == pytest.approx(2 * 100 + 2 * whole)
    assert most == pytest.approx(19 * 100 + 19 * whole)
    blind = pytest.approx((6 * 100 + 2 * whole + 4 * short, most))
    assert expected_seconds(grid, (), pace, REQUESTS, replays=False) == blind
    maps = a_grid(ks=(1, 4), modes=("draft-simple", "ngram-map-k"))
    assert expected_seconds(maps, (), pace, REQUESTS) == blind
    assert expected_seconds(grid, (), pace, REQUESTS, exhaustive=True) == (most, most)
    everything = {*grid.cells, Cell(CODE, PLAIN)}
    assert expected_seconds(grid, everything, pace, REQUESTS) == (0, 0)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize(("alpha", "peak"), [(0.3, 0.7), (0.6, 0.9), (0.6, 2.2), (0.85, 1.5)])
def test_it_takes_at_most_a_third_of_measuring_everything(alpha: float, peak: float, noise: float) -> None:
    grid = a_grid(workloads=("code", "json", "rewrite"), modes=("draft-simple", "ngram-simple"))
    pace = Pace(tokens=200, speed=20.0, start=5.0)

    def seconds(starts: list[ServerStart]) -> float:
        # A second baseline sends only what is new.
        sent = [min(task.requests, REQUESTS) for start in starts for task in start.tasks]
        return pace.seconds(len(starts), 0, 0) + sum(pace.seconds(0, 1, requests) for requests in sent)

    adaptive = swept(grid, a_machine(alpha, peak=peak), noise=noise)
    _, everything = expected_seconds(grid, (), pace, REQUESTS)
    assert seconds(adaptive) <= everything / 3
