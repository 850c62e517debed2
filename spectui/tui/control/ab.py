"""The A/B screen's controller: its keys -> a run of the lab that borrows the session's device.

Apart from the bridge, which owns the session. The lab is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spectui.core.profile import TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmName, ArmView, differences
from spectui.errors import SpectuiError, UsageError
from spectui.store.fault_log import fault
from spectui.tui.control.interface import Sink
from spectui.tui.messages import AbReady

if TYPE_CHECKING:
    from spectui.lab.session.lending import LendingSession
    from spectui.lab.views.ab_watch import AbWatch
    from spectui.store.paths import Folders


class AbControl:
    """Implements AbController over the session that `session` returns; None while there is none."""

    def __init__(
        self,
        session: Callable[[], LendingSession | None],
        *,
        load: Callable[[str], Awaitable[None]],
        where: Callable[[], Folders],
        key_of: Callable[[TuningProfile], str | None],
    ) -> None:
        self.sink: Sink = lambda _message: None
        """Where views go; set before the screen can open."""
        self._session = session
        self._load = load
        self._where = where
        self._key_of = key_of
        self._view = AbView()
        self._picked: ArmView | None = None
        self._picked_over: TuningProfile | None = None
        self._ab: AbWatch | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """A is what runs; B what is staged where that differs, or the profile that was picked since."""
        if not self._view.busy:
            a, b = self._arms()
            if not (_same(a, self._view.a) and _same(b, self._view.b)):
                self._view = AbView(a=a, b=b)
        self.sink(AbReady(self._view))

    async def choose(self, name: str) -> None:
        """Load a profile as arm B. Raises SpectuiError."""
        from spectui.store import profiles  # noqa: PLC0415

        loaded = await asyncio.to_thread(profiles.load, name, self._where())
        if self._view.busy:
            raise UsageError("the arms cannot change while they are compared: space stops that")
        session = self._session()
        self._picked = ArmView(profile=loaded.profile, name=loaded.name)
        self._picked_over = session.staging.staged if session is not None else None
        self._show(AbView(a=self._arms()[0], b=self._picked))

    async def start(self) -> None:
        """Compare. Raises SpectuiError while an arm cannot be started; nothing was stopped then."""
        from spectui.lab.views.ab_watch import AbWatch  # noqa: PLC0415

        session, view = self._session(), self._view
        if view.busy:
            return
        if session is None or view.a is None:
            raise UsageError("nothing runs yet that could be compared")
        if view.b is None:
            raise UsageError("there is no arm B yet: l takes a profile, or stage a change on the dashboard")
        if not differences(view.a.profile, view.b.profile):
            raise UsageError("both arms are the same: l takes another profile as B")
        session.require_lendable("compare")
        keys = self._key_of(view.a.profile), self._key_of(view.b.profile)
        ab = AbWatch(
            view,
            launcher=session.launcher,
            on_view=self._show,
            api_keys=keys,
            recorder=session.recorder,
        )
        self._ab, self._task = ab, None
        ab.show(state=AbState.STARTING, note="checking both arms")
        loan: asyncio.Task[None] | None = None
        try:
            await ab.check()
            # Meanwhile the session may have been closed, or lent to somebody else.
            if ab.view.state is not AbState.STOPPING and self._session() is session:
                session.require_lendable("compare")
                loan = session.lend(lambda: self._run(ab))
                loan.add_done_callback(lambda _task: _settle(ab))
        except SpectuiError as error:
            ab.show(state=AbState.FAILED, note="", problem=str(error))
        finally:
            if loan is None:
                _settle(ab)

    def stop(self) -> None:
        """End the run; its servers are down when the view says that it stopped."""
        if self._ab is None or not self._view.busy:
            return
        self._ab.stopping()
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def apply(self, arm: ArmName) -> str:
        """Stage an arm, or load its profile where it is on a server that the session cannot become."""
        chosen, session = self._view.arm(arm), self._session()
        if self._view.busy:
            raise UsageError("the run goes on: space stops it")
        if chosen is None or session is None:
            raise UsageError("there is nothing to apply")
        profile = chosen.profile
        if profile.server.url != session.staging.staged.server.url:
            await self._load(chosen.name)
            return f"{arm.upper()} is loaded: {chosen.name}"
        session.stage(lambda p: replace(p, server=profile.server, speculation=profile.speculation))
        session.apply_now(lambda p: p.with_sampling(temperature=profile.sampling.temperature))
        if not session.staging.changes:
            return f"{arm.upper()} is what runs"
        return f"{arm.upper()} is staged: r restarts with it"

    def _arms(self) -> tuple[ArmView | None, ArmView | None]:
        session = self._session()
        if session is None:
            return None, None
        staging = session.staging
        if staging.running is None:
            return ArmView(profile=staging.staged, name="staged"), self._picked
        a = ArmView(profile=staging.running, name="running")
        other = bool(staging.changes) and not staging.staged.attached
        if other and (self._picked is None or staging.staged != self._picked_over):
            return a, ArmView(profile=staging.staged, name="staged")
        return a, self._picked

    async def _run(self, ab: AbWatch) -> None:
        from spectui.lab.servers.cancel_shield import ended  # noqa: PLC0415

        if ab.view.state is AbState.STOPPING:
            return
        self._task = asyncio.create_task(ab.run(), name="ab")
        await ended(self._task)
        error = None if self._task.cancelled() else self._task.exception()
        if error is not None:
            ab.show(state=AbState.FAILED, turn=None, note="", problem=fault(error))
            raise error

    def _show(self, view: AbView) -> None:
        self._view = view
        self.sink(AbReady(view))


def _same(one: ArmView | None, other: ArmView | None) -> bool:
    """Whether two arms are one configuration, whatever was measured on them."""
    if one is None or other is None:
        return one is other
    return one.profile == other.profile and one.name == other.name


def _settle(ab: AbWatch) -> None:
    """A run that never began has stopped as well, such as one that a newer command took the device from."""
    if ab.view.busy:
        ab.show(state=AbState.STOPPED, turn=None, note="")
