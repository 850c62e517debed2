"""What tests of a screen share: what a panel shows, what was notified, and waiting until workers are done."""

from __future__ import annotations

from textual.pilot import Pilot

from spectui.tui.widgets.panel import Panel


def text(pilot: Pilot[None], widget: str) -> str:
    """The lines of a panel."""
    panel = pilot.app.screen.query_one(widget, Panel)
    lines = "\n".join(panel.render_line(y).text for y in range(panel.size.height))
    return lines.replace("\u00a0", " ")


def notices(pilot: Pilot[None]) -> list[str]:
    """Everything that was notified."""
    return [notice.message for notice in pilot.app._notifications]


async def settle(pilot: Pilot[None]) -> None:
    """Wait until workers are done and shown."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
