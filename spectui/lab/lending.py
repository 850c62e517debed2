"""A session that steps aside: its server ends while something else needs the device, and comes back after it.

Apart from the session's own commands, because what borrows the device is none of the session's business.
"""

from __future__ import annotations

import asyncio

from spectui.core.snapshot import ServerState
from spectui.lab.operations import Work
from spectui.lab.session import Session


class LendingSession(Session):
    """Lends its device. A newer command, such as a restart, takes it back: the borrower is cancelled."""

    lent_to: str = ""
    """Who has the device now; empty while it is the session's own."""

    @property
    def unsettled(self) -> bool:
        """Whether its server starts or its baseline is measured: what would have to come back does not run yet."""
        starting = {ServerState.STARTING, ServerState.LOADING}
        return self._measuring or (self.server is not None and self.server.state in starting)

    def lend(self, work: Work, *, to: str = "the A/B run") -> asyncio.Task[None]:
        """End our own server, or only the traffic on another's; run `work`; go on with what ran.

        to: who has the device meanwhile. Returns what ends when all of that has.
        """
        return self._operations.urgent(lambda: self._lend(work, to))

    async def _lend(self, work: Work, to: str) -> None:
        running = self.staging.running
        own = running is not None and not running.attached
        await (self._stop_server() if own else self._stop_traffic())
        self.note = f"{to} has the device; this server comes back after it"
        self.lent_to = to
        try:
            await work()
        finally:
            self.note = self.lent_to = ""
        if own and running is not None:
            await self._launch(running)
        else:
            await self._resume()
