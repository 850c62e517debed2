"""The user's stores as one session of several uses them: nothing spoilt goes in, nothing in use comes out.

Apart from the stores, which know no sessions, and from a sweep, which is the same beside others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectui.lab.neighbours import Neighbours
from spectui.store.baselines import Baseline, BaselineKey, BaselineStore
from spectui.store.paths import Folders
from spectui.store.records import Sweep
from spectui.store.results import ResultStore


class QuietBaselines(BaselineStore):
    """Remembers no plain speed that neighbours disturbed since the one before, or since a measurement began."""

    def __init__(self, folders: Folders, neighbours: Neighbours) -> None:
        super().__init__(folders.baselines)
        self._neighbours = neighbours

    def put(self, key: BaselineKey, baseline: Baseline) -> None:
        """As BaselineStore's. Raises UsageError for what was disturbed."""
        self._neighbours.require_undisturbed()
        super().put(key, baseline)


class FreeSweeps(ResultStore):
    """Offers no sweep to be resumed that a neighbour runs."""

    def __init__(self, folders: Folders, neighbours: Neighbours) -> None:
        super().__init__(folders.results)
        self._neighbours = neighbours

    def unfinished_sweep(self, plan: Mapping[str, Any]) -> Sweep | None:
        """As ResultStore's, but None for one that runs."""
        found = super().unfinished_sweep(plan)
        return None if found is None or found.id in self._neighbours.sweeps else found
