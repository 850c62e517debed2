"""The A/B screen's controller: its keys -> a run of the lab that borrows the session's device.

The lab is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spectui.core.profile import TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmName, ArmView, differences
from spectui.errors import UsageError
from spectui.tui.control.borrowed_run import BorrowedRun
from spectui.tui.control.interface import Sink
from spectui.tui.messages import AbReady

if TYPE_CHECKING:
    from spectui.lab.session.session import Session
    from spectui.store.paths import Folders


class AbControl:
    """Implements AbController over the session that `session` returns; None while there is none."""

    def __init__(
        self,
        session: Callable[[], Session | None],
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
        self._run = BorrowedRun(session, name="the A/B run", verb="compare")

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
        self._picked_over = session.settings.staged if session is not None else None
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
        session.device.require_lendable("compare")
        ab = AbWatch(
            view,
            launcher=session.launcher,
            on_view=self._show,
            api_keys=(self._key_of(view.a.profile), self._key_of(view.b.profile)),
            recorder=session.recorder,
        )
        ab.show(state=AbState.STARTING, note="checking both arms")
        await self._run.start(ab)

    def stop(self) -> None:
        """End the run; its servers are down when the view says that it stopped."""
        if self._view.busy:
            self._run.stop()

    async def apply(self, arm: ArmName) -> str:
        """Stage an arm, or load its profile where it is on a server that the session cannot become."""
        chosen, session = self._view.arm(arm), self._session()
        if self._view.busy:
            raise UsageError("the run goes on: space stops it")
        if chosen is None or session is None:
            raise UsageError("there is nothing to apply")
        profile = chosen.profile
        if profile.server.url != session.settings.staged.server.url:
            await self._load(chosen.name)
            return f"{arm.upper()} is loaded: {chosen.name}"
        session.stage(lambda p: replace(p, server=profile.server, speculation=profile.speculation))
        session.apply_now(lambda p: p.with_sampling(temperature=profile.sampling.temperature))
        if not session.settings.changes:
            return f"{arm.upper()} is what runs"
        return f"{arm.upper()} is staged: r restarts with it"

    def _arms(self) -> tuple[ArmView | None, ArmView | None]:
        session = self._session()
        if session is None:
            return None, None
        settings = session.settings
        if settings.running is None:
            return ArmView(profile=settings.staged, name="staged"), self._picked
        a = ArmView(profile=settings.running, name="running")
        other = bool(settings.changes) and not settings.staged.attached
        if other and (self._picked is None or settings.staged != self._picked_over):
            return a, ArmView(profile=settings.staged, name="staged")
        return a, self._picked

    def _show(self, view: AbView) -> None:
        self._view = view
        self.sink(AbReady(view))


def _same(one: ArmView | None, other: ArmView | None) -> bool:
    """Whether two arms are one configuration, whatever was measured on them."""
    if one is None or other is None:
        return one is other
    return one.profile == other.profile and one.name == other.name
