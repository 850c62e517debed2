"""Up to nine sessions side by side, one of them in front; implements the dashboard's Controller.

Only the one in front is read whole; the others are glanced at for their marks. What goes wrong in one stays there:
each has its own session, tasks and servers, and ending all of them waits for each.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.message import Message

from spectui.core.views.sessions import MAX_SESSIONS, disturbed, disturbing, mark_of, shared_devices
from spectui.core.views.snapshot import Snapshot, StripView
from spectui.errors import UsageError
from spectui.tui.control.interface import Sink
from spectui.tui.control.opening import Opening
from spectui.tui.control.session import SessionController
from spectui.tui.messages import DraftsReady, Notice, SnapshotReady, SweepReady

_ALONE: Final = StripView()


class _Place:
    """One session of the strip, and what it reported last."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.control = SessionController(opening)
        self.host = self.control.host
        self.seen = Snapshot()


class SessionsController:
    """One session for each opening, the first in front."""

    def __init__(self, *openings: Opening) -> None:
        if len(openings) > MAX_SESSIONS:
            raise UsageError(f"{len(openings)} sessions: there are keys for {MAX_SESSIONS}")
        self._sink: Sink = lambda _message: None
        self._environ: Mapping[str, str] = openings[0].environ if openings else {}
        self._places: list[_Place] = []
        for opening in openings or (Opening(),):
            self._places.append(_Place(self._named_log(opening)))
        self._front = self._places[0]
        self._view = _ALONE
        self._shown: Snapshot | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def front(self) -> SessionController:
        """The session in front."""
        return self._front.control

    def start(self, sink: Sink) -> None:
        """Open what was asked for and begin to report."""
        # What the first frame loaded stays for good: later collections need not walk it.
        gc.collect()
        gc.freeze()
        gc.enable()
        self._sink = sink
        for place in self._places:
            if place is not self._front:
                place.host.in_front = False
            self._begin(place)

    async def shutdown(self) -> None:
        """End every session; one that fails to end keeps no other from ending. Raises what the first one raised."""
        self._closing = True
        ends = [asyncio.ensure_future(place.host.shutdown()) for place in self._places]
        results = await asyncio.gather(*ends, *self._leaving, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def switch(self, number: int) -> None:
        """Bring a session to the front; nothing happens where there is none of that number."""
        if 1 <= number <= len(self._places):
            self._bring(self._places[number - 1])

    async def open_session(self, name: str) -> None:
        """Start a profile in a session of its own, or in the one in front where nothing was opened there.

        Raises SpectuiError for a profile that cannot be loaded, or where all places are taken.
        """
        from spectui.store import profiles  # noqa: PLC0415
        from spectui.store.paths import Folders  # noqa: PLC0415

        if self.front.empty:
            await self.front.load_profile(name)
            return
        self._require_room()
        loaded = await asyncio.to_thread(profiles.load, name, Folders.default())
        self._add(Opening(profile=loaded.profile, name=loaded.name, environ=self._environ))

    async def attach_session(self, url: str) -> None:
        """Attach in a session of its own, or in the one in front where nothing was opened there.

        Raises SpectuiError for what is no address, or where all places are taken.
        """
        if self.front.empty:
            await self.front.attach(url)
        else:
            self._add(Opening(environ=self._environ).at(url))

    async def close_session(self) -> None:
        """End the session in front; its neighbour comes forward at once. Raises UsageError for the only one."""
        if len(self._places) == 1:
            raise UsageError("this is the only session: q quits")
        place = self._front
        index = self._places.index(place)
        self._places.remove(place)
        place.host.in_front = False
        self._bring(self._places[min(index, len(self._places) - 1)])
        # In a task of its own: whoever waits for it here may be cancelled, and its server must end all the same.
        task = asyncio.create_task(place.host.shutdown(), name="close-session")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        await asyncio.shield(task)

    def _require_room(self) -> None:
        if len(self._places) >= MAX_SESSIONS:
            raise UsageError(f"{MAX_SESSIONS} sessions are open: X closes the one in front")

    def _add(self, opening: Opening) -> None:
        self._require_room()
        if self._closing:
            return
        place = _Place(self._named_log(opening))
        self._places.append(place)
        self._begin(place)
        self._bring(place)

    def _named_log(self, opening: Opening) -> Opening:
        """The opening with a log file that no other session writes to."""
        taken = {place.opening.log_name for place in self._places}
        names = (f"llama-server{f'-{n}' if n > 1 else ''}.log" for n in range(1, MAX_SESSIONS + 1))
        return replace(opening, log_name=next(name for name in names if name not in taken))

    def _begin(self, place: _Place) -> None:
        place.control.start(lambda message: self._take(place, message))

    def _bring(self, place: _Place) -> None:
        if place is self._front:
            return
        self._front.host.in_front = False
        self._front = place
        self._sink(DraftsReady(()))
        place.host.come_forward()
        self._show()

    def _take(self, place: _Place, message: Message) -> None:
        """What a session says: all of the one in front, of another its mark, and its notices with its number."""
        if isinstance(message, SnapshotReady):
            place.seen = message.snapshot
            self._show()
            return
        if isinstance(message, SweepReady):
            self._tell_neighbours(self._view)
        if place is self._front:
            self._sink(message)
        elif isinstance(message, Notice):
            open_still = place in self._places
            which = str(self._places.index(place) + 1) if open_still else f"{place.control.label}, closed"
            self._sink(Notice(f"session {which}: {message.text}", message.severity))

    def _show(self) -> None:
        """The session in front beside the marks of all, where either changed."""
        view = self._marks() if len(self._places) > 1 else _ALONE
        self._tell_neighbours(view)
        if view == self._view and self._front.seen is self._shown:
            return
        self._view, self._shown = view, self._front.seen
        self._sink(SnapshotReady(self._shown if view is _ALONE else replace(self._shown, strip=view)))

    def _tell_neighbours(self, view: StripView) -> None:
        """Each session of what the others do on its device, and of the sweeps that they run."""
        sweeps = [place.control.sweep.running for place in self._places]
        for index, place in enumerate(self._places):
            others = {number for other, number in enumerate(sweeps) if other != index and number is not None}
            where = view.marks, index + 1, place.host.devices
            place.host.neighbours.tell(disturbing(*where), frozenset(others), disturbed=disturbed(*where))

    def _marks(self) -> StripView:
        marks = tuple(
            mark_of(
                place.seen,
                number=number,
                label=place.control.label,
                front=place is self._front,
                borrowed=place.host.borrowed,
            )
            for number, place in enumerate(self._places, 1)
        )
        return StripView(marks=marks, shared=shared_devices(marks))
