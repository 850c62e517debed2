"""The other sessions of this program, as far as one that measures has to know of them.

No session knows another: who sees all of them tells, and who measures asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectui.errors import UsageError
from spectui.store.baselines import BaselineKey, BaselineStore, StoredBaseline
from spectui.store.paths import Folders
from spectui.store.records import Sweep
from spectui.store.results import ResultStore


class Neighbours:
    """Of one session. Nobody disturbs it, and nothing is swept elsewhere, until it is told otherwise."""

    def __init__(self) -> None:
        self.sweeps: frozenset[int] = frozenset()
        """Numbers of the sweeps that other sessions run now."""
        self._now = ""
        self._since = ""
        self.disturbed = ""
        """Whose measurement traffic of the session would spoil now, in a sentence; empty for nobody's."""

    def tell(self, disturbing: str, sweeps: frozenset[int] = frozenset(), *, disturbed: str = "") -> None:
        """Who disturbs this session now, and whom its traffic would disturb, as `core.views.sessions` says it."""
        self._now, self.disturbed = disturbing, disturbed
        self._since = self._since or disturbing
        self.sweeps = sweeps

    @property
    def quiet(self) -> bool:
        """Whether work that nobody asked for may use the session's devices: it is right, and spoils nothing."""
        return not (self._now or self.disturbed)

    def require_quiet(self) -> None:
        """A measurement begins. Raises UsageError while somebody disturbs it."""
        self._since = self._now
        _require_nobody(self._now)

    def require_undisturbed(self) -> None:
        """A measurement ends, and another may begin. Raises UsageError where somebody disturbed it on the way."""
        disturbed, self._since = self._since, self._now
        _require_nobody(disturbed)

    def require_free(self, sweep: int | None) -> None:
        """Raises UsageError for a sweep that another session runs."""
        if sweep in self.sweeps:
            raise UsageError(f"sweep {sweep} runs in another session: stop it there first")


def _require_nobody(disturbing: str) -> None:
    if disturbing:
        raise UsageError(disturbing)


class QuietBaselines(BaselineStore):
    """Remembers no plain speed that neighbours disturbed since the one before, or since a measurement began."""

    def __init__(self, folders: Folders, neighbours: Neighbours) -> None:
        super().__init__(folders.baselines)
        self._neighbours = neighbours

    def put(self, key: BaselineKey, baseline: StoredBaseline) -> None:
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
