"""The traffic of one segment after the other: its prompts, its requests in flight, and its record in the results.

A pause does not end the segment; other settings or another server begin the next one, whose prompts go on where
that server's last segment left them: none repeats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spectui.core.profile import TuningProfile
from spectui.lab.measuring.recorder import Recorder, RunRecord
from spectui.lab.measuring.traffic import Traffic
from spectui.lab.servers.server import Server
from spectui.lab.session.live_readings import LiveReadings
from spectui.lab.workloads.workloads import PromptSequence, Workload, load_workload
from spectui.store.records import RunSummary


class SessionTraffic:
    """Keeps what was observed in `readings`.

    on_failure: told what ended the traffic by itself; its answer, one line, is kept with the segment.
    on_longer_draft: as of LiveReadings.
    """

    def __init__(
        self,
        profile: TuningProfile,
        recorder: Recorder,
        *,
        clock: Callable[[], float],
        on_failure: Callable[[Server, Exception], Awaitable[str]],
        on_longer_draft: Callable[[int], None],
    ) -> None:
        self.readings = LiveReadings(profile, on_longer_draft=on_longer_draft, on_counted=self._counted)
        self._recorder = recorder
        self._clock = clock
        self._on_failure = on_failure
        self._segment: tuple[Server, TuningProfile] | None = None
        self._prompts: PromptSequence | None = None
        self._server: Server | None = None
        self._orders: dict[tuple[str, str | None], PromptSequence] = {}
        """What this server was asked last, by workload."""
        self._task: asyncio.Task[None] | None = None
        self._record: RunRecord | None = None
        self._failure: str | None = None

    @property
    def on(self) -> bool:
        """Whether requests are sent."""
        return self._task is not None and not self._task.done()

    def is_of(self, server: Server | None, profile: TuningProfile | None) -> bool:
        """Whether the segment is one of this server with these settings."""
        return self._segment == (server, profile)

    def begin(self, server: Server, profile: TuningProfile) -> None:
        """Begin the next segment; nothing is sent yet."""
        self.end()
        self.readings.begin(profile, None, server.drafting, rereads=server.rereads)
        self._prompts = None
        if server is not self._server:
            self._server, self._orders = server, {}
        self._open(server, profile)

    def know_length(self, server: Server, profile: TuningProfile) -> None:
        """Begin the segment anew: its settings name another draft length now, which it had all along."""
        if self._record is not None:
            self._record.drop()
        self.readings.know_length(profile)
        self._open(server, profile)

    def end(self) -> None:
        """No segment any more; what it yielded is kept in the background."""
        if self._record is not None:
            self._record.end(failure=self._failure)
        self._segment = self._record = self._failure = None

    async def start(self, server: Server, profile: TuningProfile) -> None:
        """Send over the segment's prompts, after a pause where it was. Raises PromptsError."""
        if self._prompts is None:
            workload = await asyncio.to_thread(load_workload, profile.traffic)
            self._prompts = self._order(workload, profile)
        traffic = Traffic(
            server.client,
            self._prompts,
            profile,
            self.readings,
            cache_prompt=server.cache_prompt,
            clock=self._clock,
        )
        if not self.readings.length_known:
            traffic.draft_length = None
        self.readings.go_on(traffic)
        self._failure = None
        self._task = asyncio.create_task(self._send(traffic, server), name="traffic")

    async def stop(self) -> None:
        """Cancel what is in flight and wait until it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self.readings.pause(self._clock())

    async def aclose(self) -> None:
        """Wait until everything is kept."""
        await self._recorder.settled()

    def _order(self, workload: Workload, profile: TuningProfile) -> PromptSequence:
        """The requests of a segment, behind those that the server answered before."""
        traffic = profile.traffic
        key = traffic.workload, traffic.prompts
        before = self._orders.get(key)
        self._orders[key] = PromptSequence(
            workload,
            seed=profile.sampling.seed,
            depth=traffic.depth,
            start=before.sent if before is not None else 0,
        )
        return self._orders[key]

    def _open(self, server: Server, profile: TuningProfile) -> None:
        def summary() -> RunSummary:
            return self.readings.summary(now=self._clock(), drafting=server.drafting)

        self._segment = (server, profile)
        self._record = self._recorder.begin(server, profile, summary, source="dashboard")

    def _counted(self) -> None:
        if self._record is not None:
            self._record.update()

    async def _send(self, traffic: Traffic, server: Server) -> None:
        try:
            if not server.owned:
                await server.refresh()
            await traffic.run()
        except Exception as error:  # noqa: BLE001  whoever hears of it shows it; nobody looks at a task's exception
            self._failure = await self._on_failure(server, error)
        finally:
            self.readings.quiet()
