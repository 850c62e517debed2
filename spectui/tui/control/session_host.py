"""The session behind one place of the dashboard: opens it, ends it, and reports it to the screen tick by tick.

In the background only what its mark needs is read, and less often. Here the screen meets the lab; everything heavy
is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from spectui.core.profile import TuningProfile
from spectui.core.views.snapshot import Snapshot
from spectui.errors import SpectuiError
from spectui.lab.session.neighbours import Neighbours
from spectui.store.fault_log import fault
from spectui.tui.control.interface import Sink
from spectui.tui.control.opening import Opening
from spectui.tui.messages import Notice, SnapshotReady

if TYPE_CHECKING:
    from spectui.lab.servers.machine import MachineMonitor
    from spectui.lab.session.session import Session
    from spectui.lab.views.snapshot_reader import SnapshotReader
    from spectui.store.paths import Folders

_TICK_SECONDS: Final = 0.4
_GLANCE_SECONDS: Final = 1.0
_MACHINE_TICKS: Final = 6


class SessionHost:
    """At most one session at a time. where: asked for the folders on first use."""

    def __init__(self, where: Callable[[], Folders]) -> None:
        self.sink: Sink = lambda _message: None
        """Where reports and notices go."""
        self.session: Session | None = None
        self.reader: SnapshotReader | None = None
        self.shown: Snapshot | None = None
        """What was reported last."""
        self.devices: tuple[str, ...] = ()
        """Of the last server: while an A/B run or a sweep has them there is none."""
        self.in_front = True
        self.neighbours = Neighbours()
        """What whoever sees all sessions tells of the others."""
        self._where = where
        self._monitor: MachineMonitor | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._openings: set[asyncio.Task[None]] = set()
        """Never cancelled: each ends one session and begins the next."""
        self._ticker: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._closing = False

    @property
    def opening(self) -> bool:
        """Whether a session is being opened or ended."""
        return self._lock.locked()

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Devices that an A/B run or a sweep of the session has now."""
        return self.devices if self.session is not None and self.session.device.lent_to else ()

    def come_forward(self) -> None:
        """Report everything, at once and from now on."""
        self.in_front, self.shown = True, None
        try:
            self.report()
        except Exception as error:  # noqa: BLE001  a session that cannot be read must not take the others down
            self._failed(error)

    def report(self) -> None:
        """Report the session where it is not as it was."""
        if self.reader is None:
            return
        snapshot = self.reader.read() if self.in_front else self.reader.glance()
        self.devices = snapshot.server.devices or self.devices
        if snapshot is not self.shown:
            self.shown = snapshot
            self.sink(SnapshotReady(snapshot))

    def notice(self, text: str) -> None:
        """Say it in passing, as a warning."""
        self.sink(Notice(text, "warning"))

    def spawn(self, work: Awaitable[None]) -> None:
        """Do this meanwhile; what goes wrong is said."""
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._ended)

    async def open(self, profile: TuningProfile, opening: Opening, *, name: str | None, **how: bool) -> None:
        """End the session that there is, and open one on this profile in its place.

        opening: what the user gave for it; name: of the profile; how: as of Session.open.
        """
        # In a task of its own: whoever waits for it here may be cancelled, and a server that is being ended must
        # end, and the next one start, all the same.
        task = asyncio.create_task(self._replace(profile, opening, name, how), name="open")
        self._openings.add(task)
        task.add_done_callback(self._openings.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._ended)
            raise

    async def shutdown(self) -> None:
        """End everything that was started; returns when no server of ours is left."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        async with self._lock:
            await self._close()

    async def _replace(
        self, profile: TuningProfile, opening: Opening, name: str | None, how: Mapping[str, bool]
    ) -> None:
        from spectui.lab.session.preview import PreviewKeeper  # noqa: PLC0415
        from spectui.lab.session.session import Session  # noqa: PLC0415
        from spectui.lab.views.snapshot_reader import SnapshotReader  # noqa: PLC0415

        async with self._lock:
            await self._close()
            if self._closing:
                return
            session = Session(
                profile,
                folders=self._where(),
                environ=opening.environ or None,
                api_key=opening.key_of(profile),
                log_file=opening.log_file(self._where()),
                on_notice=self.notice,
                neighbours=self.neighbours,
            )
            self.session = session
            self.reader = SnapshotReader(session, PreviewKeeper(session.launcher))
            self.reader.profile_name = name
            session.open(**how)
            self._ticker = asyncio.create_task(self._tick(), name="tick")
            self._ticker.add_done_callback(self._ended)

    async def _close(self) -> None:
        session, self.session = self.session, None
        reader, self.reader = self.reader, None
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.wait({self._ticker})
            self._ticker = None
        self.devices = ()
        if reader is not None:
            await reader.aclose()
        if session is not None:
            await session.aclose()

    async def _tick(self) -> None:
        from spectui.lab.servers.machine import MachineMonitor  # noqa: PLC0415

        self._monitor = self._monitor or MachineMonitor()
        count = 0
        while True:
            if self.in_front:
                if count % _MACHINE_TICKS == 0 and self.reader is not None:
                    self.reader.machine = await self._monitor.sample()
                count += 1
            self.report()
            await asyncio.sleep(_TICK_SECONDS if self.in_front else _GLANCE_SECONDS)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except SpectuiError as error:
            self.notice(str(error))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What no part expected must at least be said."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self.notice(fault(error))
