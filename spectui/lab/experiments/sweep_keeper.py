"""Keeps a sweep while it is measured: finds the one to go on with, then each cell at once, and how it ended.

Nothing of it stops the measuring: a busy store is tried again with the next cell and at the end;
one that cannot be used is said once, and from then on nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from spectui.core.sweep.grid import Cell
from spectui.core.text import one_line
from spectui.errors import StoreBusy, StoreError, UsageError
from spectui.lab.experiments.sweep_record import REST, Found, Measured, found_of, plan_of, stored, stored_key
from spectui.store.records import Sweep, SweepOwner, SweepState
from spectui.store.results import ResultStore

_A = TypeVar("_A")
_T = TypeVar("_T")


class SweepKeeper:
    """Keeps what is found, sets its number, and says in it what is not kept.

    say: told that in one line; clock: seconds since 1970.
    """

    def __init__(
        self, found: Found, results: ResultStore, *, say: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._found = found
        self._results = results
        self._say = say
        self._clock = clock
        self._plan = plan_of(found.order)
        self._begun = 0.0
        self._waiting: list[dict[str, Any]] = []
        """Arguments of `ResultStore.put_cell`, the sweep's number aside."""
        self._busy = ""
        self._writing: asyncio.Task[None] | None = None
        self.usable = True
        """Whether anything can be kept, be it later."""

    async def require_free(self, number: int | None) -> None:
        """Raises UsageError for a sweep that another program runs, StoreError for one that cannot be read."""
        if number is not None:
            _require_no(await asyncio.to_thread(self._results.owner_of, number), number)

    async def begin(self, *, fresh: bool, number: int | None) -> bool:
        """Go on with that sweep or, unless `fresh`, an unfinished one of the same order; else begin one.

        Returns whether it goes on with one: its cells are found then, without those that failed, which are tried
        again. Raises as `require_free`: to begin anew would measure all its cells again.
        """
        self._begun = self._clock()
        if number is not None:
            known: Sweep | None = await asyncio.to_thread(self._results.sweep, number)
        else:
            known = None if fresh else await self._asked(self._results.unfinished_sweep, self._plan)
        kept = None if known is None else found_of(known)
        owner = None if known is None else await self._asked(self._results.take_sweep, known.id)
        if number is not None:
            _require_no(owner, number)
        if kept is None or owner is not None:
            await self._settled()
            return False
        self._found.cells, self._found.server_seconds = kept.cells, kept.server_seconds
        self._found.number = kept.number if self.usable else None
        return True

    async def put(self, cell: Cell, measured: Measured, *, run: int | None) -> None:
        """Keep what a cell yielded. run: number of the kept run that it comes from."""
        at = self._clock()
        key = stored_key(cell, measured, at=at)
        self._waiting.append({"key": key, "result": stored(measured), "at": at, "run": run})
        await self._settled()

    async def end(self, state: SweepState, rest: Measured) -> None:
        """Keep how it ended. rest: the server seconds that belong to no cell."""
        at = self._clock()
        self._waiting.append({"key": f"{REST} {at:.3f} requests=0", "result": stored(rest), "at": at})
        await self._settled()
        number = self._found.number
        if self._busy:
            what = "this sweep" if number is None else "the last of this sweep"
            self.tell(f"{what} is not kept: {self._busy}")
        elif number is not None:
            try:
                await asyncio.to_thread(self._results.end_sweep, number, state, at=at)
            except StoreError as error:
                self.tell(f"how this sweep ended is not kept: {error}")

    def tell(self, line: str) -> None:
        """Say what is not kept; the sweep goes on."""
        self._found.unkept = one_line(line, 500)
        self._say(line)

    async def _asked(self, ask: Callable[[_A], _T | None], what: _A) -> _T | None:
        try:
            return await asyncio.to_thread(ask, what)
        except StoreError as error:
            self._failed(error)
            return None

    async def _settled(self) -> None:
        """Keep what waits; a cancelled sweep writes nothing twice, for what was begun comes to its end first."""
        if self._writing is not None:
            await asyncio.shield(self._writing)
        self._writing = asyncio.create_task(self._write(), name="keep sweep")
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        if not self.usable:
            self._waiting.clear()
            return
        try:
            if self._found.number is None:
                self._found.number = await asyncio.to_thread(
                    self._results.begin_sweep, self._plan, at=self._begun
                )
            while self._waiting:
                await asyncio.to_thread(self._results.put_cell, self._found.number, **self._waiting[0])
                del self._waiting[0]
        except StoreError as error:
            self._failed(error)
        else:
            if self._busy:
                self._busy = self._found.unkept = ""

    def _failed(self, error: StoreError) -> None:
        if not isinstance(error, StoreBusy):
            self.usable, self._busy, self._found.number = False, "", None
            self.tell(f"this sweep is not kept: {error}")
        elif not self._busy:
            self._busy = str(error)
            self.tell(f"this sweep is not kept for now: {error}")


def _require_no(owner: SweepOwner | None, number: int) -> None:
    if owner is not None:
        raise UsageError(f"sweep {number} runs in another spectui, process {owner.pid}: end it there first")
