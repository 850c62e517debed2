"""A session -> one immutable Snapshot: the last step before the screen, and the same for any screen.

Parts that did not change keep their identity, so that whoever shows them can skip them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from spectui.core.views.snapshot import MachineView, SettingsView, Snapshot
from spectui.lab.session.preview import PreviewKeeper
from spectui.lab.session.session import Session, SessionReading
from spectui.lab.workloads.workloads import OWN, builtin_names

_T = TypeVar("_T")


class SnapshotReader:
    """Reads one session, tick by tick."""

    def __init__(self, session: Session, preview: PreviewKeeper) -> None:
        self._session = session
        self._preview = preview
        self._last = Snapshot()
        self._glanced = Snapshot()
        self.profile_name: str | None = None
        self.machine = MachineView()

    def read(self) -> Snapshot:
        """The session at this moment; the very same object as before where nothing changed."""
        now, last = self._session.reading(self.machine), self._last
        snapshot = Snapshot(
            tick=last.tick,
            t=last.t,
            server=_kept(last.server, now.server),
            settings=_kept(last.settings, self._settings(now)),
            traffic=now.traffic,
            traffic_note=now.note,
            lent_to=now.lent_to,
            bet=_kept(last.bet, now.live.bet),
            history=now.live.history,
            curve=now.live.curve,
            verdict=_kept(last.verdict, now.verdict),
            machine=_kept(last.machine, self.machine),
            output=now.live.output,
            log_tail=_kept(last.log_tail, now.log),
        )
        if snapshot == last:
            return last
        self._last = replace(snapshot, tick=last.tick + 1, t=now.t)
        return self._last

    def glance(self) -> Snapshot:
        """What the mark of a session in the background needs: no settings, charts or texts; as cheap as can be."""
        now = self._session.reading(self.machine, whole=False)
        server = _kept(self._glanced.server, now.server)
        glanced = Snapshot(server=server, traffic=now.traffic, bet=now.live.bet, verdict=now.verdict)
        if glanced != self._glanced:
            self._glanced = glanced
        return self._glanced

    async def aclose(self) -> None:
        """End the preview's work."""
        await self._preview.aclose()

    def _settings(self, now: SessionReading) -> SettingsView:
        staged = now.settings.staged
        preview = self._preview.follow(staged, now.port)
        view = SettingsView(
            running=staged if now.coming else now.settings.running,
            staged=staged,
            changes=() if now.coming else now.settings.changes,
            command=preview.command,
            problem=preview.problem,
            modes=preview.modes,
            environment=preview.environment,
            workloads=(*builtin_names(), OWN) if staged.traffic.prompts else builtin_names(),
            drafting_known=now.live.drafting_known,
            drafts_vary=now.live.drafts_vary,
            can_undo=now.settings.can_undo,
            profile_name=self.profile_name,
        )
        # Nor is it known what such a server would be started with.
        return replace(view, problem="") if view.unreached else view


def _kept(old: _T, new: _T) -> _T:
    """The old object where the new one is equal."""
    return old if old == new else new
