"""A run that borrows the device: the session's server steps aside for A/B or a sweep, and comes back after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from spectui.errors import SpectuiError
from spectui.lab.servers.cancel_shield import ended
from spectui.store.fault_log import fault

if TYPE_CHECKING:
    from spectui.lab.session.session import Session


class WatchedRun(Protocol):
    """What is run, and shown on a screen."""

    @property
    def ending(self) -> bool:
        """Whether it was told to stop."""

    async def check(self) -> None:
        """Make sure that it can be started. Raises SpectuiError."""

    async def run(self) -> None:
        """Run to the end; what fails on the way is shown, not raised."""

    def stopping(self) -> None:
        """Show that its servers are being ended."""

    def settle(self) -> None:
        """Show that it stopped, where it neither began nor failed."""

    def failed(self, problem: str) -> None:
        """Show why it ended."""


class BorrowedRun:
    """One after the other, of one kind. session: the one whose device it is; None while there is none.

    name: of whoever has the device meanwhile. verb: what the user wants to do with it.
    """

    def __init__(self, session: Callable[[], Session | None], *, name: str, verb: str) -> None:
        self._session = session
        self._name = name
        self._verb = verb
        self._run: WatchedRun | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, run: WatchedRun) -> None:
        """Check `run` and begin it; of one that cannot begin it is shown why, and nothing was stopped for it."""
        session, loan = self._session(), None
        self._run, self._task = run, None
        try:
            await run.check()
            # Meanwhile the session may have been closed, or its device lent to somebody else.
            if session is not None and self._session() is session and not run.ending:
                session.device.require_lendable(self._verb)
                loan = session.device.lend(lambda: self._work(run), to=self._name)
                loan.add_done_callback(lambda _task: run.settle())
        except SpectuiError as error:
            run.failed(str(error))
        finally:
            if loan is None:
                run.settle()

    def stop(self) -> None:
        """End the run that goes on; its servers are down when it shows that it stopped."""
        if self._run is not None:
            self._run.stopping()
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def _work(self, run: WatchedRun) -> None:
        if run.ending:
            return
        self._task = asyncio.create_task(run.run(), name=self._name)
        await ended(self._task)
        error = None if self._task.cancelled() else self._task.exception()
        if error is not None:
            run.failed(fault(error))
            raise error
