"""Sweeps as they are kept: an order as the plan in the results store and back, and what its cells yielded.

The running sweep, its report, the export and the history read all that is known of it here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.intervals import TWO_STARTS_ERROR
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.segment import SpeedEstimate, speedup_over
from spectui.core.profile import TuningProfile
from spectui.core.secrets import without_secrets
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Pace
from spectui.core.sweep.planner import INDIFFERENT, expected_seconds
from spectui.core.sweep.prediction import CellResult, CellResults, Predictions, replay_of
from spectui.core.sweep.recommendation import (
    WORTH,
    Candidate,
    Recommendation,
    doubts_of,
    recommend,
)
from spectui.errors import StoreError
from spectui.store.baselines import FileIdentity
from spectui.store.records import RunSummary, Sweep

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_SWEPT: Final = ("mode", "draft_length", "p_min", "ngram_lookup", "ngram_length", "draft_models")
"""Settings of a profile's speculation that every cell replaces, or that no server sees."""
_AS_REPLAYED: Final = 0.7
"""Share of what a text makes a lookup draft that the server drafts at least: answers change with rounding."""
_ENOUGH_ROWS: Final = 100
"""Drafted tokens from which that share says something."""
REST: Final = "rest"
"""Key of the server seconds that belong to no cell: a sweep's last server on its way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOrder:
    """What to sweep. requests: counted requests of a whole run of a cell."""

    profile: TuningProfile
    """The server, and whatever the grid leaves open; its traffic gives the length of answers."""
    grid: Grid
    requests: int
    exhaustive: bool = False
    files: tuple[FileIdentity, ...] = ()
    """The binary and the models: others make another sweep."""
    build: str | None = None
    """As the binary names it; another one makes another sweep."""

    @property
    def replays(self) -> bool:
        """Whether lookups can be replayed on the answers of a baseline: the drafts of others are in no text."""
        return self.profile.traffic.concurrency == 1

    def expected_seconds(self, known: Collection[Cell], pace: Pace) -> tuple[float, float]:
        """What is left beside the known cells: for sure, and at most."""
        return expected_seconds(
            self.grid, known, pace, self.requests, exhaustive=self.exhaustive, replays=self.replays
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one run of a cell yielded; unknown is None."""

    requests: int
    """Counted requests."""
    server_seconds: float = 0.0
    """Seconds that a server process existed for it, its start included where this was its first cell."""
    speed: SpeedEstimate | None = None
    first_token_ms: float | None = None
    """Median over its requests."""
    tokens_per_pass: float | None = None
    drafted_per_pass: float | None = None
    acceptance_ratio: float | None = None
    speedup_predicted: float | None = None
    """By this run's own costs, over `baseline`."""
    predicted: Mapping[int, Estimate] = field(default_factory=dict)
    """Speedup at the grid's other draft lengths, over `baseline`."""
    baseline: float | None = None
    """Plain tokens per second at that time, over all streams."""
    v: Mapping[int, float] = field(default_factory=dict)
    """V(n), beside a baseline."""
    v_error: Mapping[int, float] = field(default_factory=dict)
    replayed: tuple[Replay, ...] = ()
    """What lookups make of a baseline's answers."""
    drift: float | None = None
    """Speed of the second baseline over the first's, where there are two."""
    failure: str | None = None
    """Why there is nothing; untrusted text."""


@dataclass(slots=True, kw_only=True)
class Found:
    """All that is known of a sweep."""

    order: SweepOrder
    number: int | None = None
    """In the results store; None where it cannot be kept."""
    finished: bool = False
    cells: dict[Cell, Measured] = field(default_factory=dict)
    """The longest run of each cell that yielded something, baselines included."""
    failed: dict[Cell, Measured] = field(default_factory=dict)
    """The longest run of each cell that failed, unless one as long yielded something since."""
    server_seconds: float = 0.0
    runs: dict[int, tuple[Cell, Measured]] = field(default_factory=dict)
    """What kept runs yielded, by their numbers in the results store: of a kept sweep."""
    unkept: str = ""
    """What is not kept and why, as long as something cannot be."""

    def take(self, cell: Cell, measured: Measured) -> None:
        """Add a finished run; one that failed takes nothing away from an earlier one."""
        self.server_seconds += measured.server_seconds
        runs = self.cells if measured.failure is None else self.failed
        if cell not in runs or runs[cell].requests <= measured.requests:
            runs[cell] = measured
        if runs is self.cells and cell in self.failed and self.failed[cell].requests <= measured.requests:
            del self.failed[cell]

    @property
    def known(self) -> frozenset[Cell]:
        """The cells that were measured or failed, baselines included."""
        return frozenset((*self.cells, *self.failed))

    @property
    def done(self) -> int:
        """Cells that are known, without the baselines."""
        return sum(cell.setting != PLAIN for cell in self.known)

    @property
    def outcomes(self) -> dict[Cell, CellResult]:
        """What deciding the next step takes. Reckoned anew each time: ask once for many cells."""
        failed = {cell: measured.requests for cell, measured in self.failed.items()}
        untold = {cell.condition for cell in self.cells if self._drafts_less(cell)}
        nothing = {cell: CellResult(requests=0, speedup=None, failed=most) for cell, most in failed.items()}
        return nothing | {
            cell: CellResult(
                requests=measured.requests,
                speedup=self.speedup(cell),
                predicted=self._predicted(cell, measured),
                replayed=() if cell.condition in untold else measured.replayed,
                failed=failed.get(cell, 0),
            )
            for cell, measured in self.cells.items()
        }

    def speedup(self, cell: Cell) -> Estimate | None:
        """Over all that is known of the baseline by now; None for the baseline itself.

        Its interval counts what the two server starts bring along, which neither run shows.
        """
        measured = self.cells.get(cell)
        return None if measured is None else self._speedup(cell, measured)

    def _speedup(self, cell: Cell, measured: Measured) -> Estimate | None:
        baseline = self.against(cell.condition)
        if baseline is None or measured.speed is None or cell.setting == PLAIN:
            return None
        return speedup_over(measured.speed, baseline.speed, between=TWO_STARTS_ERROR)

    def speedup_predicted(self, cell: Cell) -> float | None:
        """A measured cell's speedup by its own costs."""
        measured = self.cells.get(cell)
        if measured is None or measured.speedup_predicted is None:
            return None
        return measured.speedup_predicted * self._rebased(cell, measured)

    def by_now(self, run: int, summary: RunSummary) -> RunSummary:
        """A kept run's summary with speedups over all that is known of its baseline by now, as `speedup` has them.

        What a pass costs stays in plain steps of the baseline that the run was measured against.
        """
        cell, measured = self.runs[run]
        speedup, baseline = self._speedup(cell, measured), self.against(cell.condition)
        if speedup is None or baseline is None:
            return summary
        predicted = measured.speedup_predicted
        return replace(
            summary,
            baseline=baseline.speed.aggregate,
            baseline_source=baseline.source,
            speedup_actual=speedup,
            speedup_predicted=None if predicted is None else predicted * self._rebased(cell, measured),
        )

    def _drafts_less(self, cell: Cell) -> bool:
        """Whether the server drafts less than the text alone allows: its answers then tell nothing of lookups."""
        measured, baseline = self.cells[cell], self.baseline(cell.condition)
        replay = None if baseline is None else replay_of(cell.setting, baseline.replayed)
        few = replay is None or replay.rows < _ENOUGH_ROWS or cell.condition.temperature > 0
        if replay is None or few or measured.drafted_per_pass is None:
            return False
        return measured.drafted_per_pass < _AS_REPLAYED * replay.rows / replay.passes

    def _predicted(self, cell: Cell, measured: Measured) -> dict[int, Estimate]:
        by = self._rebased(cell, measured)
        return {k: estimate.times(by) for k, estimate in measured.predicted.items()}

    def _rebased(self, cell: Cell, measured: Measured) -> float:
        """The baseline that a cell was measured against over what is known of it by now."""
        baseline = self.against(cell.condition)
        if measured.baseline is None or baseline is None:
            return 1.0
        return measured.baseline / baseline.speed.aggregate.value

    def baseline(self, condition: Condition) -> Measured | None:
        """What was measured of a condition's baseline."""
        return self.cells.get(Cell(condition, PLAIN))

    def against(self, condition: Condition) -> Baseline | None:
        """What the cells of a condition are measured against: all that is known of its baseline by now."""
        known = self.baseline(condition)
        if known is None or known.speed is None:
            return None
        source = "the sweep's first baseline" if known.drift is None else "both baselines of the sweep"
        return Baseline(known.speed, source, known.v, known.v_error, known.replayed)

    @property
    def failures(self) -> dict[str, str]:
        """What failed, by the cell's key."""
        return {c.key: m.failure for c, m in self.failed.items() if m.failure is not None}


def plan_of(order: SweepOrder) -> dict[str, Any]:
    """The order as the store keeps it, without secrets; equal plans measure the same."""
    server = order.profile.server
    profile = order.profile.with_server(extra_args=without_secrets(server.extra_args))
    plan: dict[str, Any] = _adapter(SweepOrder).dump_python(replace(order, profile=profile), mode="json")
    return plan


def without_swept(profile: TuningProfile) -> TuningProfile:
    """The profile without what makes no difference to a sweep of it, so that equal sweeps have equal plans."""
    usual = TuningProfile()
    profile = replace(profile, description=usual.description, baseline=usual.baseline)
    profile = profile.with_traffic(warmup=usual.traffic.warmup)
    return profile.with_speculation(**{name: getattr(usual.speculation, name) for name in _SWEPT})


def found_of(sweep: Sweep) -> Found:
    """A kept sweep. Raises StoreError for one that another version of spectui wrote."""
    try:
        order: SweepOrder = _adapter(SweepOrder).validate_python(sweep.plan)
        found = Found(order=order, number=sweep.id, finished=sweep.state == "done")
        cells = {cell.key: cell for cell in _all_cells(order.grid)}
        for kept in sweep.cells:
            name, _, _ = kept.key.rpartition(" requests=")
            measured: Measured = _adapter(Measured).validate_python(kept.result)
            if name in cells:
                found.take(cells[name], measured)
                if kept.run is not None:
                    found.runs[kept.run] = cells[name], measured
            else:
                found.server_seconds += measured.server_seconds
    except ValueError as error:
        raise StoreError(f"sweep {sweep.id} cannot be understood: it was kept by another version") from error
    return found


def stored_key(cell: Cell, measured: Measured, *, at: float) -> str:
    """Key of one run of a cell that ended then: a short run, a whole one and each that failed are all kept."""
    failed = "" if measured.failure is None else f" failed={at:.3f}"
    return f"{cell.key} requests={measured.requests}{failed}"


def stored(measured: Measured) -> dict[str, Any]:
    """A run as JSON values."""
    values: dict[str, Any] = _adapter(Measured).dump_python(measured, mode="json")
    return values


def identities(paths: Iterable[str | None]) -> tuple[FileIdentity, ...]:
    """The files that are there."""
    found = []
    for path in paths:
        if path is not None:
            with suppress(OSError):
                found.append(FileIdentity.of(path))
    return tuple(found)


def changed_file(order: SweepOrder, *used: str) -> str | None:
    """A file of the order that is another one now, or gone; or one of those `used` now that is not among them."""
    paths = (*used, *(file.path for file in order.files))
    return next((path for path in paths if not set(order.files).intersection(identities([path]))), None)


def _all_cells(grid: Grid) -> Iterable[Cell]:
    return (*grid.cells, *(Cell(condition, PLAIN) for condition in grid.conditions))


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415  not needed for the first frame

    return TypeAdapter(kind)


def recommendations(found: Found, known: CellResults) -> dict[Condition, Recommendation | None]:
    """What to use under each condition; None where nothing was tried beyond the baseline. known: found.outcomes."""
    grid = found.order.grid
    predictions = Predictions(grid, known)
    return {c: _recommended(found, c, known, predictions) for c in grid.conditions}


def going_on(number: int) -> str:
    """How an unfinished sweep goes on."""
    return f"spectui sweep --resume {number} goes on"


def _recommended(
    found: Found, condition: Condition, known: CellResults, predictions: Predictions
) -> Recommendation | None:
    tried = any(cell.condition == condition and cell.setting != PLAIN for cell in found.cells)
    baseline = found.baseline(condition)
    if baseline is None or not (tried or found.finished):
        return None
    runs = {
        cell.setting: (found.speedup(cell), measured.requests >= found.order.requests)
        for cell, measured in found.cells.items()
        if cell.condition == condition
    }
    bar = max((s.value for s, whole in runs.values() if s is not None and whole), default=0.0)
    candidates = [
        Candidate(setting, speedup, measured=True)
        for setting, (speedup, whole) in runs.items()
        if speedup is not None
        and (whole or speedup.value > bar * (1 + INDIFFERENT))
        # Tokens per pass are the most that any pass can gain: a faster one shows how unsteady the machine is.
        and (found.cells[Cell(condition, setting)].tokens_per_pass or WORTH) >= WORTH
    ]
    for setting in found.order.grid.settings:
        cell = Cell(condition, setting)
        if cell not in known and (guess := predictions.of(cell)) is not None:
            candidates.append(Candidate(setting, guess.speedup, measured=False))
    best = recommend(candidates)
    # Off is what all runs say together, and a prediction comes from whole ones.
    own = None if best.off else found.cells.get(Cell(condition, best.setting))
    requests = found.order.requests if own is None else own.requests
    return replace(best, doubts=doubts_of(baseline.drift, requests))
