"""What is shown before there is a session: what is being opened, the demo's building, and why nothing could be."""

from __future__ import annotations

from spectui.core.profile import TuningProfile
from spectui.core.verdict.verdict import Verdict
from spectui.core.views.snapshot import ServerState, ServerView, SettingsView, Snapshot
from spectui.errors import SpectuiError
from spectui.tui.control.opening import Opening


def beginning(opening: Opening) -> Snapshot:
    """What is being opened, with its own settings."""
    staged = opening.profile or TuningProfile()
    view = ServerView(state=ServerState.STARTING, owned=not staged.attached, url=staged.server.url)
    verdict = Verdict(headline="building the demo's models, once" if opening.demo else "starting")
    return Snapshot(server=view, settings=SettingsView(staged=staged), verdict=verdict)


def building(share: float, note: str) -> Snapshot:
    """How far the demo's models are. share: from 0 to 1."""
    return Snapshot(server=ServerView(state=ServerState.LOADING, owned=True, progress=share, note=note))


def failed(error: SpectuiError) -> Snapshot:
    """Why nothing could be opened."""
    from spectui.core.verdict.verdict import Facts, judge  # noqa: PLC0415  not needed for the first frame
    from spectui.lab.servers.server import failure_of  # noqa: PLC0415

    verdict = judge(Facts(mode="off", draft_length=1), (failure_of(error),))
    return Snapshot(server=ServerView(state=ServerState.FAILED, owned=True), verdict=verdict)
