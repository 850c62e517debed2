"""The device of a session on loan: its server ends while somebody else needs the device, and comes back after it.

A newer command of the session, such as a restart, takes the device back: the borrower is cancelled.
"""

from __future__ import annotations

import asyncio

from spectui.errors import UsageError
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.session.operations import Operations, Work
from spectui.lab.session.session_server import SessionServer


class DeviceLoan:
    """At most one borrower at a time."""

    def __init__(self, server: SessionServer, operations: Operations, neighbours: Neighbours) -> None:
        self._server = server
        self._operations = operations
        self._neighbours = neighbours
        self._loan: asyncio.Task[None] | None = None
        self.lent_to = ""
        """Who has the device, or is about to get it; empty while it is the session's own."""

    @property
    def aside(self) -> str:
        """Why the session's own server or traffic is down, in a sentence; empty while nobody has the device."""
        return f"{self.lent_to} has the device; this server comes back after it" if self.lent_to else ""

    def require_lendable(self, then: str) -> None:
        """Raise UsageError while nobody may borrow the device. then: what to do when somebody may, as a verb."""
        if self.lent_to:
            raise UsageError(f"{self.lent_to} has the device: stop it first, then {then}")
        if self._operations.hurried or self._server.starting:
            raise UsageError(f"the server is starting, or its baseline is measured: {then} when that is done")
        self._neighbours.require_quiet()

    def lend(self, work: Work, *, to: str) -> asyncio.Task[None]:
        """End our own server, or only the traffic on another's; run `work`; go on with what ran.

        to: who has the device meanwhile. Returns what ends when all of that has. Raises UsageError once closed.
        """
        loan = self._operations.urgent(lambda: self._lend(work))
        self._loan, self.lent_to = loan, to
        # One that is cancelled before it begins has nothing else to say that it is over.
        loan.add_done_callback(self._return)
        return loan

    async def _lend(self, work: Work) -> None:
        server, loan, running = self._server, self._loan, self._server.staging.running
        own = running is not None and not running.attached
        try:
            await (server.stop() if own else server.stop_traffic())
            server.note = self.aside
            await work()
        finally:
            server.note = ""
            if loan is not None:
                self._return(loan)
        if own and running is not None:
            await server.launch(running)
        else:
            await server.resume()

    def _return(self, loan: asyncio.Task[None]) -> None:
        """The device is the session's own again, unless somebody else has borrowed it since."""
        if loan is self._loan:
            self._loan, self.lent_to = None, ""
