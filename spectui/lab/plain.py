"""Finds the plain speed for a session: recalls it, or measures it on a server that does not speculate.

Apart from the session, whose lifecycle it does not know: a server that it starts is handed over while it runs, so
that the session can show it and end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from spectui.core.profile import TuningProfile
from spectui.core.segment import Segment, SpeedEstimate
from spectui.errors import UsageError
from spectui.lab import baseline
from spectui.lab.launcher import Launcher, LaunchPlan
from spectui.lab.server import AttachedServer, LaunchedServer, Server
from spectui.lab.workloads import Workload, load_workload
from spectui.store.baselines import BaselineKey, BaselineStore


class PlainSpeed:
    """on_token is told of tokens as they arrive, on_note what is going on in a few words."""

    def __init__(
        self,
        *,
        launcher: Launcher,
        store: BaselineStore,
        api_key: str | None,
        on_token: Callable[[int, float], None],
        on_note: Callable[[str], None],
    ) -> None:
        self._launcher = launcher
        self._store = store
        self._api_key = api_key
        self._on_token = on_token
        self._on_note = on_note
        self._measured_here: set[BaselineKey] = set()

    async def recall(self, profile: TuningProfile) -> tuple[SpeedEstimate, str] | None:
        """A stated speed, or the one measured before under the same conditions, with where it comes from."""
        if profile.baseline.tokens_per_second is not None:
            return baseline.given(profile.baseline.tokens_per_second), "given"
        if profile.attached:
            return None
        plan = await self._launcher.plan(profile.without_speculation())
        workload = await asyncio.to_thread(load_workload, profile.traffic)
        key = baseline.key_for(plan, workload)
        speed = await asyncio.to_thread(baseline.remembered, self._store, key)
        if speed is None:
            return None
        return speed, "measured" if key in self._measured_here else "remembered"

    async def measure(self, plan: LaunchPlan, server: LaunchedServer, log_file: Path | None) -> SpeedEstimate:
        """Start `server`, made from a plan without speculation, measure and remember it. Ends nothing."""
        self._on_note("baseline: starting without speculation")
        workload = await asyncio.to_thread(load_workload, plan.profile.traffic)
        await server.start(log_file=log_file)
        speed, measured = await self._on(server, workload, plan.profile)
        key = baseline.key_for(plan, workload)
        await asyncio.to_thread(baseline.remember, self._store, key, speed, measured)
        self._measured_here.add(key)
        return speed

    async def measure_second(self, profile: TuningProfile, url: str) -> SpeedEstimate:
        """Measure on somebody's second server. Raises UsageError when that one speculates too."""
        plain = profile.without_speculation().with_server(url=url)
        self._on_note(f"baseline: asking {url}")
        second = AttachedServer(plain, api_key=self._api_key)
        try:
            await second.connect()
            if second.speculating:
                raise UsageError(f"{url} speculates itself, so it is no baseline: name a server without")
            workload = await asyncio.to_thread(load_workload, plain.traffic)
            speed, _ = await self._on(second, workload, plain)
        finally:
            await second.stop()
        return speed

    async def _on(
        self, server: Server, workload: Workload, plain: TuningProfile
    ) -> tuple[SpeedEstimate, Segment]:
        def progress(requests: int, speed: SpeedEstimate | None) -> None:
            so_far = f", {speed.aggregate.value:.1f} tokens/s" if speed else ""
            self._on_note(f"baseline: {requests} requests{so_far}")

        self._on_note("baseline: warming up")
        return await baseline.measure_plain(
            server, workload, plain, on_token=self._on_token, on_progress=progress
        )
