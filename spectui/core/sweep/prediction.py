"""What the runs of a sweep predict of the cells that nothing was measured of.

A run with drafts of a fixed length predicts the other lengths. The answers of the baseline tell what n-gram lookups
would have made of them; what a drafted row costs is known once one of those was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.intervals import START_ERROR, TWO_STARTS_ERROR
from spectui.core.bet.ngram_replay import REPLAY_ERROR, Replay, replay_at, row_surplus
from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Setting

_STEP_ERROR: Final = 0.02
"""Standard error of a prediction per doubling or halving of the draft length."""
_BEYOND: Final = 2.0
"""How much larger that is for lengths beyond the one that ran, which continue its tail."""
_DOUBT: Final = 1.96
"""Standard errors by which a draft length may be better than it is predicted."""
_PROBE_ERROR: Final = 0.1
"""By how much of a lookup's speedup the probe may make it too slow while none ran."""
_GIVEN_UP: Final = 2
"""Lookups that failed before one worked, after which no more are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What a cell yielded."""

    requests: int
    """Counted requests of its run; 0 where none yielded anything."""
    speedup: Estimate | None
    """Over the baseline; None where it could not be measured."""
    predicted: Mapping[int, Estimate] = field(default_factory=dict)
    """Speedup at other draft lengths, with drafts of a fixed length only."""
    replayed: tuple[Replay, ...] = ()
    """What lookups make of the answers; of a baseline only."""
    failed: int = 0
    """Requests of the longest run that failed."""

    @property
    def tried(self) -> int:
        """Requests of the longest run, be it one that failed: the same one is not tried again."""
        return max(self.requests, self.failed)


CellResults = Mapping[Cell, CellResult]
"""The longest run of each cell that was measured, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What is known of a cell before it ran."""

    speedup: Estimate
    """With its whole interval."""
    at_best: float
    """What it may reach on the same prompts and against the same baseline as the cells that ran."""
    tells: bool = False
    """Whether only a whole run of it tells more: its own error is that of a server start."""


class Predictions:
    """Predicts cells from what is known; for one state of a sweep."""

    def __init__(self, grid: Grid, known: CellResults) -> None:
        self._known = known
        self._rows = {setting: row for row in grid.fixed for setting in row}

    def of(self, cell: Cell) -> Prediction | None:
        """The prediction with the least error; None where no other run tells anything of the cell."""
        row = self._rows.get(cell.setting)
        return self._by_replay(cell) if row is None else self._by_length(cell, row)

    def is_replayed(self, condition: Condition, setting: Setting) -> bool:
        """Whether the baseline's answers tell what the setting makes of them."""
        return self._replay(Cell(condition, setting)) is not None

    def _by_length(self, cell: Cell, row: tuple[Setting, ...]) -> Prediction | None:
        """By the run with the nearest other length.

        The interval is widened by how far the length is from the one that ran and by the two server starts that it
        comes from, that run's and the baseline's.
        """
        k = cell.setting.k
        best: tuple[float, Estimate] | None = None
        for other in row:
            outcome = self._known.get(Cell(cell.condition, other))
            if k is None or other.k is None or other.k == k or outcome is None or k not in outcome.predicted:
                continue
            distance = abs(math.log2(k / other.k)) * (_BEYOND if k > other.k else 1.0)
            error = math.hypot(START_ERROR, _STEP_ERROR * distance)
            if best is None or error < best[0]:
                best = error, outcome.predicted[k]
        if best is None:
            return None
        error, estimate = best
        return Prediction(
            speedup=estimate.widened(math.hypot(error, START_ERROR)),
            at_best=estimate.value * math.exp(_DOUBT * error),
        )

    def _by_replay(self, cell: Cell) -> Prediction | None:
        """By the baseline's answers and the cost of a drafted row, which other cells tell or which is unknown."""
        replay = self._replay(cell)
        if replay is None:
            return None
        runs = {other: run for other, run in self._replayed_runs.items() if other != cell}
        if not runs and len(self._failures) >= _GIVEN_UP:
            return None
        # Only runs at temperature 0 gave the very answers that were replayed.
        greedy = [run for other, run in runs.items() if other.condition.temperature == 0]
        surplus = row_surplus(greedy or runs.values(), TWO_STARTS_ERROR)
        estimate = replay.speedup(surplus.value)
        # How far an error of the surplus carries grows with the rows that a step drafts.
        error = math.hypot(REPLAY_ERROR, surplus.error * replay.rows * estimate.value / replay.tokens)
        if cell.condition.temperature > 0:
            error = math.hypot(error, replay.error)
        told = any(seen.rows for seen, _ in runs.values())
        reach = error if told else math.hypot(error, _PROBE_ERROR)
        return Prediction(
            speedup=estimate.widened(math.hypot(error, START_ERROR)),
            at_best=min(replay.ceiling, estimate.value * math.exp(reach)),
            tells=True,
        )

    @cached_property
    def _replayed_runs(self) -> dict[Cell, tuple[Replay, float]]:
        """Replayed cells that were measured, with their speedups."""
        return {
            cell: (replay, outcome.speedup.value)
            for cell, outcome in self._known.items()
            if outcome.speedup is not None and (replay := self._replay(cell)) is not None
        }

    @cached_property
    def _failures(self) -> set[Setting]:
        """Replayed settings that yielded nothing; a server that does not start fails under all conditions."""
        return {
            cell.setting
            for cell, outcome in self._known.items()
            if outcome.speedup is None and self._replay(cell) is not None
        }

    def _replay(self, cell: Cell) -> Replay | None:
        baseline = self._known.get(Cell(cell.condition, PLAIN))
        return None if baseline is None else replay_of(cell.setting, baseline.replayed)


def replay_of(setting: Setting, replays: Iterable[Replay]) -> Replay | None:
    """The replay of a setting; None where there is none, or its drafts do not follow from the text."""
    if setting.mode != NGRAM_SIMPLE:
        return None
    return replay_at(replays, (setting.ngram_lookup, setting.ngram_length))
