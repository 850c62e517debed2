"""The sweep screen's controller: its keys -> a sweep of the lab that borrows the session's device.

What a sweep needs is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spectui.core.profile import TuningProfile
from spectui.errors import SpectuiError, UsageError
from spectui.tui.control.borrowed_run import BorrowedRun
from spectui.tui.control.interface import Sink
from spectui.tui.messages import Notice, SweepReady

if TYPE_CHECKING:
    from spectui.core.views.sweep import KeptSweep, SweepChoice, SweepView
    from spectui.lab.session.session import Session
    from spectui.lab.views.sweep_watch import PlannedSweep, WatchedSweep
    from spectui.store.baselines import BaselineStore
    from spectui.store.paths import Folders
    from spectui.store.results import ResultStore

_NOTHING = "nothing runs yet that could be swept: go back and start a server"
_BUSY = "the sweep goes on: s stops it"


class SweepControl:
    """Implements SweepController over the session that `session` returns; None while there is none."""

    def __init__(self, session: Callable[[], Session | None], *, where: Callable[[], Folders]) -> None:
        self.sink: Sink = lambda _message: None
        """Where views go; set before the screen can open."""
        self._session = session
        self._where = where
        self._view: SweepView | None = None
        self._planned: PlannedSweep | None = None
        self._planned_for: TuningProfile | None = None
        self._sweep: WatchedSweep | None = None
        self._run = BorrowedRun(session, name="the sweep", verb="sweep")

    @property
    def running(self) -> int | None:
        """Number of the sweep that goes on; None while none does, or it has no number."""
        return self._view.number if self._view is not None and self._view.busy else None

    async def open(self) -> None:
        """Show the sweep that there is; plan one where there is none, or server or traffic are others."""
        profile, view = self._profile(), self._view
        if view is not None and (view.busy or (view.number is not None and self._same_server(profile))):
            self.sink(SweepReady(view))
        else:
            await self._plan(None)

    async def choose(self, choice: SweepChoice) -> None:
        """Plan a sweep of these axes. Raises UsageError while one goes on."""
        self._require_idle()
        await self._plan(choice)

    async def kept(self) -> tuple[KeptSweep, ...]:
        """The sweeps of the results store. Raises StoreError."""
        from spectui.lab.views.sweep_watch import kept_sweeps  # noqa: PLC0415

        return await asyncio.to_thread(kept_sweeps, self._stores()[0])

    async def pick(self, number: int | None) -> None:
        """Show a kept sweep. Raises StoreError, and UsageError while one goes on."""
        from spectui.core.views.sweep import SweepView  # noqa: PLC0415
        from spectui.lab.views.sweep_watch import reopened  # noqa: PLC0415

        self._require_idle()
        if number is None:
            await self._plan(None)
            return
        session = self._session()
        if session is not None:
            session.neighbours.require_free(number)
        results, baselines = self._stores()
        view = replace(self._view or SweepView(), command="", unkept="")
        # Until the store has answered there is nothing to start or apply: not what is about to be replaced.
        before, self._planned = self._planned, None
        try:
            found = await reopened(number, view, results=results, baselines=baselines)
        except SpectuiError:
            self._planned = before
            raise
        profile = self._profile()
        if profile is not None and profile.attached:
            again = replace(found.view, command=f"spectui sweep --resume {number}")
            found = replace(found, view=again)
        self._show_planned(found, profile)

    async def start(self) -> None:
        """Sweep. Raises SpectuiError where nothing can be started; nothing was stopped then."""
        from spectui.core.views.sweep import SweepStage  # noqa: PLC0415
        from spectui.lab.views.sweep_watch import WatchedSweep  # noqa: PLC0415

        session, planned, view = self._session(), self._planned, self._view
        if view is not None and view.busy:
            return
        if session is None:
            raise UsageError(_NOTHING)
        if view is not None and view.command:
            raise UsageError(
                "spectui never restarts this server: a sweep needs a profile that starts this model; "
                f"use: {view.command}"
            )
        if planned is None or view is None or view.plan is None:
            raise UsageError(view.problem if view is not None and view.problem else "there is no plan yet")
        session.device.require_lendable("sweep")
        session.neighbours.require_free(view.number)
        results, baselines = self._stores()
        self._sweep = WatchedSweep(
            replace(planned, view=view, number=view.number),
            launcher=session.launcher,
            results=results,
            baselines=baselines,
            on_view=self._show,
            cache=self._where().cache,
        )
        self._sweep.show(stage=SweepStage.STARTING, note="checking the settings", problem="")
        await self._run.start(self._sweep)

    def pause(self) -> None:
        """Hold the sweep before its next cell."""
        if self._sweep is not None:
            self._sweep.pause()

    def go_on(self) -> None:
        """Let a held sweep go on."""
        if self._sweep is not None:
            self._sweep.go_on()

    def stop(self) -> None:
        """End the sweep; its server is down when the view says that it stopped."""
        if self._view is not None and self._view.busy:
            self._run.stop()

    async def apply(self, index: int) -> str:
        """Stage what is recommended and restart. Raises UsageError where there is nothing to apply."""
        self._require_idle()
        session, planned, view = self._session(), self._planned, self._view
        maps = view.maps if view is not None else ()
        best = maps[index].best if index < len(maps) else None
        if session is None or planned is None or best is None:
            raise UsageError("nothing is recommended yet: sweep first")
        if session.settings.staged.attached:
            raise UsageError(
                "spectui did not start this server and will not restart it: export what was found"
            )
        swept, condition = planned.order.profile, planned.order.grid.conditions[index]

        def change(profile: TuningProfile) -> TuningProfile:
            if profile.server.model != swept.server.model:
                profile = replace(profile, server=swept.server)
            return best.setting.applied_to(profile)

        session.stage(change)
        session.apply_now(
            lambda p: p.with_traffic(
                workload=condition.workload, prompts=swept.traffic.prompts
            ).with_sampling(temperature=condition.temperature)
        )
        if session.settings.running is not None and not session.settings.changes:
            return f"{best.setting.label} is what runs"
        session.restart()
        return f"restarting with {best.setting.label}"

    async def _plan(self, choice: SweepChoice | None) -> None:
        """Show what the sweep of these axes would take, or why it cannot be."""
        from spectui.core.views.sweep import SweepView  # noqa: PLC0415
        from spectui.lab.views.sweep_watch import planned  # noqa: PLC0415

        session, profile = self._session(), self._profile()
        before = self._view or SweepView()
        blank = SweepView(choice=choice, workloads=before.workloads, modes=before.modes)
        self._planned, self._planned_for = None, profile
        if session is None or profile is None:
            self._show(replace(blank, problem=_NOTHING))
            return
        if profile.attached:
            command = f"spectui sweep PROFILE --workload {profile.traffic.workload}"
            self._show(replace(blank, command=command))
            return
        self._show(replace(blank, note="planning"))
        results, baselines = self._stores()
        try:
            found = await planned(
                profile, choice, launcher=session.launcher, results=results, baselines=baselines
            )
        except SpectuiError as error:
            self._show(replace(blank, problem=str(error)))
        else:
            self._show_planned(found, profile)

    def _show_planned(self, planned: PlannedSweep, profile: TuningProfile | None) -> None:
        self._planned, self._planned_for = planned, profile
        self._show(planned.view)

    def _profile(self) -> TuningProfile | None:
        """What runs, else what is staged."""
        session = self._session()
        return None if session is None else session.settings.in_use

    def _same_server(self, profile: TuningProfile | None) -> bool:
        known = self._planned_for
        if profile is None or known is None:
            return profile is known
        drafts = (profile.speculation.draft_model, known.speculation.draft_model)
        same = profile.server == known.server and (drafts[0] == drafts[1] or None in drafts)
        return same and _traffic(profile) == _traffic(known)

    def _require_idle(self) -> None:
        if self._view is not None and self._view.busy:
            raise UsageError(_BUSY)

    def _stores(self) -> tuple[ResultStore, BaselineStore]:
        from spectui.lab.session.neighbours import (  # noqa: PLC0415
            FreeSweeps,
            Neighbours,
            QuietBaselines,
        )

        session, folders = self._session(), self._where()
        neighbours = session.neighbours if session is not None else Neighbours()
        return FreeSweeps(folders, neighbours), QuietBaselines(folders, neighbours)

    def _show(self, view: SweepView) -> None:
        before, self._view = self._view, view
        self.sink(SweepReady(view))
        if view.unkept and (before is None or view.unkept != before.unkept):
            self.sink(Notice(view.unkept, "warning"))


def _traffic(profile: TuningProfile) -> tuple[int, int, int, bool]:
    """What of the traffic decides the speed, but for the prompts, which a sweep chooses itself."""
    traffic = profile.traffic
    return traffic.concurrency, traffic.depth, traffic.max_tokens, traffic.ignore_eos
