"""The server of a session: how it starts or is attached to, answers the session's traffic, and ends.

At most one at a time. Whoever calls sees to it that one call ends before the next begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from spectui.core.profile import OFF, TuningProfile, is_ngram
from spectui.core.text import one_line
from spectui.core.views.snapshot import ServerState, TrafficState
from spectui.errors import ServerDied, ServerGone, SpectuiError
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.servers.launcher import Launcher, LaunchPlan
from spectui.lab.servers.server import AttachedServer, LaunchedServer, Server
from spectui.lab.session.failures import SessionFailures
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.session.operations import IdleWork
from spectui.lab.session.session_baseline import SessionBaseline
from spectui.lab.session.session_traffic import SessionTraffic
from spectui.lab.session.staging import Staging, label_of
from spectui.store.baselines import BaselineStore

_STARTING: Final = frozenset({ServerState.STARTING, ServerState.LOADING})


class SessionServer:
    """`current` is None while there is none. t: seconds since the session began; clock: the traffic's."""

    def __init__(
        self,
        profile: TuningProfile,
        *,
        launcher: Launcher,
        failures: SessionFailures,
        neighbours: Neighbours,
        recorder: Recorder,
        store: BaselineStore,
        api_key: str | None,
        t: Callable[[], float],
        clock: Callable[[], float],
        log_file: Path | None,
    ) -> None:
        self.current: Server | None = None
        self.staging = Staging(profile)
        self._traffic = SessionTraffic(
            profile, recorder, clock=clock, on_failure=self._lost, on_longer_draft=self._learn_length
        )
        self.readings = self._traffic.readings
        self.baseline = SessionBaseline(
            launcher=launcher,
            store=store,
            api_key=api_key,
            on_token=lambda count, at: self.readings.tokens_arrived(count, at, ""),
            on_begin=self.readings.decoding_begins,
            on_note=self._say,
            on_problem=failures.on_notice,
            neighbours=neighbours,
        )
        self.wants_traffic = False
        self.measuring = False
        """Whether a baseline is measured."""
        self.note = ""
        """What is going on, in a few words."""
        self._asked = profile
        """As the user gave it: what an attached server tells of itself holds until it is attached to anew."""
        self._launcher = launcher
        self._failures = failures
        self._neighbours = neighbours
        self._api_key = api_key
        self._t = t
        self._log_file = log_file
        self._idle = IdleWork(lambda why: failures.on_notice(f"verification could not be probed: {why}"))

    @property
    def starting(self) -> bool:
        """Whether it starts or loads."""
        return self.current is not None and self.current.state in _STARTING

    @property
    def alive(self) -> bool:
        """Whether there is one that answers."""
        return self.current is not None and self.current.alive

    @property
    def traffic_state(self) -> TrafficState:
        """What the traffic does now."""
        if self.measuring:
            return TrafficState.BASELINE
        if not self._traffic.on:
            return TrafficState.OFF
        return TrafficState.WARMUP if self.readings.warming_up else TrafficState.ON

    async def attach(self, profile: TuningProfile) -> None:
        """Attach to what the profile names, in place of what there is. Raises SpectuiError."""
        await self.stop()
        self._failures.clear()
        self.readings.new_server()
        profile = replace(profile, server=self._asked.server, speculation=self._asked.speculation)
        server = AttachedServer(profile, api_key=self._api_key)
        self.current = server
        try:
            await server.connect()
        except BaseException:
            self.current = None
            raise
        self.staging.staged = server.profile
        self.readings.length_known = server.length_known
        self._started(server, server.profile)
        await self.resume()

    async def launch(self, profile: TuningProfile, *, back: bool = False) -> None:
        """Start a server in place of what runs; a profile that cannot be planned leaves that running.

        back: the settings ran before and were undone to. Raises SpectuiError.
        """
        plan = await self._launcher.plan(profile)
        await self.stop()
        server = LaunchedServer(plan, on_exit=self._gone)
        self._comes(server)
        self.readings.set_probed(ProbeResult())
        try:
            await server.start(log_file=self._log_file)
        except BaseException:
            self.staging.ended()
            raise
        self._started(server, profile, back=back)
        await self.resume()

    async def measure_baseline(self, plan: LaunchPlan) -> None:
        """Measure on a server that starts from a plan without speculation, in place of what runs, and end it."""
        await self.stop()
        server = LaunchedServer(plan)
        self._comes(server)
        self.readings.mark(self._t(), "baseline")
        self.measuring, self._failures.baseline = True, ""
        try:
            self.readings.set_baseline(await self.baseline.measure(plan, server, self._log_file))
        finally:
            self.measuring, self.note = False, ""
            if self.current is server:
                self.current = None
            await server.stop()

    async def measure_second(self, profile: TuningProfile, url: str) -> None:
        """Measure the baseline on a second server, while ours answers nothing."""
        await self.stop_traffic()
        self.measuring, self._failures.baseline = True, ""
        try:
            self.readings.set_baseline(await self.baseline.measure_second(profile, url))
        except SpectuiError as error:
            self._failures.no_baseline(error)
        finally:
            self.measuring, self.note = False, ""
        await self.resume()

    async def resume(self) -> None:
        """Go on with what runs: traffic if it is wanted, in a new segment if the settings changed."""
        profile, server = self.staging.running, self.current
        spoilt = self._neighbours.disturbed if self.wants_traffic else ""
        if spoilt:
            self.wants_traffic = False
            self._failures.on_notice(spoilt)
        same = self._traffic.is_of(server, profile)
        if same and self.wants_traffic == (self.traffic_state is not TrafficState.OFF):
            return
        await self.stop_traffic()
        if profile is None or server is None or not server.alive:
            return
        server.profile = profile
        if not same:
            self._traffic.begin(server, profile)
        if self.wants_traffic:
            self._failures.traffic_begins()
            await self._traffic.start(server, profile)
        if not same:
            await self.recall(profile)
        self._probe_while_idle(server, profile)

    async def stop_traffic(self) -> None:
        """Nothing is sent any more."""
        await self._idle.end()
        await self._traffic.stop()

    async def stop(self) -> None:
        """End the traffic, and the server where it is ours."""
        await self.stop_traffic()
        self._traffic.end()
        server, self.current = self.current, None
        if server is not None:
            await server.stop()

    async def aclose(self) -> None:
        """Stop, and wait until everything is kept."""
        await self.stop()
        await self._traffic.aclose()

    async def recall(self, profile: TuningProfile) -> bool:
        """Judge against what is known without measuring, under these very conditions; whether there is any."""
        known = await self.baseline.recall(profile)
        self.readings.set_baseline(known)
        return known is not None

    async def probe(self, server: Server) -> None:
        """Probe verification on this server, which answers nothing else. Raises SpectuiError."""
        try:
            self.readings.set_probed(await self.baseline.probe(server, server.profile))
        finally:
            self.note = ""

    def _comes(self, server: LaunchedServer) -> None:
        self.current = server
        self._failures.clear()
        self.readings.begin(server.profile, None, None)

    def _started(self, server: Server, profile: TuningProfile, *, back: bool = False) -> None:
        self._failures.clear()
        server.profile = self.staging.started(profile, back=back)
        self.readings.mark(self._t(), label_of(profile))

    def _gone(self, server: LaunchedServer) -> None:
        if server is self.current:
            self._failures.ended(server)
            self.staging.ended()
            self.readings.quiet()

    async def _lost(self, server: Server, error: Exception) -> str:
        """Traffic ended by itself; returns why, in one line."""
        cause = await server.explain(error) if isinstance(error, SpectuiError) else error
        if server is self.current:
            self._failures.take(cause)
        if isinstance(error, ServerGone) and not server.owned:
            server.state = ServerState.GONE
        # Our own server that died is started again with its traffic; any other trouble is the user's to judge.
        self.wants_traffic = self.wants_traffic and isinstance(cause, ServerDied)
        return one_line(str(cause))

    def _learn_length(self, draft_length: int) -> None:
        """An attached server's draft length shows in its answers."""
        server, running = self.current, self.staging.running
        if server is None or running is None:
            return
        self.staging.apply_now(lambda p: p.with_speculation(draft_length=draft_length))
        server.profile = self.staging.running or running
        self._traffic.know_length(server, server.profile)

    def _probe_while_idle(self, server: Server, profile: TuningProfile) -> None:
        """Probe a server of ours that has nothing to do; where a draft would read along, b probes."""
        alone = profile.speculation.mode == OFF or is_ngram(profile.speculation.mode)
        needed = server.owned and alone and not (self.wants_traffic or self.readings.verification)
        if needed and self._neighbours.quiet:
            self._idle.begin(lambda: self.probe(server))

    def _say(self, note: str) -> None:
        self.note = note
