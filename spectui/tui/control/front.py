"""The commands of the dashboard that are about one session, handed to whichever is in front when they come.

Apart from the strip, which decides what is in front; nothing here knows that there are others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from spectui.core.views.snapshot import DraftOption
from spectui.tui.control.ab import AbControl
from spectui.tui.control.history import StoredRuns
from spectui.tui.control.interface import ProfileChange, ProfileOption
from spectui.tui.control.session import SessionController
from spectui.tui.control.sweep import SessionSweep


class FrontCommands(ABC):
    """The part of Controller that needs no strip: each method is described there, here only what is particular."""

    @property
    @abstractmethod
    def front(self) -> SessionController:
        """The session in front."""

    @property
    def ab(self) -> AbControl:
        """Goes on when another session comes to the front, as its sweep does."""
        return self.front.ab

    @property
    def sweep(self) -> SessionSweep:
        """See `ab`."""
        return self.front.sweep

    @property
    def runs(self) -> StoredRuns:
        """Of all sessions, whichever is in front."""
        return self.front.runs

    def stage(self, change: ProfileChange) -> None:
        """See Controller.stage."""
        self.front.stage(change)

    def set_temperature(self, temperature: float) -> None:
        """See Controller.set_temperature."""
        self.front.set_temperature(temperature)

    def set_workload(self, workload: str) -> None:
        """See Controller.set_workload."""
        self.front.set_workload(workload)

    def set_concurrency(self, concurrency: int) -> None:
        """See Controller.set_concurrency."""
        self.front.set_concurrency(concurrency)

    def toggle_traffic(self) -> None:
        """See Controller.toggle_traffic."""
        self.front.toggle_traffic()

    def measure_baseline(self, *, force: bool) -> None:
        """See Controller.measure_baseline."""
        self.front.measure_baseline(force=force)

    def probe(self) -> None:
        """See Controller.probe."""
        self.front.probe()

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        """See Controller.give_baseline."""
        self.front.give_baseline(tokens_per_second=tokens_per_second, url=url)

    def restart(self) -> None:
        """See Controller.restart."""
        self.front.restart()

    def undo(self) -> None:
        """See Controller.undo."""
        self.front.undo()

    def apply_best(self) -> None:
        """See Controller.apply_best."""
        self.front.apply_best()

    def rescan_drafts(self) -> None:
        """See Controller.rescan_drafts."""
        self.front.rescan_drafts()

    async def drafts(self) -> tuple[DraftOption, ...]:
        """See Controller.drafts."""
        return await self.front.drafts()

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        """The same for all sessions."""
        return await self.front.list_profiles()

    async def save_profile(self, name: str) -> str:
        """See Controller.save_profile."""
        return await self.front.save_profile(name)

    async def load_profile(self, name: str) -> None:
        """In place of what the session in front runs; `open_session` leaves that alone."""
        await self.front.load_profile(name)

    async def attach(self, url: str) -> None:
        """In place of what the session in front runs; `attach_session` leaves that alone."""
        await self.front.attach(url)

    async def open_demo(self) -> None:
        """In place of what the session in front runs."""
        await self.front.open_demo()
