"""Controller: everything that the dashboard can ask for. What is behind it owns servers, traffic and files.

The dashboard knows this interface only, so that it can be driven by a fake and never waits for a server. Plain
methods enqueue and return at once; what becomes of them shows in the next snapshot or in a Notice. Coroutines
are awaited in workers; they raise a SpectuiError whose text is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from spectui.core.profile import TuningProfile
from spectui.core.views.ab import ArmName
from spectui.core.views.snapshot import DraftOption

if TYPE_CHECKING:
    from spectui.core.views.run_list import RunDetails, RunList
    from spectui.core.views.sweep import KeptSweep, SweepChoice

Sink = Callable[[Message], object]
"""Where the controller puts SnapshotReady, AbReady, SweepReady, DraftsReady and Notice."""

ProfileChange = Callable[[TuningProfile], TuningProfile]
"""A pure function from the staged profile to the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOption:
    """One saved or shipped profile in the picker."""

    name: str
    description: str = ""
    problem: str = ""
    """Why it cannot be loaded; empty when it can."""


class AbController(Protocol):
    """Commands of the A/B screen; what becomes of them comes as AbReady."""

    def open(self) -> None:
        """Choose the arms anew, unless a run goes on or was about the same two. Nothing is started or sent."""

    async def choose(self, name: str) -> None:
        """Make the profile of this name or path arm B."""

    async def start(self) -> None:
        """Check both arms, end our own server or the traffic, and compare; what ran comes back afterwards."""

    def stop(self) -> None:
        """End the run and its servers."""

    async def apply(self, arm: ArmName) -> str:
        """Stage an arm's settings; returns what remains to be done, as a sentence."""


class SweepController(Protocol):
    """Commands of the sweep screen; what becomes of them comes as SweepReady."""

    async def open(self) -> None:
        """Plan a sweep of what runs, unless one of it is shown already. Nothing is started or sent."""

    async def choose(self, choice: SweepChoice) -> None:
        """Plan a sweep of these axes."""

    async def kept(self) -> tuple[KeptSweep, ...]:
        """The sweeps of the results store, the newest first."""

    async def pick(self, number: int | None) -> None:
        """Show a kept sweep; None plans a new one of what runs."""

    async def start(self) -> None:
        """Check the settings, end our own server or the traffic, and sweep; what ran comes back afterwards."""

    def pause(self) -> None:
        """Hold the sweep before its next cell; it keeps the device."""

    def go_on(self) -> None:
        """Let a held sweep go on."""

    def stop(self) -> None:
        """End the sweep and its server; it can go on later where it was."""

    async def apply(self, index: int) -> str:
        """Stage what is recommended under the condition of that index and restart; returns what was done."""


class HistoryController(Protocol):
    """What the history screen reads from the results store."""

    async def runs(self, limit: int) -> RunList:
        """The newest runs, so many at most."""

    async def details(self, a: int, b: int) -> RunDetails:
        """Two runs side by side."""


class SessionCommands(Protocol):
    """Commands of the dashboard that are about one session."""

    @property
    def ab(self) -> AbController:
        """The A/B screen's part."""

    @property
    def sweep(self) -> SweepController:
        """The sweep screen's part."""

    @property
    def runs(self) -> HistoryController:
        """The history screen's part."""

    def stage(self, change: ProfileChange) -> None:
        """Apply `change` to the staged profile; nothing restarts."""

    def set_temperature(self, temperature: float) -> None:
        """Use this temperature from the next request on."""

    def set_workload(self, workload: str) -> None:
        """Send this workload from the next request on."""

    def set_concurrency(self, concurrency: int) -> None:
        """Keep this many requests in flight."""

    def toggle_traffic(self) -> None:
        """Start the test traffic, or stop it."""

    def measure_baseline(self, *, force: bool) -> None:
        """Measure plain speed on the same prompts; `force` measures again what is already known."""

    def probe(self) -> None:
        """Probe what verification costs; on our own server together with the baseline."""

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        """Take the baseline from a number, or from a second server that runs without speculation."""

    def restart(self) -> None:
        """Restart our own server with the staged settings, or start it."""

    def undo(self) -> None:
        """Stage the settings that last ran and, where they differ from what runs, restart with them."""

    def apply_best(self) -> None:
        """Stage what the verdict recommends and restart with it."""

    def rescan_drafts(self) -> None:
        """Look for draft files again and test them against the target; answers are DraftsReady messages."""

    async def drafts(self) -> tuple[DraftOption, ...]:
        """The draft files that are known now; what is found out later comes as DraftsReady."""

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        """Saved profiles, then shipped ones."""

    async def save_profile(self, name: str) -> str:
        """Save the staged profile under `name`, replacing one of that name; returns the file's path."""

    async def load_profile(self, name: str) -> None:
        """Load a profile by name or path and start what it describes."""

    async def attach(self, url: str) -> None:
        """Attach to a running server; nothing is sent to it but reads of its state."""

    async def open_demo(self) -> None:
        """Build the demo pair if needed and start it."""


class Controller(Protocol):
    """Commands of the dashboard that are about all sessions, and the one in front for the others."""

    @property
    def front(self) -> SessionCommands:
        """The session in front, at the moment of asking."""

    def start(self, sink: Sink) -> None:
        """Begin to work and to report to `sink`. Called once, after the first frame."""

    async def shutdown(self) -> None:
        """Stop all traffic and every server of ours; return when they are down."""

    def switch(self, number: int) -> None:
        """Bring the session of this number to the front."""

    async def open_session(self, name: str) -> None:
        """Load a profile by name or path and start it in a session of its own, in front."""

    async def attach_session(self, url: str) -> None:
        """Attach to a running server in a session of its own, in front."""

    async def close_session(self) -> None:
        """Close the session in front: a server of ours ends, one that we attached to is left alone."""
