"""One session's controller: keys of the dashboard -> its commands, and its readings -> one message per tick.

In the background it reads only what its mark in the strip needs, and less often. Here the screen meets the lab;
everything heavy is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from spectui.core.profile import BaselineSettings, TuningProfile
from spectui.core.views.sessions import session_label
from spectui.core.views.snapshot import DraftOption, Snapshot
from spectui.errors import SpectuiError
from spectui.lab.session.neighbours import Neighbours
from spectui.store.fault_log import fault
from spectui.tui.control.ab import AbControl
from spectui.tui.control.history import StoredRuns
from spectui.tui.control.interface import ProfileChange, ProfileOption, Sink
from spectui.tui.control.opening import Opening
from spectui.tui.control.placeholders import beginning, building, failed
from spectui.tui.control.profiles import SavedProfiles
from spectui.tui.control.sweep import SessionSweep
from spectui.tui.messages import DraftsReady, Notice, SnapshotReady

if TYPE_CHECKING:
    from spectui.lab.servers.machine import MachineMonitor
    from spectui.lab.session.lending import LendingSession
    from spectui.lab.views.snapshot_reader import SnapshotReader
    from spectui.store.paths import Folders

_TICK_SECONDS: Final = 0.4
_GLANCE_SECONDS: Final = 1.0
_MACHINE_TICKS: Final = 6


class SessionController:
    """The Controller's commands that are about one session, over one Session at a time."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._sink: Sink = lambda _message: None
        self._session: LendingSession | None = None
        self._reader: SnapshotReader | None = None
        self._folders: Folders | None = None
        self._monitor: MachineMonitor | None = None
        self._shown: Snapshot | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._openings: set[asyncio.Task[None]] = set()
        """Never cancelled: each ends one session and begins the next."""
        self._ticker: asyncio.Task[None] | None = None
        self._opening_lock = asyncio.Lock()
        self._closing = False
        self._in_front = True
        self.devices: tuple[str, ...] = ()
        """Of its last server: while an A/B run or a sweep has them there is none."""
        self.neighbours = Neighbours()
        """What whoever sees all sessions tells of the others."""
        self.ab = AbControl(
            lambda: self._session,
            load=self.load_profile,
            where=self._where,
            key_of=self._key_of,
        )
        self.sweep = SessionSweep(lambda: self._session, where=self._where)
        self.runs = StoredRuns(self._where)
        self._saved = SavedProfiles(self._where)

    def start(self, sink: Sink) -> None:
        """Open what was asked for and begin to report."""
        self._sink = self.ab.sink = self.sweep.sink = sink
        if self._opening.profile is not None or self._opening.demo:
            sink(SnapshotReady(beginning(self._opening)))
        self._spawn(self._begin())

    async def shutdown(self) -> None:
        """End everything that was started; returns when no server of ours is left."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        async with self._opening_lock:
            await self._close_session()

    @property
    def label(self) -> str:
        """What the session is called in the strip; untrusted."""
        opening, session = self._opening, self._session
        if session is None or self._reader is None:
            url = opening.profile.server.url if opening.profile is not None else None
            return session_label("demo" if opening.demo else opening.name, url)
        return session_label(self._reader.profile_name, session.staging.staged.server.url)

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Devices that its A/B run or its sweep has now."""
        return self.devices if self._session is not None and self._session.lent_to else ()

    @property
    def empty(self) -> bool:
        """Whether nothing was opened here."""
        opening = self._opening
        return self._session is None and not (opening.profile or opening.demo or opening.last)

    def retire(self) -> None:
        """Go to the background: what only a screen shows is no longer computed."""
        self._in_front = False

    def come_forward(self) -> None:
        """Report everything, at once and from now on."""
        self._in_front, self._shown = True, None
        try:
            self._report()
        except Exception as error:  # noqa: BLE001  a session that cannot be read must not take the others down
            self._failed(error)

    def stage(self, change: ProfileChange) -> None:
        """Change the staged profile."""
        if self._session is not None:
            self._session.stage(change)
            self._report()

    def set_temperature(self, temperature: float) -> None:
        """Use this temperature from the next request on."""
        self._apply_now(lambda p: p.with_sampling(temperature=temperature))

    def set_workload(self, workload: str) -> None:
        """Send this workload from the next request on."""
        self._apply_now(lambda p: p.with_traffic(workload=workload))

    def set_concurrency(self, concurrency: int) -> None:
        """Keep this many requests in flight; more slots than the server has need a restart."""
        session = self._session
        if session is None:
            return
        slots = session.server.props.total_slots if session.server and session.server.props else None
        self._apply_now(lambda p: p.with_traffic(concurrency=concurrency))
        if slots is not None and concurrency > slots and not session.staging.staged.attached:
            session.stage(lambda p: p.with_server(parallel=concurrency))
            self._notice(f"the server has {slots} slots: restart (r) for {concurrency}", warning=True)
            self._report()

    def toggle_traffic(self) -> None:
        """Start the traffic, or end it."""
        if self._session is not None:
            self._session.toggle_traffic()

    def measure_baseline(self, *, force: bool) -> None:
        """Find the plain speed."""
        if self._session is not None:
            self._session.measure_baseline(force=force)

    def probe(self) -> None:
        """Probe what verification costs."""
        if self._session is not None:
            self._session.probe()

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        """Take the plain speed from a number or a second server."""
        given = BaselineSettings(tokens_per_second=tokens_per_second, url=url)
        if self._session is not None:
            self._session.staging.apply_now(lambda p: replace(p, baseline=given))
            self._session.measure_baseline(force=True)

    def restart(self) -> None:
        """Restart with the staged settings; what could not even be opened is tried again."""
        if self._session is None and not self._opening_lock.locked():
            self._spawn(self._begin())
        self._command(lambda session: session.restart())

    def undo(self) -> None:
        """Back to the settings that ran before."""
        self._command(lambda session: session.undo())

    def apply_best(self) -> None:
        """Stage what the verdict recommends and restart with it."""
        change = self._shown.verdict.change if self._shown else None
        if change is None:
            self._notice("nothing better is known yet", warning=True)
            return
        self._command(lambda session: session.apply(change))

    def rescan_drafts(self) -> None:
        """Look for drafts and examine them in a worker process."""
        self._spawn(self._examine())

    async def drafts(self) -> tuple[DraftOption, ...]:
        """The drafts by name; what is in them follows as a message."""
        from spectui.lab.servers.drafts import list_drafts  # noqa: PLC0415

        session = self._session
        return await list_drafts(session.staging.staged) if session is not None else ()

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        """Saved profiles, then shipped ones."""
        return await self._saved.options()

    async def save_profile(self, name: str) -> str:
        """Save the staged profile; returns the file's path."""
        if self._session is None:
            raise SpectuiError("nothing runs yet, so there is nothing to save")
        saved = await self._saved.save(self._session.staging.staged, name)
        await self._remember(name)
        if self._reader is not None:
            self._reader.profile_name = saved.name
        return str(saved.path)

    async def load_profile(self, name: str) -> None:
        """Load a profile and start what it describes."""
        loaded = await self._saved.load(name)
        await self._open(loaded.profile, name=loaded.name, traffic=not loaded.profile.attached)
        await self._remember(name)

    async def attach(self, url: str) -> None:
        """Attach to a running server."""
        self._opening = opening = self._opening.at(url)
        await self._open(opening.profile or TuningProfile(), name=None, traffic=False)

    async def open_demo(self) -> None:
        """Build the demo pair if needed and start it, its plain speed first."""
        from spectui.lab import demo  # noqa: PLC0415

        folder = self._where().cache

        def progress(share: float, note: str) -> None:
            self._sink(SnapshotReady(building(share, note)))

        pair = await asyncio.to_thread(demo.find_pair, folder)
        if pair is None:
            pair = await demo.build_pair(folder, on_progress=progress)
        await self._open(demo.demo_profile(pair), name="demo", traffic=True, baseline_first=True)

    async def _begin(self) -> None:
        opening = self._opening
        try:
            if opening.demo:
                await self.open_demo()
            elif opening.profile is not None:
                traffic = opening.traffic and not opening.profile.attached
                await self._open(opening.profile, name=opening.name, traffic=traffic)
                if self._in_front:
                    await self._remember(opening.name)
            elif opening.last:
                await self._open_last()
        except SpectuiError as error:
            self._sink(SnapshotReady(failed(error)))

    async def _remember(self, name: str | None) -> None:
        """Open this profile the next time when nothing is named; that this fails is no reason to stop."""
        if name is not None:
            try:
                await self._saved.remember(name)
            except SpectuiError as error:
                self._notice(str(error), warning=True)

    async def _open_last(self) -> None:
        name = await self._saved.last()
        if name is not None:
            await self.load_profile(name)

    async def _open(
        self, profile: TuningProfile, *, name: str | None, traffic: bool, baseline_first: bool = False
    ) -> None:
        # In a task of its own: whoever waits for it here may be cancelled, and a server that is being ended must
        # end, and the next one start, all the same.
        task = asyncio.create_task(
            self._replace(profile, name=name, traffic=traffic, baseline_first=baseline_first), name="open"
        )
        self._openings.add(task)
        task.add_done_callback(self._openings.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._ended)
            raise

    async def _replace(
        self, profile: TuningProfile, *, name: str | None, traffic: bool, baseline_first: bool
    ) -> None:
        """End the session that there is, and open one on this profile in its place."""
        from spectui.lab.session.lending import LendingSession  # noqa: PLC0415
        from spectui.lab.session.preview import PreviewKeeper  # noqa: PLC0415
        from spectui.lab.views.snapshot_reader import SnapshotReader  # noqa: PLC0415

        async with self._opening_lock:
            await self._close_session()
            if self._closing:
                return
            session = LendingSession(
                profile,
                folders=self._where(),
                environ=self._opening.environ or None,
                api_key=self._key_of(profile),
                log_file=self._opening.log_file(self._where()),
                on_notice=lambda text: self._notice(text, warning=True),
                neighbours=self.neighbours,
            )
            self._session = session
            self._reader = SnapshotReader(session, PreviewKeeper(session.launcher))
            self._reader.profile_name = name
            session.open(traffic=traffic, baseline_first=baseline_first)
            self._ticker = asyncio.create_task(self._tick(), name="tick")
            self._ticker.add_done_callback(self._ended)

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        reader, self._reader = self._reader, None
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
            if self._in_front:
                if count % _MACHINE_TICKS == 0 and self._reader is not None:
                    self._reader.machine = await self._monitor.sample()
                count += 1
            self._report()
            await asyncio.sleep(_TICK_SECONDS if self._in_front else _GLANCE_SECONDS)

    def _report(self) -> None:
        if self._reader is None:
            return
        snapshot = self._reader.read() if self._in_front else self._reader.glance()
        self.devices = snapshot.server.devices or self.devices
        if snapshot is not self._shown:
            self._shown = snapshot
            self._sink(SnapshotReady(snapshot))

    def _apply_now(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        if self._session is not None:
            self._session.apply_now(change)
            self._report()

    def _command(self, command: Callable[[LendingSession], None]) -> None:
        if self._session is None:
            return
        try:
            command(self._session)
        except SpectuiError as error:
            self._notice(str(error), warning=True)
        self._report()

    async def _examine(self) -> None:
        from spectui.lab.servers.drafts import examine_drafts, list_drafts  # noqa: PLC0415

        if self._session is None:
            return
        profile = self._session.staging.staged
        self._sink(DraftsReady(await list_drafts(profile)))
        self._sink(DraftsReady(await examine_drafts(profile, self._where().cache)))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What no part expected must at least be said."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._notice(fault(error), warning=True)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except SpectuiError as error:
            self._notice(str(error), warning=True)

    def _key_of(self, profile: TuningProfile) -> str | None:
        return self._opening.key_of(profile)

    def _notice(self, text: str, *, warning: bool = False) -> None:
        self._sink(Notice(text, "warning" if warning else "information"))

    def _where(self) -> Folders:
        if self._folders is None:
            from spectui.store.paths import Folders  # noqa: PLC0415

            self._folders = Folders.default()
        return self._folders
