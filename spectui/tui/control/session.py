"""One session's controller: the keys of the dashboard -> the commands of its session.

Everything heavy is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from spectui.core.profile import BaselineSettings, TuningProfile
from spectui.core.views.sessions import session_label
from spectui.core.views.snapshot import DraftOption
from spectui.errors import SpectuiError
from spectui.tui.control.ab import AbControl
from spectui.tui.control.history import HistoryControl
from spectui.tui.control.interface import ProfileChange, ProfileOption, Sink
from spectui.tui.control.opening import Opening
from spectui.tui.control.placeholders import beginning, building, failed
from spectui.tui.control.session_host import SessionHost
from spectui.tui.control.sweep import SweepControl
from spectui.tui.messages import DraftsReady, SnapshotReady

if TYPE_CHECKING:
    from spectui.lab.session.session import Session
    from spectui.store.paths import Folders


class SessionController:
    """Implements SessionCommands, over one Session at a time."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._folders: Folders | None = None
        self.host = SessionHost(self._where)
        self.ab = AbControl(
            lambda: self._session,
            load=self.load_profile,
            where=self._where,
            key_of=self._key_of,
        )
        self.sweep = SweepControl(lambda: self._session, where=self._where)
        self.runs = HistoryControl(self._where)

    def start(self, sink: Sink) -> None:
        """Open what was asked for and begin to report."""
        self.host.sink = self.ab.sink = self.sweep.sink = sink
        if self._opening.profile is not None or self._opening.demo:
            sink(SnapshotReady(beginning(self._opening)))
        self.host.spawn(self._begin())

    @property
    def label(self) -> str:
        """What the session is called in the strip; untrusted."""
        opening, session, reader = self._opening, self._session, self.host.reader
        if session is None or reader is None:
            url = opening.profile.server.url if opening.profile is not None else None
            return session_label("demo" if opening.demo else opening.name, url)
        return session_label(reader.profile_name, session.settings.staged.server.url)

    @property
    def empty(self) -> bool:
        """Whether nothing was opened here."""
        opening = self._opening
        return self._session is None and not (opening.profile or opening.demo or opening.last)

    def stage(self, change: ProfileChange) -> None:
        """Change the staged profile."""
        self._command(lambda session: session.stage(change))

    def set_temperature(self, temperature: float) -> None:
        """Use this temperature from the next request on."""
        self._command(lambda session: session.apply_now(lambda p: p.with_sampling(temperature=temperature)))

    def set_workload(self, workload: str) -> None:
        """Send this workload from the next request on."""
        self._command(lambda session: session.apply_now(lambda p: p.with_traffic(workload=workload)))

    def set_concurrency(self, concurrency: int) -> None:
        """Keep this many requests in flight; more slots than the server has need a restart."""
        session = self._session
        if session is None:
            return
        shown = self.host.shown
        slots = shown.server.slots if shown is not None else None
        self._command(lambda session: session.apply_now(lambda p: p.with_traffic(concurrency=concurrency)))
        if slots is not None and concurrency > slots and not session.settings.staged.attached:
            session.stage(lambda p: p.with_server(parallel=concurrency))
            self.host.notice(f"the server has {slots} slots: restart (r) for {concurrency}")
            self.host.report()

    def toggle_traffic(self) -> None:
        """Start the traffic, or end it."""
        self._command(lambda session: session.toggle_traffic())

    def measure_baseline(self, *, force: bool) -> None:
        """Find the plain speed."""
        self._command(lambda session: session.measure_baseline(force=force))

    def probe(self) -> None:
        """Probe what verification costs."""
        self._command(lambda session: session.probe())

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        """Take the plain speed from a number or a second server."""
        given = BaselineSettings(tokens_per_second=tokens_per_second, url=url)
        self._command(lambda session: session.give_baseline(given))

    def restart(self) -> None:
        """Restart with the staged settings; what could not even be opened is tried again."""
        if self._session is None and not self.host.opening:
            self.host.spawn(self._begin())
        self._command(lambda session: session.restart())

    def undo(self) -> None:
        """Back to the settings that ran before."""
        self._command(lambda session: session.undo())

    def apply_best(self) -> None:
        """Stage what the verdict recommends and restart with it."""
        change = self.host.shown.verdict.change if self.host.shown else None
        if change is None:
            self.host.notice("nothing better is known yet")
            return
        self._command(lambda session: session.apply(change))

    def rescan_drafts(self) -> None:
        """Look for drafts and examine them in a worker process."""
        self.host.spawn(self._examine())

    async def drafts(self) -> tuple[DraftOption, ...]:
        """The drafts by name; what is in them follows as a message."""
        from spectui.lab.servers.drafts import list_drafts  # noqa: PLC0415

        session = self._session
        return await list_drafts(session.settings.staged) if session is not None else ()

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        """Saved profiles, then shipped ones."""
        from spectui.store.profiles import list_profiles  # noqa: PLC0415

        entries = await asyncio.to_thread(list_profiles, self._where())
        return tuple(
            ProfileOption(name=e.name, description=e.description, problem=e.problem or "") for e in entries
        )

    async def save_profile(self, name: str) -> str:
        """Save the staged profile; returns the file's path."""
        from spectui.store.profiles import save  # noqa: PLC0415

        if self._session is None:
            raise SpectuiError("nothing runs yet, so there is nothing to save")
        saved = await asyncio.to_thread(save, self._session.settings.staged, name, self._where())
        await self._remember(name)
        if self.host.reader is not None:
            self.host.reader.profile_name = saved.name
        return str(saved.path)

    async def load_profile(self, name: str) -> None:
        """Load a profile and start what it describes."""
        from spectui.store.profiles import load  # noqa: PLC0415

        loaded = await asyncio.to_thread(load, name, self._where())
        await self.host.open(
            loaded.profile, self._opening, name=loaded.name, traffic=not loaded.profile.attached
        )
        await self._remember(name)

    async def attach(self, url: str) -> None:
        """Attach to a running server."""
        self._opening = opening = self._opening.at(url)
        await self.host.open(opening.profile or TuningProfile(), opening, name=None, traffic=False)

    async def open_demo(self) -> None:
        """Build the demo pair if needed and start it, its plain speed first."""
        from spectui.lab import demo  # noqa: PLC0415

        folder = self._where().cache

        def progress(share: float, note: str) -> None:
            self.host.sink(SnapshotReady(building(share, note)))

        pair = await asyncio.to_thread(demo.find_pair, folder)
        if pair is None:
            pair = await demo.build_pair(folder, on_progress=progress)
        await self.host.open(
            demo.demo_profile(pair), self._opening, name="demo", traffic=True, baseline_first=True
        )

    async def _begin(self) -> None:
        from spectui.store.profiles import last_profile  # noqa: PLC0415

        opening = self._opening
        try:
            if opening.demo:
                await self.open_demo()
            elif opening.profile is not None:
                traffic = opening.traffic and not opening.profile.attached
                await self.host.open(opening.profile, opening, name=opening.name, traffic=traffic)
                if self.host.in_front:
                    await self._remember(opening.name)
            elif opening.last:
                name = await asyncio.to_thread(last_profile, self._where())
                if name is not None:
                    await self.load_profile(name)
        except SpectuiError as error:
            self.host.sink(SnapshotReady(failed(error)))

    async def _remember(self, name: str | None) -> None:
        """Open this profile the next time when nothing is named; that this fails is no reason to stop."""
        from spectui.store.profiles import remember_last  # noqa: PLC0415

        if name is not None:
            try:
                await asyncio.to_thread(remember_last, name, self._where())
            except SpectuiError as error:
                self.host.notice(str(error))

    def _key_of(self, profile: TuningProfile) -> str | None:
        return self._opening.key_of(profile)

    @property
    def _session(self) -> Session | None:
        return self.host.session

    def _command(self, command: Callable[[Session], None]) -> None:
        if self._session is None:
            return
        try:
            command(self._session)
        except SpectuiError as error:
            self.host.notice(str(error))
        self.host.report()

    async def _examine(self) -> None:
        from spectui.lab.servers.drafts import examine_drafts, list_drafts  # noqa: PLC0415

        if self._session is None:
            return
        profile = self._session.settings.staged
        self.host.sink(DraftsReady(await list_drafts(profile)))
        self.host.sink(DraftsReady(await examine_drafts(profile, self._where().cache)))

    def _where(self) -> Folders:
        if self._folders is None:
            from spectui.store.paths import Folders  # noqa: PLC0415

            self._folders = Folders.default()
        return self._folders
