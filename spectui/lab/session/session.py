"""One session: the commands for its server, its settings and its traffic, and one value that says how they are.

Commands return at once. Those that start or stop a server run one at a time: a newer one cancels an older one,
so that a slow load never holds the user up. Nothing here knows a screen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from spectui.core.bet.baseline import given
from spectui.core.profile import OFF, BaselineSettings, TuningProfile
from spectui.core.verdict.verdict import Change, Verdict
from spectui.core.views.snapshot import MachineView, ServerState, ServerView, TrafficState
from spectui.errors import SpectuiError, UsageError
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.session.device_loan import DeviceLoan
from spectui.lab.session.failures import SessionFailures
from spectui.lab.session.live_readings import LiveReading
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.session.operations import Operations
from spectui.lab.session.session_server import SessionServer
from spectui.lab.session.staging import SessionSettings, changed
from spectui.llama.http.address import port_of
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from spectui.store.results import ResultStore

_PATIENCE: Final = 2.0
"""Seconds that the results wait for another program's change: the end of a session waits for them."""
_LOG_LINES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReading:
    """A session at one moment: all that anybody outside reads of it."""

    t: float
    """Seconds since the session began."""
    server: ServerView
    port: int | None
    """Of the server that runs or is attached to."""
    settings: SessionSettings
    coming: bool
    """Whether a server with the staged settings is starting."""
    traffic: TrafficState
    note: str
    """What is going on, in a few words."""
    lent_to: str
    """Who has the device while the server or the traffic is down; else empty."""
    live: LiveReading
    verdict: Verdict
    log: tuple[str, ...]
    """The server's last lines; untrusted."""


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
        self.launcher = launcher or Launcher(environ=dict(os.environ if environ is None else environ))
        self.failures = SessionFailures(on_notice)
        self.recorder = Recorder(
            ResultStore(folders.results, patience=_PATIENCE), say=self.failures.on_notice
        )
        self._clock = clock
        self._began = clock()
        self.server = SessionServer(
            profile,
            launcher=self.launcher,
            failures=self.failures,
            neighbours=self.neighbours,
            recorder=self.recorder,
            store=BaselineStore.default(folders),
            api_key=api_key,
            t=lambda: clock() - self._began,
            clock=clock,
            log_file=log_file,
        )
        self._staging = self.server.staging
        self._operations = Operations(self.failures.take)
        self.device = DeviceLoan(self.server, self._operations, self.neighbours)

    @property
    def settings(self) -> SessionSettings:
        """What is staged and what runs."""
        return self._staging.settings

    def reading(self, machine: MachineView, *, whole: bool = True) -> SessionReading:
        """This moment. machine: as far as it is known; whole: whether curve and log are wanted as well."""
        now, server, staged = self._clock(), self.server.current, self._staging.staged
        view = server.view() if server is not None else self._no_server()
        live = self.server.readings.read(
            t=now - self._began, now=now, drafting=server.drafting if server else None, curve=whole
        )
        log = server.log_tail(_LOG_LINES) if whole and server is not None else ()
        return SessionReading(
            t=now - self._began,
            server=view,
            port=server.plan.port if isinstance(server, LaunchedServer) else port_of(staged.server.url),
            settings=self._staging.settings,
            coming=self.server.starting and server is not None and server.profile == staged,
            traffic=self.server.traffic_state,
            note=self.server.note,
            lent_to=self.device.lent_to,
            live=live,
            verdict=self._verdict(live, view, machine),
            log=self.failures.log or log,
        )

    def open(self, *, traffic: bool, baseline_first: bool = False) -> None:
        """Start or attach to what the profile describes. baseline_first: measure the baseline before."""
        self.server.wants_traffic = traffic
        self._operations.urgent(lambda: self._open(baseline_first=baseline_first))

    def restart(self) -> None:
        """Restart with the staged settings. Raises UsageError for a server that we did not start."""
        self._require_own()
        profile = self._staging.staged
        self._operations.urgent(lambda: self.server.launch(profile))

    def undo(self) -> None:
        """Drop staged changes; without any, restart with the settings that ran before.

        Raises UsageError, with nothing changed, where that would restart a server that we did not start.
        """
        if self._staging.can_undo and not self._staging.changes:
            self._require_own()
        previous = self._staging.undo()
        if previous is None:
            self._forget_refusals()
        else:
            self._operations.urgent(lambda: self.server.launch(previous, back=True))

    def apply(self, change: Change) -> None:
        """Stage an advised change and restart with it.

        Raises UsageError for a server that we did not start: there it is staged only, to be exported.
        """
        self.stage(lambda p: changed(p, change))
        self.restart()

    def stage(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change the staged settings; nothing restarts."""
        self._staging.stage(change)
        self._forget_refusals()

    def apply_now(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change sampling or traffic at once; what is in flight is dropped, a new segment begins."""
        if change(self._staging.staged) == self._staging.staged:
            return
        self._staging.apply_now(change)
        if self.server.measuring and not self._staging.staged.attached:
            # What is being measured is no longer what is asked for.
            self.measure_baseline(force=False)
        else:
            self._operations.patient(self.server.resume)

    def toggle_traffic(self) -> None:
        """Start the traffic, or end it; on a lost server of somebody else, look whether it is back."""
        server, staged = self.server, self._staging.staged
        gone = server.current is None or server.current.state is ServerState.GONE
        lost = gone and staged.attached
        server.wants_traffic = lost or not server.wants_traffic
        self._operations.patient((lambda: server.attach(self._staging.staged)) if lost else server.resume)

    def measure_baseline(self, *, force: bool) -> None:
        """Find the baseline: given, remembered, from a second server, or by a restart without speculation."""
        self._operations.urgent(lambda: self._find_baseline(force=force))

    def give_baseline(self, settings: BaselineSettings) -> None:
        """Take the baseline from a number or a second server."""
        self._staging.apply_now(lambda p: replace(p, baseline=settings))
        self.measure_baseline(force=True)

    def probe(self) -> None:
        """Probe verification: our own server together with its baseline, a foreign one as it is."""
        if self._staging.staged.attached:
            self._operations.urgent(self._probe_attached)
        else:
            self.measure_baseline(force=True)

    async def settled(self) -> None:
        """Wait until no command is at work."""
        await self._operations.settled()

    async def aclose(self) -> None:
        """End traffic and our own server."""
        await self._operations.aclose()
        await self.server.aclose()

    def _require_own(self) -> None:
        if self._staging.staged.attached:
            raise UsageError("spectui did not start this server and will not restart it: see x")

    def _forget_refusals(self) -> None:
        """Settings that could not be started were changed: a server that runs on is well again."""
        if self.server.alive:
            self.failures.clear()

    async def _open(self, *, baseline_first: bool) -> None:
        profile = self._staging.staged
        if profile.attached:
            await self.server.attach(profile)
        elif baseline_first and profile.speculation.mode != OFF and not await self.server.recall(profile):
            await self._measure_and_launch(profile)
        else:
            await self.server.launch(profile)

    async def _find_baseline(self, *, force: bool) -> None:
        profile = self._staging.running or self._staging.staged
        stated = profile.baseline
        if stated.tokens_per_second is not None and (profile.attached or not force):
            self.server.readings.set_baseline(given(stated.tokens_per_second))
        elif stated.url is not None:
            await self.server.measure_second(profile, stated.url)
        elif profile.attached:
            raise UsageError(
                "spectui will not restart a server that it did not start: give its plain speed, or a second "
                "server's address, as the baseline"
            )
        elif force or not await self.server.recall(profile):
            await self._measure_and_launch(profile)

    async def _measure_and_launch(self, profile: TuningProfile) -> None:
        """Measure the baseline, and start `profile` whatever came of it; what ran on all the time runs on.

        A profile that cannot be started needs no baseline.
        """
        await self.launcher.plan(profile)
        problem: SpectuiError | None = None
        try:
            self.neighbours.require_quiet()
            await self.server.measure_baseline(await self.launcher.plan(profile.without_speculation()))
        except SpectuiError as error:
            problem = error
        if self.server.alive:
            await self.server.resume()
        else:
            await self.server.launch(profile)
        if problem is not None:
            self.failures.no_baseline(problem)

    async def _probe_attached(self) -> None:
        server, readings = self.server.current, self.server.readings
        if server is None or not server.alive:
            raise UsageError("there is no server to probe")
        if server.speculating:
            raise UsageError(
                "this server speculates, and its draft would read the probe's tokens too: name one without "
                "speculation as the baseline (b)"
            )
        if server.speculating is None:
            self.failures.on_notice("/slots is off: if this server speculates after all, V reads high")
        known = readings.baseline is not None
        await self.server.stop_traffic()
        try:
            await self.server.probe(server)
            if not known:
                self.failures.on_notice("verification is probed; it counts once a baseline is known")
        finally:
            await self.server.resume()

    def _no_server(self) -> ServerView:
        staged = self._staging.staged
        return ServerView(
            state=ServerState.FAILED if self.failures.current else ServerState.NONE,
            owned=not staged.attached,
            url=staged.server.url,
            note=self.server.note,
        )

    def _verdict(self, live: LiveReading, view: ServerView, machine: MachineView) -> Verdict:
        server, failures = self.server.current, self.failures.current
        if server is None and self.device.aside:
            return Verdict(headline=self.device.aside)
        if server is None and not failures:
            return Verdict(headline="no server yet: it is being looked at")
        if self.server.starting and not failures:
            then = "; traffic begins by itself" if self.server.wants_traffic else ""
            return Verdict(headline=f"the server starts{then}")
        traffic = self.server.traffic_state
        return verdict_of(
            live.bet,
            live.profile,
            server,
            failures=failures,
            best=live.curve.best,
            lookup=live.curve.lookup,
            traffic=traffic is not TrafficState.OFF,
            baseline_problem=self.failures.baseline,
            baseline_stale=self.server.baseline.stale(self._staging.staged),
            gpu_free_gib=_gpu_free(view, machine),
            measuring_baseline=traffic is TrafficState.BASELINE,
        )


def _gpu_free(server: ServerView, machine: MachineView) -> float | None:
    """Free GPU memory; of no concern where the server has nothing on a GPU, or runs elsewhere."""
    total, used = machine.gpu_total_gib, machine.gpu_used_gib
    on_gpu = server.target_place is not None and server.target_place.startswith("GPU")
    return total - used if on_gpu and total is not None and used is not None else None
