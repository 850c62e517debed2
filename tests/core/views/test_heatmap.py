from __future__ import annotations

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Setting
from spectui.core.sweep.prediction import CellResult
from spectui.core.views.heatmap import CellState, HeatCell, heat_map

CODE, PROSE = Condition("code", 0.0), Condition("prose", 0.0)
GRID = Grid(
    workloads=("code", "prose"),
    temperatures=(0.0,),
    modes=("draft-simple", "ngram-simple", "ngram-cache"),
    ks=(4, 1, 2),
    p_mins=(0.0, 0.5),
    drafts=("/m/d.gguf",),
    lookups=(2, 4),
    lengths=(8, 16, 32),
)


def drafted(k: int, p_min: float = 0.0) -> Setting:
    return Setting(mode="draft-simple", draft="/m/d.gguf", k=k, p_min=p_min)


def outcome(value: float | None, predicted: dict[int, float] | None = None) -> CellResult:
    speedup = None if value is None else Estimate(value=value, low=value - 0.1, high=value + 0.1)
    others = {k: Estimate(value=v) for k, v in (predicted or {}).items()}
    return CellResult(requests=8, speedup=speedup, predicted=others)


def test_rows_are_modes_and_p_min_and_columns_are_lengths() -> None:
    drafts, lookups, cache = heat_map(CODE, GRID, {})
    assert (drafts.axis, drafts.columns) == ("k", (1, 2, 4))
    assert [row.label for row in drafts.rows] == ["draft-simple", "draft-simple p_min 0.5"]
    assert (lookups.axis, lookups.columns) == ("length", (8, 16, 32))
    assert [row.label for row in lookups.rows] == ["ngram-simple lookup 2", "ngram-simple lookup 4"]
    assert (cache.axis, cache.columns) == ("", ())
    assert [row.label for row in cache.rows] == ["ngram-cache"]
    cells = [cell for block in (drafts, lookups, cache) for row in block.rows for cell in row.cells]
    assert cells == [HeatCell()] * 13


def test_a_run_is_measured_and_predicts_its_row_only() -> None:
    known = {
        Cell(CODE, PLAIN): outcome(None),
        Cell(CODE, drafted(4)): outcome(1.5, {1: 1.2, 2: 1.4}),
        Cell(PROSE, drafted(1)): outcome(0.7),
    }
    (row, sure), *_ = (block.rows for block in heat_map(CODE, GRID, known))
    assert [cell.state for cell in row.cells] == [
        CellState.PREDICTED,
        CellState.PREDICTED,
        CellState.MEASURED,
    ]
    assert [cell.speedup.value for cell in row.cells if cell.speedup] == [1.2, 1.4, 1.5]
    assert row.cells[2].speedup == Estimate(value=1.5, low=1.4, high=1.6)
    assert {cell.state for cell in sure.cells} == {CellState.UNKNOWN}


def test_what_is_measured_replaces_what_was_predicted() -> None:
    known = {Cell(CODE, drafted(4)): outcome(1.5, {1: 1.2}), Cell(CODE, drafted(1)): outcome(0.9)}
    cell = heat_map(CODE, GRID, known)[0].rows[0].cells[0]
    assert (cell.state, cell.speedup.value if cell.speedup else None) == (CellState.MEASURED, 0.9)


def test_a_failure_and_the_cell_that_runs_are_marked() -> None:
    bad, now = Cell(CODE, drafted(2)), Cell(CODE, drafted(1))
    known = {bad: outcome(None)}
    cells = heat_map(CODE, GRID, known, failed={bad}, now=now)[0].rows[0].cells
    assert cells == (HeatCell(now=True), HeatCell(CellState.FAILED), HeatCell())
    assert not any(cell.now for cell in heat_map(PROSE, GRID, known, now=now)[0].rows[0].cells)


def test_several_drafts_are_told_apart_and_their_names_are_harmless() -> None:
    grid = Grid(
        workloads=("code",),
        temperatures=(0.0,),
        modes=("draft-simple",),
        ks=(4,),
        drafts=("/m/a.gguf", "/m/b\x1b[2J.gguf"),
    )
    labels = [row.label for row in heat_map(CODE, grid, {})[0].rows]
    assert labels[0] == "simple a"
    assert labels[1].startswith("simple b")
    assert "\x1b" not in labels[1]
