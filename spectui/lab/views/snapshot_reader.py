"""A session -> one immutable Snapshot: the last step before the screen, and the same for any screen.

Parts that did not change keep their identity, so that whoever shows them can skip them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from spectui.core.bet.estimates import BetReading
from spectui.core.verdict.verdict import Verdict
from spectui.core.views.snapshot import (
    CurveView,
    MachineView,
    ServerState,
    ServerView,
    SettingsView,
    Snapshot,
    TrafficState,
)
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.session.lending import LendingSession
from spectui.lab.session.preview import PreviewKeeper
from spectui.lab.workloads.workloads import OWN, builtin_names
from spectui.llama.http.address import port_of

_T = TypeVar("_T")
_LOG_LINES: Final = 200
_NO_CURVE: Final = CurveView()


class SnapshotReader:
    """Reads one session, tick by tick."""

    def __init__(self, session: LendingSession, preview: PreviewKeeper) -> None:
        self._session = session
        self._preview = preview
        self._last = Snapshot()
        self._glanced = Snapshot()
        self.profile_name: str | None = None
        self.machine = MachineView()

    def read(self) -> Snapshot:
        """The session at this moment; the very same object as before where nothing changed."""
        session, last = self._session, self._last
        server = _kept(last.server, self._server())
        drafting = session.server.drafting if session.server else None
        bet = _kept(last.bet, session.gauge.read(t=session.t, now=session.clock(), drafting=drafting))
        curve = session.gauge.curve()
        snapshot = Snapshot(
            tick=last.tick,
            t=last.t,
            server=server,
            settings=_kept(last.settings, self._settings()),
            traffic=session.traffic_state,
            traffic_note=session.note,
            lent_to=session.lent_to,
            bet=bet,
            history=session.gauge.history(),
            curve=curve,
            verdict=_kept(last.verdict, self._verdict(bet, curve)),
            machine=_kept(last.machine, self.machine),
            output=session.gauge.output,
            log_tail=_kept(last.log_tail, self._log()),
        )
        if snapshot == last:
            return last
        self._last = replace(snapshot, tick=last.tick + 1, t=session.t)
        return self._last

    def glance(self) -> Snapshot:
        """What the mark of a session in the background needs: no settings, charts or texts; as cheap as can be."""
        session, last = self._session, self._glanced
        server = _kept(last.server, self._server())
        drafting = session.server.drafting if session.server else None
        bet = session.gauge.read(t=session.t, now=session.clock(), drafting=drafting)
        traffic = session.traffic_state
        glanced = Snapshot(server=server, traffic=traffic, bet=bet, verdict=self._verdict(bet, _NO_CURVE))
        if glanced != last:
            self._glanced = glanced
        return self._glanced

    async def aclose(self) -> None:
        """End the preview's work."""
        await self._preview.aclose()

    def _server(self) -> ServerView:
        session = self._session
        if session.server is not None:
            return session.server.view()
        failed = bool(session.troubles.failures)
        profile = session.staging.staged
        return ServerView(
            state=ServerState.FAILED if failed else ServerState.NONE,
            owned=not profile.attached,
            url=profile.server.url,
            note=session.note,
        )

    def _settings(self) -> SettingsView:
        session = self._session
        staging = session.staging
        server = session.server
        port = server.plan.port if isinstance(server, LaunchedServer) else port_of(staging.staged.server.url)
        preview = self._preview.follow(staging.staged, port)
        coming = self._starting and server is not None and server.profile == staging.staged
        view = SettingsView(
            running=staging.staged if coming else staging.running,
            staged=staging.staged,
            changes=() if coming else staging.changes,
            command=preview.command,
            problem=preview.problem,
            modes=preview.modes,
            environment=preview.environment,
            workloads=(*builtin_names(), OWN) if staging.staged.traffic.prompts else builtin_names(),
            drafting_known=session.gauge.drafting_known,
            drafts_vary=session.gauge.drafts_vary,
            can_undo=staging.can_undo,
            profile_name=self.profile_name,
        )
        # Nor is it known what such a server would be started with.
        return replace(view, problem="") if view.unreached else view

    @property
    def _starting(self) -> bool:
        server = self._session.server
        return server is not None and server.state in {ServerState.STARTING, ServerState.LOADING}

    def _verdict(self, bet: BetReading, curve: CurveView) -> Verdict:
        session = self._session
        if session.server is None and session.aside:
            return Verdict(headline=session.aside)
        if session.server is None and not session.troubles.failures:
            return Verdict(headline="no server yet: it is being looked at")
        if self._starting and not session.troubles.failures:
            then = "; traffic begins by itself" if session.wants_traffic else ""
            return Verdict(headline=f"the server starts{then}")
        return verdict_of(
            bet,
            session.gauge.segment.profile,
            session.server,
            failures=session.troubles.failures,
            best=curve.best,
            lookup=curve.lookup,
            traffic=session.traffic_state is not TrafficState.OFF,
            baseline_problem=session.troubles.baseline,
            baseline_stale=session.plain.stale(session.staging.staged),
            gpu_free_gib=self._gpu_free(),
            measuring_baseline=session.traffic_state is TrafficState.BASELINE,
        )

    def _gpu_free(self) -> float | None:
        """Free GPU memory; of no concern where the server has nothing on a GPU, or runs elsewhere."""
        server = self._session.server
        place = server.view().target_place if server is not None else None
        total, used = self.machine.gpu_total_gib, self.machine.gpu_used_gib
        if place is None or not place.startswith("GPU") or total is None or used is None:
            return None
        return total - used

    def _log(self) -> tuple[str, ...]:
        session = self._session
        if session.troubles.log:
            return session.troubles.log
        return session.server.log_tail(_LOG_LINES) if session.server else ()


def _kept(old: _T, new: _T) -> _T:
    """The old object where the new one is equal."""
    return old if old == new else new
