"""A session that steps aside: its server ends while something else needs the device, and comes back after it.

Apart from the session's own commands, because what borrows the device is none of the session's business.
"""

from __future__ import annotations

import asyncio

from spectui.core.views.snapshot import ServerState
from spectui.errors import UsageError
from spectui.lab.session.operations import Work
from spectui.lab.session.session import Session


class LendingSession(Session):
    """Lends its device. A newer command, such as a restart, takes it back: the borrower is cancelled."""

    lent_to: str = ""
    """Who has the device, or is about to get it; empty while it is the session's own."""
    _loan: asyncio.Task[None] | None = None

    @property
    def aside(self) -> str:
        """Why its own server or traffic is down, in a sentence; empty while nobody has the device."""
        return f"{self.lent_to} has the device; this server comes back after it" if self.lent_to else ""

    @property
    def unsettled(self) -> bool:
        """Whether a command is at work or a server loads: what would have to come back does not run yet."""
        starting = {ServerState.STARTING, ServerState.LOADING}
        return self._operations.hurried or (self.server is not None and self.server.state in starting)

    def require_lendable(self, then: str) -> None:
        """Raise UsageError while nobody may borrow the device. then: what to do when somebody may, as a verb."""
        if self.lent_to:
            raise UsageError(f"{self.lent_to} has the device: stop it first, then {then}")
        if self.unsettled:
            raise UsageError(f"the server is starting, or its baseline is measured: {then} when that is done")
        self.neighbours.require_quiet()

    def lend(self, work: Work, *, to: str = "the A/B run") -> asyncio.Task[None]:
        """End our own server, or only the traffic on another's; run `work`; go on with what ran.

        to: who has the device meanwhile. Returns what ends when all of that has. Raises UsageError once closed.
        """
        loan = self._operations.urgent(lambda: self._lend(work))
        self._loan, self.lent_to = loan, to
        # One that is cancelled before it begins has nothing else to say that it is over.
        loan.add_done_callback(self._return)
        return loan

    async def _lend(self, work: Work) -> None:
        loan, running = self._loan, self.staging.running
        own = running is not None and not running.attached
        try:
            await (self._stop_server() if own else self._stop_traffic())
            self.note = self.aside
            await work()
        finally:
            self.note = ""
            if loan is not None:
                self._return(loan)
        if own and running is not None:
            await self._launch(running)
        else:
            await self._resume()

    def _return(self, loan: asyncio.Task[None]) -> None:
        """The device is the session's own again, unless somebody else has borrowed it since."""
        if loan is self._loan:
            self._loan, self.lent_to = None, ""
