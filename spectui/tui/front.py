"""The commands of the dashboard that are about one session, handed to whichever is in front when they come.

Apart from the strip, which decides what is in front; nothing here knows that there are others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from spectui.core.snapshot import DraftOption
from spectui.tui.bridge import SessionController
from spectui.tui.controller import ProfileChange, ProfileOption
from spectui.tui.duel import SessionDuel
from spectui.tui.runs import StoredRuns
from spectui.tui.sweep import SessionSweep


class FrontCommands(ABC):
    """Each method as the Controller describes it."""

    @property
    @abstractmethod
    def front(self) -> SessionController:
        """The session in front."""

    @property
    def duel(self) -> SessionDuel:
        """Its A/B run."""
        return self.front.duel

    @property
    def sweep(self) -> SessionSweep:
        """Its sweep."""
        return self.front.sweep

    @property
    def runs(self) -> StoredRuns:
        """What was measured, which is the same for all."""
        return self.front.runs

    def stage(self, change: ProfileChange) -> None:
        """Change its staged profile."""
        self.front.stage(change)

    def set_temperature(self, temperature: float) -> None:
        """Its temperature."""
        self.front.set_temperature(temperature)

    def set_workload(self, workload: str) -> None:
        """Its workload."""
        self.front.set_workload(workload)

    def set_concurrency(self, concurrency: int) -> None:
        """Its requests in flight."""
        self.front.set_concurrency(concurrency)

    def toggle_traffic(self) -> None:
        """Its traffic."""
        self.front.toggle_traffic()

    def measure_baseline(self, *, force: bool) -> None:
        """Its plain speed."""
        self.front.measure_baseline(force=force)

    def probe(self) -> None:
        """Its cost of verification."""
        self.front.probe()

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        """Its plain speed, from elsewhere."""
        self.front.give_baseline(tokens_per_second=tokens_per_second, url=url)

    def restart(self) -> None:
        """Restart it."""
        self.front.restart()

    def undo(self) -> None:
        """Its former settings."""
        self.front.undo()

    def apply_best(self) -> None:
        """What its verdict recommends."""
        self.front.apply_best()

    def rescan_drafts(self) -> None:
        """Drafts for its target."""
        self.front.rescan_drafts()

    async def drafts(self) -> tuple[DraftOption, ...]:
        """The known drafts for its target."""
        return await self.front.drafts()

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        """The profiles, which are the same for all."""
        return await self.front.list_profiles()

    async def save_profile(self, name: str) -> str:
        """Save its staged profile."""
        return await self.front.save_profile(name)

    async def load_profile(self, name: str) -> None:
        """Load a profile in its place."""
        await self.front.load_profile(name)

    async def attach(self, url: str) -> None:
        """Attach in its place."""
        await self.front.attach(url)

    async def open_demo(self) -> None:
        """The demo in its place."""
        await self.front.open_demo()
