"""What a sweep measures next, from what is known so far: a pure function, so that it can stop anywhere and go on.

What other runs predict (see `prediction`) is measured only where the best may hide. Other settings are
scattered first, in short runs, and refined around the best; only what leads is measured in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spectui.core.sweep.grid import PLAIN, Cell, Condition, Family, Grid, Pace, Setting, by_start
from spectui.core.sweep.prediction import CellResults, Predictions
from spectui.core.sweep.recommendation import WORTH

INDIFFERENT: Final = 0.02
"""A setting that can gain no more than this, as a share, is not worth a server start: restarts differ by more."""
_BEHIND: Final = 0.1
"""A short run this far behind the best is not refined."""
_SHORTEST: Final = 2
_HOPELESS: Final = 0.8
"""Where the best is this slow no drift of the machine hides a gain, and the baseline is not measured again."""


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to be measured with so many requests."""

    cell: Cell
    requests: int


@dataclass(frozen=True, slots=True)
class ServerStart:
    """A server start and what it is for; never empty."""

    setting: Setting
    tasks: tuple[Task, ...]


def short_run(requests: int) -> int:
    """Requests that tell whether a setting is worth a whole run."""
    return min(requests, max(_SHORTEST, requests // 4))


def next_start(
    grid: Grid, known: CellResults, requests: int, *, exhaustive: bool = False
) -> ServerStart | None:
    """The next server start; None when the best setting of each condition is settled.

    requests: of a whole run; the baseline gets as many again at the end, for a machine drifts meanwhile. The answer
    depends on nothing but the arguments.
    """
    sure = grid.settings if exhaustive else grid.anchors
    for setting in (PLAIN, *sure):
        if start := _start(setting, grid.conditions, known, requests):
            return start
    if exhaustive:
        return _closing(grid, known, requests) or _settling(grid, known, requests)
    short = short_run(requests)
    predictions = Predictions(grid, known)
    for family in grid.free:
        blind = [c for c in grid.conditions if not predictions.is_replayed(c, family.settings[0])]
        for setting in family.scattered():
            if start := _start(setting, blind, known, short):
                return start
    return (
        _promising(grid, known, requests, predictions)
        or _refining(grid, known, short, predictions)
        or _final(grid, known, requests)
        or _closing(grid, known, requests)
        or _settling(grid, known, requests)
    )


def expected_seconds(
    grid: Grid,
    known: Collection[Cell],
    pace: Pace,
    requests: int,
    *,
    exhaustive: bool = False,
    replays: bool = True,
) -> tuple[float, float]:
    """What the cells that nothing is known of take: those that are measured for sure, and all of them in full.

    replays: whether n-gram lookups can be replayed on a baseline's answers.
    """
    most = _seconds((PLAIN, *grid.settings), grid, known, pace, requests)
    if exhaustive:
        return most, most
    least = _seconds((PLAIN, *grid.anchors), grid, known, pace, requests)
    return least + _seconds(grid.blind(replays=replays), grid, known, pace, short_run(requests)), most


def best_known(condition: Condition, known: CellResults) -> float:
    """The largest speedup measured under a condition, at least that of the baseline."""
    found = (o.speedup.value for c, o in known.items() if c.condition == condition and o.speedup is not None)
    return max([1.0, *found])


def _seconds(
    settings: Iterable[Setting], grid: Grid, known: Collection[Cell], pace: Pace, requests: int
) -> float:
    cells = [Cell(condition, setting) for setting in settings for condition in grid.conditions]
    missing = [cell for cell in cells if cell not in known]
    return pace.seconds(len(by_start(missing)), len(missing), requests)


def _start(
    setting: Setting, conditions: Iterable[Condition], known: CellResults, requests: int
) -> ServerStart | None:
    cells = [Cell(condition, setting) for condition in conditions]
    tasks = tuple(Task(c, requests) for c in cells if c not in known or known[c].tried < requests)
    return ServerStart(setting, tasks) if tasks else None


def _promising(grid: Grid, known: CellResults, requests: int, predictions: Predictions) -> ServerStart | None:
    """The unmeasured setting that is predicted best among those that may beat the best known one.

    Draft lengths that are predicted to win get a whole run, others a short one. Short runs of lookups would tell
    less than the prediction does.
    """
    wanted: dict[Setting, list[tuple[float, Task]]] = {}
    for condition in grid.conditions:
        bar = best_known(condition, known) * (1 + INDIFFERENT)
        for setting in grid.settings:
            cell = Cell(condition, setting)
            found = None if cell in known else predictions.of(cell)
            if found is not None and found.at_best >= bar:
                ahead = found.speedup.value / bar
                whole = found.tells or ahead >= 1
                task = Task(cell, requests if whole else short_run(requests))
                wanted.setdefault(setting, []).append((ahead, task))
    if not wanted:
        return None
    first = max(wanted, key=lambda setting: max(ahead for ahead, _ in wanted[setting]))
    return ServerStart(first, tuple(task for _, task in wanted[first]))


def _refining(grid: Grid, known: CellResults, short: int, predictions: Predictions) -> ServerStart | None:
    """The first unmeasured neighbour of a family's best setting, where that is not clearly behind."""
    wanted: dict[Setting, list[Task]] = {}
    for family in grid.free:
        for condition in grid.conditions:
            if predictions.is_replayed(condition, family.settings[0]):
                continue
            lead = _leader(family, condition, known)
            if lead is None or lead[1] * (1 + _BEHIND) < best_known(condition, known):
                continue
            for setting in family.neighbours(lead[0]):
                cell = Cell(condition, setting)
                if cell not in known:
                    wanted.setdefault(setting, []).append(Task(cell, short))
    return _fullest(wanted)


def _leader(family: Family, condition: Condition, known: CellResults) -> tuple[Setting, float] | None:
    found = [
        (setting, outcome.speedup.value)
        for setting in family.settings
        if (outcome := known.get(Cell(condition, setting))) is not None and outcome.speedup is not None
    ]
    return max(found, key=lambda each: each[1], default=None)


def _final(grid: Grid, known: CellResults, requests: int) -> ServerStart | None:
    """A whole run for what leads after a short one, unless a setting with a whole run is as good."""
    wanted: dict[Setting, list[Task]] = {}
    for condition in grid.conditions:
        cells = {c: o for c, o in known.items() if c.condition == condition and c.setting != PLAIN}
        whole = [o.speedup.value for o in cells.values() if o.speedup is not None and o.requests >= requests]
        bar = max([1.0, *whole]) * (1 + INDIFFERENT)
        ahead = [
            (o.speedup.value, c)
            for c, o in cells.items()
            if o.speedup is not None and o.tried < requests and o.speedup.value > bar
        ]
        if ahead:
            _, cell = max(ahead, key=lambda each: each[0])
            wanted.setdefault(cell.setting, []).append(Task(cell, requests))
    return _fullest(wanted)


def _closing(grid: Grid, known: CellResults, requests: int) -> ServerStart | None:
    """The baseline again, where the decision depends on it."""
    tasks = []
    for condition in grid.conditions:
        cell = Cell(condition, PLAIN)
        found = [
            o.speedup.value for c, o in known.items() if c.condition == condition and o.speedup is not None
        ]
        if max(found, default=0.0) >= _HOPELESS and known[cell].requests < 2 * requests:
            tasks.append(Task(cell, 2 * requests))
    return ServerStart(PLAIN, tuple(tasks)) if tasks else None


def _settling(grid: Grid, known: CellResults, requests: int) -> ServerStart | None:
    """As many requests again, in one run, for what leads and is worth its setting but may still lose."""
    wanted: dict[Setting, list[Task]] = {}
    for condition in grid.conditions:
        found = {
            cell: outcome.speedup
            for cell, outcome in known.items()
            if cell.condition == condition and outcome.speedup is not None and outcome.requests >= requests
        }
        if not found:
            continue
        lead = max(found, key=lambda cell: found[cell].value)
        value, low = found[lead].value, found[lead].low
        if value >= WORTH and low is not None and low <= 1 and known[lead].tried < 2 * requests:
            wanted.setdefault(lead.setting, []).append(Task(lead, 2 * requests))
    return _fullest(wanted)


def _fullest(wanted: Mapping[Setting, Sequence[Task]]) -> ServerStart | None:
    """The first of the starts that serve the most cells."""
    if not wanted:
        return None
    first = max(wanted, key=lambda setting: len(wanted[setting]))
    return ServerStart(first, tuple(wanted[first]))
