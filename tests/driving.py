"""The whole dashboard driven as a user drives it, for live tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from spectui.core.views.snapshot import Snapshot
from spectui.store.paths import Folders
from spectui.store.profiles import load
from spectui.tui.app import SpectuiApp
from spectui.tui.control.opening import Opening
from spectui.tui.control.sessions import SessionsController


@dataclass
class Driven:
    """The app with its pilot."""

    app: SpectuiApp
    pilot: Pilot[None]

    @property
    def snapshot(self) -> Snapshot:
        return self.app.snapshot

    async def until(self, fits: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait until the screen is as it should be; the reason is what is missing."""
        try:
            async with asyncio.timeout(seconds):
                while not fits():  # noqa: ASYNC110  nothing signals what is on screen
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = self.snapshot
            pytest.fail(
                f"never came: {what}; {shown.server}, {shown.verdict.headline}, {shown.log_tail[-3:]}"
            )

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def text(self, widget: str) -> str:
        """What stands in a part of the main screen."""
        panel = self.app.screen.query_one(widget, Widget)
        return "\n".join(panel.render_line(y).text for y in range(panel.size.height))


@asynccontextmanager
async def strip_of(*profile_files: Path) -> AsyncIterator[Driven]:
    """The dashboard on these profiles' files, as `spectui run FILE...` opens it; ended on the way out."""
    openings = [
        Opening(profile=load(str(path), Folders.default()).profile, name=str(path), environ=dict(os.environ))
        for path in profile_files
    ]
    controller = SessionsController(*openings)
    app = SpectuiApp(controller)
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            yield Driven(app, pilot)
    finally:
        await controller.shutdown()


@asynccontextmanager
async def dashboard(profile_file: Path) -> AsyncIterator[Driven]:
    """The dashboard on one profile's file."""
    async with strip_of(profile_file) as driven:
        yield driven


def servers(parent: psutil.Process | None = None) -> list[psutil.Process]:
    """Servers with a model of a process, else of this one."""
    return [child for child in (parent or psutil.Process()).children() if _serves(child)]


def _serves(process: psutil.Process) -> bool:
    """A server that is only asked for its options ends at any moment."""
    try:
        argv = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return "-m" in argv and "llama-server" in argv[0]
