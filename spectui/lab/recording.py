"""Keeps what is measured while it is measured: a run when it begins, with each request, and when it ends.

Apart from the measuring, which it must never stop: a store that cannot be used is said once per run and costs
nothing else. Writing happens off the event loop, since the disk may be slow while answers stream in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectui.core.profile import TuningProfile
from spectui.core.segment import SpeedEstimate
from spectui.core.snapshot import BetView
from spectui.errors import StoreError
from spectui.lab.machine import this_machine
from spectui.lab.server import LaunchedServer, Server
from spectui.store.baselines import FileIdentity
from spectui.store.records import Machine, RunConditions, RunSummary
from spectui.store.results import ResultStore


class Recorder:
    """Begins the records of runs. say: told in one line why something is not kept; clock: seconds since 1970."""

    def __init__(
        self, store: ResultStore, *, say: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._say = say
        self._clock = clock
        self._machine: Machine | None = None

    async def begin(self, server: Server, profile: TuningProfile) -> RunRecord:
        """Keep that a run of this profile begins on this server."""
        record = RunRecord(self._store, say=self._say, clock=self._clock)
        await record.begin(await asyncio.to_thread(self._conditions, server, profile))
        return record

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
    """The record of one run. Made by `Recorder.begin`; one change is written at a time, the latest counts."""

    def __init__(self, store: ResultStore, *, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._store = store
        self._say = say
        self._clock = clock
        self._run: int | None = None
        self._latest: RunSummary | None = None
        self._writer: asyncio.Task[None] | None = None

    async def begin(self, conditions: RunConditions) -> None:
        """Keep that it began."""
        self._run = await self._kept(self._store.begin_run, conditions, at=self._clock())

    def update(self, summary: RunSummary) -> None:
        """Keep what it yielded so far, soon."""
        self._latest = summary
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="record")

    async def end(self, summary: RunSummary, *, failure: str | None = None) -> None:
        """Keep what it yielded, that it ended, and what ended it early."""
        self._latest = None
        if self._writer is not None:
            await self._writer
        if self._run is not None:
            await self._kept(self._store.end_run, self._run, summary, at=self._clock(), failure=failure)

    async def _write(self) -> None:
        while self._run is not None and self._latest is not None:
            summary, self._latest = self._latest, None
            await self._kept(self._store.update_run, self._run, summary)

    async def _kept(self, change: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What the store says; after a failure the record is given up, so that it is said once."""
        try:
            return await asyncio.to_thread(change, *arguments, **named)
        except StoreError as error:
            self._run = None
            self._say(f"this result is not kept: {error}")
            return None


def summary_of(bet: BetView, speed: SpeedEstimate | None) -> RunSummary:
    """A segment's numbers as they are kept. speed: the segment's own, with its interval."""
    return RunSummary(
        requests=bet.requests,
        passes=bet.passes,
        tokens=bet.tokens,
        drafted=bet.drafted,
        accepted=bet.accepted,
        tokens_per_second=speed.aggregate if speed else None,
        time_to_first_token_ms=bet.time_to_first_token_ms,
        alpha=bet.alpha,
        acceptance_ratio=bet.acceptance_ratio,
        tokens_per_pass=bet.tokens_per_pass,
        drafted_per_pass=bet.drafted_per_pass,
        survival=tuple(row.survival for row in bet.survival),
        pass_ms=bet.pass_ms,
        round_cost=bet.pass_cost,
        costs=replace(bet.costs, v=dict(bet.costs.v)),
        stalled=bet.stalled,
        baseline=bet.baseline,
        baseline_source=bet.baseline_source,
        speedup_actual=bet.speedup_actual,
        speedup_textbook=bet.speedup_textbook,
        speedup_predicted=bet.speedup_predicted,
    )


def _identity(path: str | Path | None) -> FileIdentity | None:
    try:
        return None if path is None else FileIdentity.of(path)
    except OSError:
        return None
