"""Finds the baseline of a session: recalls it, or measures it on a server that does not speculate.

The server is made by the session, which shows it while it runs and ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.segment import SpeedEstimate
from spectui.core.profile import TuningProfile
from spectui.core.text import counted
from spectui.lab.measuring.baseline import BaselineMeasurer, key_for, remembered
from spectui.lab.measuring.ngram_replay import sizes_for
from spectui.lab.measuring.probe import ProbeResult, probe_points
from spectui.lab.measuring.probe import probe as run_probe
from spectui.lab.servers.launcher import Launcher, LaunchPlan
from spectui.lab.servers.server import AttachedServer, LaunchedServer, Server
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.workloads.workloads import load_workload
from spectui.llama.http.address import same_origin
from spectui.store.baselines import BaselineKey, BaselineStore


class SessionBaseline:
    """on_token is told of tokens as they arrive, on_note what is going on in a few words.

    on_problem: told, in one line, what went wrong beside a speed that was measured all the same.
    neighbours: asked whether what is measured on a server of ours is its own speed.
    """

    def __init__(
        self,
        *,
        launcher: Launcher,
        store: BaselineStore,
        api_key: str | None,
        on_token: Callable[[int, float], None],
        on_begin: Callable[[float], None],
        on_note: Callable[[str], None],
        on_problem: Callable[[str], None],
        neighbours: Neighbours,
    ) -> None:
        self._launcher = launcher
        self._store = store
        self._api_key = api_key
        self._on_token = on_token
        self._on_begin = on_begin
        self._on_note = on_note
        self._on_problem = on_problem
        self._neighbours = neighbours
        self._measured: dict[BaselineKey, Baseline] = {}
        """What was measured here, whether or not the store could keep it."""
        self._second: dict[tuple[object, ...], Baseline] = {}
        """What second servers gave, by the conditions."""

    async def recall(self, profile: TuningProfile) -> Baseline | None:
        """The speed measured before under the same conditions, with where it comes from, or a stated one.

        What was measured in this session beats what is stated, and that what was measured in another.
        """
        stated = profile.baseline.tokens_per_second
        if stated is not None and (profile.attached or not self._measured):
            return given(stated)
        if profile.baseline.url is not None:
            return self._second.get(_conditions(profile, profile.baseline.url))
        if profile.attached:
            return None
        plan = await self._launcher.plan(profile.without_speculation())
        workload = await asyncio.to_thread(load_workload, profile.traffic)
        key = key_for(plan, workload)
        measured = self._measured.get(key)
        if measured is not None:
            return measured
        if stated is not None:
            return given(stated)
        return await asyncio.to_thread(remembered, self._store, key)

    def stale(self, profile: TuningProfile) -> str:
        """Why what a second server gave does not count under these conditions; empty where there is nothing."""
        url = profile.baseline.url
        if url is None or not self._second or _conditions(profile, url) in self._second:
            return ""
        return "the second server was measured under other conditions (workload, temperature or requests at once)"

    async def measure(self, plan: LaunchPlan, server: LaunchedServer, log_file: Path | None) -> Baseline:
        """Start `server`, made from a plan without speculation, measure, probe and remember it. Ends nothing.

        Raises UsageError where the server speculates all the same, or a neighbour disturbs the measurement.
        """
        self._on_note("baseline: starting without speculation")
        workload = await asyncio.to_thread(load_workload, plan.profile.traffic)
        await server.start(log_file=log_file)
        self._neighbours.require_quiet()
        measurer = self._measurer(
            server,
            plan.profile,
            sizes=sizes_for(server, plan.profile.traffic),
            plan=plan,
            store=self._store,
            check=self._neighbours.require_undisturbed,
        )
        found = await measurer.measure(plan.profile, workload, self._progress)
        self._measured[key_for(plan, workload)] = found
        return found

    async def measure_second(self, profile: TuningProfile, url: str) -> Baseline:
        """Measure on somebody's second server. Raises UsageError when that one speculates too."""
        other = profile.without_speculation().with_server(url=url)
        self._on_note(f"baseline: asking {url}")
        # A key belongs to one server: another address gets none.
        key = self._api_key if profile.attached and same_origin(profile.server.url or "", url) else None
        second = AttachedServer(other, api_key=key)
        try:
            await second.connect()
            measurer = self._measurer(second, other)
            workload = await asyncio.to_thread(load_workload, other.traffic)
            found = await measurer.measure(other, workload, self._progress)
        finally:
            await second.stop()
        self._second[_conditions(profile, url)] = found
        return found

    async def probe(self, server: Server, profile: TuningProfile) -> ProbeResult:
        """V(n) on a server that does not speculate.

        Raises ServerError where it cannot be probed, UsageError as soon as a neighbour disturbs it.
        """

        def probing(done: int, points: int) -> None:
            self._neighbours.require_undisturbed()
            self._probing(done, points)

        self._neighbours.require_quiet()
        return await run_probe(server.client, probe_points(profile), on_progress=probing)

    def _measurer(self, server: Server, profile: TuningProfile, **how: Any) -> BaselineMeasurer:
        measurer = BaselineMeasurer(
            server=server,
            tokens=probe_points(profile),
            on_problem=self._on_problem,
            on_probe=self._probing,
            on_token=self._on_token,
            on_begin=self._on_begin,
            **how,
        )
        self._on_note("baseline: warming up")
        return measurer

    def _probing(self, done: int, points: int) -> None:
        self._on_note(f"probing verification: {done} of {points}")

    def _progress(self, requests: int, speed: SpeedEstimate | None) -> None:
        so_far = f", {speed.aggregate.value:.1f} tokens/s" if speed else ""
        self._on_note(f"baseline: {counted(requests, 'request')}{so_far}")


def _conditions(profile: TuningProfile, url: str) -> tuple[object, ...]:
    """What the speed of a second server depends on, as far as it is ours to choose."""
    return url, profile.sampling, profile.traffic
