"""One session: a server's lives one after the other, the traffic on it, and what both say.

Commands return at once. Those that start or stop a server run one at a time: a newer one cancels an older one,
so that a slow load never holds the user up. Nothing here knows a screen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from spectui.core.bet.baseline import given
from spectui.core.profile import OFF, TuningProfile, is_ngram
from spectui.core.text import one_line
from spectui.core.verdict.verdict import Change
from spectui.core.views.snapshot import ServerState, TrafficState
from spectui.errors import ServerDied, ServerGone, SpectuiError, UsageError
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import AttachedServer, LaunchedServer, Server
from spectui.lab.session.failures import Troubles
from spectui.lab.session.live_readings import Gauge
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.session.operations import IdleWork, Operations
from spectui.lab.session.session_baseline import SessionBaseline
from spectui.lab.session.session_traffic import Sending
from spectui.lab.session.staging import Staging, changed, label_of
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from spectui.store.results import ResultStore

_PATIENCE: Final = 2.0
"""Seconds that the results wait for another program's change: the end of a session waits for them."""


class Session:
    """Owns at most one server. `aclose` leaves nothing running that was started here."""

    def __init__(
        self,
        profile: TuningProfile,
        *,
        folders: Folders,
        launcher: Launcher | None = None,
        environ: Mapping[str, str] | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
        log_file: Path | None = None,
        on_notice: Callable[[str], None] = lambda _text: None,
        neighbours: Neighbours | None = None,
    ) -> None:
        self.neighbours = neighbours or Neighbours()
        self.environ = dict(os.environ if environ is None else environ)
        self.launcher = launcher or Launcher(environ=self.environ)
        self.staging = Staging(profile)
        self._asked = profile
        """As the user gave it: what an attached server tells of itself holds for this life of it only."""
        self.gauge = Gauge(profile)
        self.server: Server | None = None
        self.troubles = Troubles(on_notice)
        self.wants_traffic = False
        self.note = ""
        self.clock = clock
        self.started_at = clock()
        self._api_key = api_key
        self.plain = SessionBaseline(
            launcher=self.launcher,
            store=BaselineStore.default(folders),
            api_key=api_key,
            on_token=lambda count, at: self.gauge.tokens_arrived(count, at, ""),
            on_begin=self.gauge.decoding_begins,
            on_note=self._say,
            on_problem=self.troubles.on_notice,
            neighbours=self.neighbours,
        )
        self._log_file = log_file
        self._operations = Operations(self.troubles.take)
        self._measuring = False
        self.recorder = Recorder(
            ResultStore(folders.results, patience=_PATIENCE), say=self.troubles.on_notice
        )
        self._sending = Sending(self.gauge, self.recorder, clock=clock, on_failure=self._lost)
        self._idle = IdleWork(lambda why: self.troubles.on_notice(f"verification could not be probed: {why}"))

    @property
    def t(self) -> float:
        """Seconds since the session began."""
        return self.clock() - self.started_at

    @property
    def traffic_state(self) -> TrafficState:
        """What the traffic does now."""
        if self._measuring:
            return TrafficState.BASELINE
        if not self._sending.on:
            return TrafficState.OFF
        return TrafficState.WARMUP if self.gauge.warming_up else TrafficState.ON

    def open(self, *, traffic: bool, baseline_first: bool = False) -> None:
        """Start or attach to what the profile describes. baseline_first: measure the plain speed before."""
        self.wants_traffic = traffic
        self._operations.urgent(lambda: self._open(baseline_first=baseline_first))

    def restart(self) -> None:
        """Restart with the staged settings. Raises UsageError for a server that we did not start."""
        self._require_own()
        profile = self.staging.staged
        self._operations.urgent(lambda: self._launch(profile))

    def undo(self) -> None:
        """Drop staged changes; without any, restart with the settings that ran before."""
        previous = self.staging.undo()
        if previous is None:
            self._forget_refusals()
            return
        self._require_own()
        self._operations.urgent(lambda: self._launch(previous, back=True))

    def apply(self, change: Change) -> None:
        """Stage an advised change, and restart with it if the server is ours."""
        self.stage(lambda p: changed(p, change))
        self.restart()

    def stage(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change the staged settings; nothing restarts."""
        self.staging.stage(change)
        self._forget_refusals()

    def apply_now(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change sampling or traffic at once; what is in flight is dropped, a new segment begins."""
        if change(self.staging.staged) == self.staging.staged:
            return
        self.staging.apply_now(change)
        if self._measuring and not self.staging.staged.attached:
            # What is being measured is no longer what is asked for.
            self.measure_baseline(force=False)
        else:
            self._operations.patient(self._resume)

    def toggle_traffic(self) -> None:
        """Start the traffic, or end it; on a lost server of somebody else, look whether it is back."""
        gone = self.server is None or self.server.state is ServerState.GONE
        lost = gone and self.staging.staged.attached
        self.wants_traffic = lost or not self.wants_traffic
        self._operations.patient((lambda: self._attach(self.staging.staged)) if lost else self._resume)

    def measure_baseline(self, *, force: bool) -> None:
        """Find the plain speed: given, remembered, from a second server, or by a restart without speculation."""
        self._operations.urgent(lambda: self._find_baseline(force=force, measure=True))

    def probe(self) -> None:
        """Probe verification: our own server together with its baseline, a foreign one as it is."""
        if self.staging.staged.attached:
            self._operations.urgent(self._probe_attached)
        else:
            self.measure_baseline(force=True)

    async def settled(self) -> None:
        """Wait until no command is at work."""
        await self._operations.settled()

    async def aclose(self) -> None:
        """End traffic and our own server."""
        await self._operations.aclose()
        await self._stop_server()
        await self._sending.aclose()

    def _require_own(self) -> None:
        if self.staging.staged.attached:
            raise UsageError("spectui did not start this server and will not restart it: see x")

    def _forget_refusals(self) -> None:
        """Settings that could not be started were changed: a server that runs on is well again."""
        if self.server is not None and self.server.alive:
            self.troubles.clear()

    async def _open(self, *, baseline_first: bool) -> None:
        profile = self.staging.staged
        if profile.attached:
            await self._attach(profile)
        elif baseline_first and profile.speculation.mode != OFF and not await self._recall(profile):
            await self._measure_and_launch(profile)
        else:
            await self._launch(profile)

    async def _attach(self, profile: TuningProfile) -> None:
        await self._stop_server()
        self.troubles.clear()
        self.gauge.new_server()
        profile = replace(profile, server=self._asked.server, speculation=self._asked.speculation)
        server = AttachedServer(profile, api_key=self._api_key)
        self.server = server
        try:
            await server.connect()
        except BaseException:
            self.server = None
            raise
        self.staging.staged = server.profile
        self.gauge.on_longer_draft = None if server.length_known else self._learn_length
        self._started(server, server.profile)
        await self._find_baseline(force=False, measure=False)
        await self._resume()

    def _learn_length(self, draft_length: int) -> None:
        """An attached server's draft length shows in its answers."""
        server, running = self.server, self.staging.running
        if server is None or running is None:
            return
        self.staging.apply_now(lambda p: p.with_speculation(draft_length=draft_length))
        server.profile = self.staging.running or running
        self._sending.know_length(server, server.profile)

    async def _launch(self, profile: TuningProfile, *, back: bool = False) -> None:
        """Replace the running server. A profile that cannot be planned leaves it running."""
        plan = await self.launcher.plan(profile)
        await self._stop_server()
        server = LaunchedServer(plan, on_exit=self._gone)
        self.server = server
        self.troubles.clear()
        self.gauge.begin(profile, None, None)
        self.gauge.set_probed(ProbeResult())
        try:
            await server.start(log_file=self._log_file)
        except BaseException:
            self.staging.ended()
            raise
        self._started(server, profile, back=back)
        await self._resume()

    def _started(self, server: Server, profile: TuningProfile, *, back: bool = False) -> None:
        self.troubles.clear()
        server.profile = self.staging.started(profile, back=back)
        self.gauge.mark(self.t, label_of(profile))

    def _gone(self, server: LaunchedServer) -> None:
        if server is self.server:
            self.troubles.ended(server)
            self.staging.ended()
            self.gauge.quiet()

    async def _resume(self) -> None:
        """Go on with what runs: traffic if it is wanted, in a new segment if the settings changed."""
        profile, server = self.staging.running, self.server
        spoilt = self.neighbours.disturbed if self.wants_traffic else ""
        if spoilt:
            self.wants_traffic = False
            self.troubles.on_notice(spoilt)
        same = self._sending.is_of(server, profile)
        if same and self.wants_traffic == (self.traffic_state is not TrafficState.OFF):
            return
        await self._stop_traffic()
        if profile is None or server is None or not server.alive:
            return
        server.profile = profile
        if not same:
            self._sending.begin(server, profile)
        if self.wants_traffic:
            self.troubles.traffic_begins()
            await self._sending.start(server, profile)
        if not same:
            await self._recall(profile)
        self._probe_while_idle(server, profile)

    async def _lost(self, server: Server, error: Exception) -> str:
        """Traffic ended by itself; returns why, in one line."""
        cause = await server.explain(error) if isinstance(error, SpectuiError) else error
        if server is self.server:
            self.troubles.take(cause)
        if isinstance(error, ServerGone) and not server.owned:
            server.state = ServerState.GONE
        # Our own server that died is started again with its traffic; any other trouble is the user's to judge.
        self.wants_traffic = self.wants_traffic and isinstance(cause, ServerDied)
        return one_line(str(cause))

    async def _stop_traffic(self) -> None:
        await self._idle.end()
        await self._sending.stop()

    async def _stop_server(self) -> None:
        await self._stop_traffic()
        self._sending.end()
        server, self.server = self.server, None
        if server is not None:
            await server.stop()

    async def _find_baseline(self, *, force: bool, measure: bool) -> None:
        profile = self.staging.running or self.staging.staged
        stated = profile.baseline
        if stated.tokens_per_second is not None and (profile.attached or not force):
            self.gauge.set_baseline(given(stated.tokens_per_second))
        elif not measure:
            return
        elif stated.url is not None:
            await self._measure_second(profile, stated.url)
        elif profile.attached:
            raise UsageError(
                "spectui will not restart a server that it did not start: give its plain speed, or a second "
                "server's address, as the baseline"
            )
        elif force or not await self._recall(profile):
            await self._measure_and_launch(profile)

    async def _measure_and_launch(self, profile: TuningProfile) -> None:
        """Measure the plain speed, and start `profile` whatever came of it; what ran on all the time runs on.

        A profile that cannot be started needs no baseline.
        """
        await self.launcher.plan(profile)
        problem: SpectuiError | None = None
        try:
            self.neighbours.require_quiet()
            await self._measure_baseline(profile)
        except SpectuiError as error:
            problem = error
        self._measuring, self.note = False, ""
        if self.server is None or not self.server.alive:
            await self._launch(profile)
        else:
            await self._resume()
        if problem is not None:
            self.troubles.no_baseline(problem)

    async def _recall(self, profile: TuningProfile) -> bool:
        """Judge against what is known without measuring, under these very conditions."""
        known = await self.plain.recall(profile)
        self.gauge.set_baseline(known)
        return known is not None

    async def _measure_baseline(self, profile: TuningProfile) -> None:
        """Run the same server without speculation, measure it, and end it."""
        plan = await self.launcher.plan(profile.without_speculation())
        await self._stop_server()
        server = LaunchedServer(plan)
        self.server = server
        self.troubles.clear()
        self.gauge.begin(plan.profile, None, None)
        self.gauge.mark(self.t, "baseline")
        self._measuring, self.troubles.baseline = True, ""
        try:
            self.gauge.set_baseline(await self.plain.measure(plan, server, self._log_file))
        finally:
            self._measuring, self.note = False, ""
            if self.server is server:
                self.server = None
            await server.stop()

    async def _measure_second(self, profile: TuningProfile, url: str) -> None:
        await self._stop_traffic()
        self._measuring, self.troubles.baseline = True, ""
        try:
            self.gauge.set_baseline(await self.plain.measure_second(profile, url))
        except SpectuiError as error:
            self.troubles.no_baseline(error)
        finally:
            self._measuring, self.note = False, ""
        await self._resume()

    async def _probe_attached(self) -> None:
        server, plain = self.server, self.gauge.baseline
        if server is None or not server.alive:
            raise UsageError("there is no server to probe")
        if server.speculating:
            raise UsageError(
                "this server speculates, and its draft would read the probe's tokens too: name one without "
                "speculation as the baseline (b)"
            )
        if server.speculating is None:
            self.troubles.on_notice("/slots is off: if this server speculates after all, V reads high")
        await self._stop_traffic()
        try:
            await self._probe_running(server)
            if plain is None:
                self.troubles.on_notice("verification is probed; it counts once a baseline is known")
        finally:
            await self._resume()

    def _probe_while_idle(self, server: Server, profile: TuningProfile) -> None:
        """Probe a server of ours that has nothing to do; where a draft would read along, b probes."""
        alone = profile.speculation.mode == OFF or is_ngram(profile.speculation.mode)
        needed = server.owned and alone and not (self.wants_traffic or self.gauge.verification)
        if needed and self.neighbours.quiet:
            self._idle.begin(lambda: self._probe_running(server))

    async def _probe_running(self, server: Server) -> None:
        try:
            self.gauge.set_probed(await self.plain.probe(server, server.profile))
        finally:
            self.note = ""

    def _say(self, note: str) -> None:
        self.note = note
