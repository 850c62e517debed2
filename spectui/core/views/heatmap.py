"""The heat map of a sweep's condition: speedup over plain by setting, measured, predicted or unknown.

The numbers by which the planner decides what comes next, laid out for a screen.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import Cell, Condition, Grid, Setting
from spectui.core.sweep.prediction import CellResults, Predictions
from spectui.core.text import one_line


class CellState(StrEnum):
    """What is known of a cell."""

    UNKNOWN = "unknown"
    PREDICTED = "predicted"
    """By another cell's run, or by the answers of the baseline."""
    MEASURED = "measured"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One setting under the map's condition. speedup: over plain; None where it is unknown or failed."""

    state: CellState = CellState.UNKNOWN
    speedup: Estimate | None = None
    now: bool = False
    """Whether it is being measured."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """Settings that differ in the column only."""

    label: str
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True, slots=True)
class HeatBlock:
    """Rows with the same columns."""

    axis: str
    """What the columns count: k, or the length that an n-gram mode drafts; empty where there is no such number."""
    columns: tuple[int, ...]
    rows: tuple[HeatRow, ...]


def heat_map(
    condition: Condition,
    grid: Grid,
    known: CellResults,
    *,
    failed: Collection[Cell] = (),
    now: Cell | None = None,
) -> tuple[HeatBlock, ...]:
    """The blocks of a condition: one for drafts of k tokens by mode, draft and p_min, one for each n-gram mode."""

    predictions = Predictions(grid, known)

    def cell_of(setting: Setting) -> HeatCell:
        cell = Cell(condition, setting)
        outcome = known.get(cell)
        if outcome is not None and outcome.speedup is not None:
            return HeatCell(CellState.MEASURED, outcome.speedup, cell == now)
        if cell in failed:
            return HeatCell(CellState.FAILED, None, cell == now)
        guess = predictions.of(cell)
        if guess is None:
            return HeatCell(now=cell == now)
        return HeatCell(CellState.PREDICTED, guess.speedup, cell == now)

    several = len(grid.drafts) > 1
    drafted = [
        HeatRow(_label(row[0], several=several), tuple(cell_of(setting) for setting in row))
        for row in grid.fixed
    ]
    lookups: list[HeatBlock] = []
    for family in grid.free:
        rows = [
            HeatRow(_label(row[0], several=several), tuple(cell_of(setting) for setting in row))
            for row in family.rows
        ]
        first = family.rows[0]
        if first[0].k is not None:
            drafted += rows
        else:
            lengths = tuple(s.ngram_length for s in first if s.ngram_length is not None)
            lookups.append(HeatBlock("length" if lengths else "", lengths, tuple(rows)))
    blocks = [HeatBlock("k", tuple(sorted(grid.ks)), tuple(drafted))] if drafted else []
    return (*blocks, *lookups)


def _label(setting: Setting, *, several: bool) -> str:
    """What a row's settings share: the mode, p_min or lookup, and the draft where there are several."""
    parts = [setting.mode.removeprefix("draft-") if several else setting.mode]
    if several and setting.draft is not None:
        parts.append(setting.draft.rpartition("/")[2].removesuffix(".gguf"))
    if setting.p_min:
        parts.append(f"p_min {setting.p_min:g}")
    if setting.ngram_lookup is not None:
        parts.append(f"lookup {setting.ngram_lookup}")
    return one_line(" ".join(parts), 60)
