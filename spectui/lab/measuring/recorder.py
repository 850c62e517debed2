"""Keeps what is measured while it is measured: a run from its first request on, again with each, and when it ends.

It must never stop the measuring: a store that cannot be used is said once, and from then on nothing is kept; a
busy one is tried again with the next request, and a run that cannot be kept costs no other. Writing happens off
the event loop, since the disk may be slow while answers stream in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import SpeedEstimate
from spectui.core.profile import TuningProfile
from spectui.core.views.run_list import RunSource
from spectui.errors import RecordError, SpectuiError, StoreBusy, StoreError
from spectui.lab.servers.machine import this_machine
from spectui.lab.servers.server import LaunchedServer, Server
from spectui.store.baselines import FileIdentity
from spectui.store.records import Machine, RunConditions, RunSummary
from spectui.store.results import ResultStore

_T = TypeVar("_T")


class Recorder:
    """Begins the records of runs. store: None keeps nothing, as after a failure.

    say: told in one line why nothing is kept any more; clock: seconds since 1970.
    """

    def __init__(
        self,
        store: ResultStore | None = None,
        *,
        say: Callable[[str], None] = lambda _line: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self.say = say
        self.clock = clock
        self._machine: Machine | None = None
        self._busy = False
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(
        self, server: Server, profile: TuningProfile, read: Callable[[], RunSummary], *, source: RunSource
    ) -> RunRecord:
        """A run of this profile begins on this server; read: what it yielded so far, asked on the event loop."""
        return RunRecord(self, lambda: self._conditions(server, profile), read, source=source)

    @asynccontextmanager
    async def recorded(
        self, server: Server, profile: TuningProfile, read: Callable[[], RunSummary], *, source: RunSource
    ) -> AsyncIterator[RunRecord]:
        """As `begin`, for a run that ends with the block."""
        record = self.begin(server, profile, read, source=source)
        failure: str | None = "interrupted"
        try:
            yield record
            failure = None
        except SpectuiError as error:
            failure = str(error)
            raise
        finally:
            await record.end(failure=failure)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Write in the background, one task for each piece of work."""
        task = asyncio.create_task(work, name="record")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait until everything is written."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def kept(self, change: Callable[[ResultStore], _T]) -> _T | None:
        """What the store says to a change; None where it was not made.

        What keeps every run from being kept is said once. Raises RecordError for what concerns one run alone.
        """
        store = self._store
        if store is None:
            return None
        try:
            answer = await asyncio.to_thread(change, store)
        except RecordError:
            raise
        except StoreBusy as error:
            if not self._busy:
                self._busy = True
                self.say(f"results are not kept for now: {error}")
            return None
        except StoreError as error:
            # Another run may have failed meanwhile, and said so.
            if self._store is not None:
                self._store = None
                self.say(f"results are not kept: {error}")
            return None
        self._busy = False
        return answer

    def _conditions(self, server: Server, profile: TuningProfile) -> RunConditions:
        found = RunConditions(profile=profile, build=server.build)
        if not isinstance(server, LaunchedServer):
            return found
        if self._machine is None:
            self._machine = this_machine()
        return replace(
            found,
            argv=server.plan.argv,
            binary=_identity(server.plan.binary),
            model=_identity(profile.server.model),
            draft=_identity(found.draft_path),
            machine=self._machine,
        )


class RunRecord:
    """The record of one run, made by `Recorder.begin`. A run without a request that ended leaves none.

    One change is written at a time; what is read when its turn comes counts.
    """

    def __init__(
        self,
        recorder: Recorder,
        conditions: Callable[[], RunConditions],
        read: Callable[[], RunSummary],
        *,
        source: RunSource,
    ) -> None:
        self._recorder = recorder
        self._conditions = conditions
        self._read = read
        self._source = source
        self._started_at = recorder.clock()
        self._run: int | None = None
        self._due = False
        self._refused = False
        self._writer: asyncio.Task[None] | None = None

    @property
    def number(self) -> int | None:
        """In the results store; None as long as it is not kept."""
        return self._run

    def update(self) -> None:
        """A request ended: keep what there is so far, soon."""
        self._due = True
        if self._writer is None or self._writer.done():
            self._writer = self._recorder.spawn(self._write())

    def end(self, *, failure: str | None = None) -> asyncio.Task[None]:
        """Keep what the run yielded until now, that it ended, and what ended it early; returns what ends then."""
        self._due = False
        return self._recorder.spawn(self._end(self._read(), failure))

    def drop(self) -> asyncio.Task[None]:
        """Keep nothing of it; returns what ends when nothing is left."""
        self._due = False
        return self._recorder.spawn(self._drop())

    async def _write(self) -> None:
        while self._due:
            self._due = False
            await self._keep(self._read())

    async def _end(self, summary: RunSummary, failure: str | None) -> None:
        await self._written()
        if self._run is None:
            await self._keep(summary)
        run, at = self._run, self._recorder.clock()
        if run is not None:
            await self._kept(lambda store: store.end_run(run, summary, at=at, failure=failure))

    async def _drop(self) -> None:
        await self._written()
        run = self._run
        if run is not None:
            with suppress(RecordError):
                await self._recorder.kept(lambda store: store.remove_run(run))

    async def _written(self) -> None:
        if self._writer is not None:
            await self._writer

    async def _keep(self, summary: RunSummary) -> None:
        run = self._run
        if run is not None:
            await self._kept(lambda store: store.update_run(run, summary))
        elif summary.requests:
            self._run = await self._kept(lambda store: self._begun(store, summary))

    async def _kept(self, change: Callable[[ResultStore], _T]) -> _T | None:
        """As the recorder's; what concerns this run alone is said once, and the next change may succeed."""
        try:
            return await self._recorder.kept(change)
        except RecordError as error:
            if not self._refused:
                self._refused = True
                self._recorder.say(f"this run is not kept: {error}")
            return None

    def _begun(self, store: ResultStore, summary: RunSummary) -> int:
        return store.begin_run(self._conditions(), summary, at=self._started_at, source=self._source)


def summary_of(bet: BetReading, speed: SpeedEstimate | None) -> RunSummary:
    """A reading as it is kept. speed: the segment's own, with its interval."""
    same = {each.name: getattr(bet, each.name) for each in fields(RunSummary) if hasattr(bet, each.name)}
    return RunSummary(
        **{
            **same,
            "tokens_per_second": speed.aggregate if speed else None,
            "survival": tuple(row.survival for row in bet.survival),
            "round_cost": bet.pass_cost,
            "costs": replace(bet.costs, v=dict(bet.costs.v)),
        }
    )


def _identity(path: str | Path | None) -> FileIdentity | None:
    try:
        return None if path is None else FileIdentity.of(path)
    except OSError:
        return None
