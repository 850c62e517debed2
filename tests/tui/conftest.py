from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.pilot import Pilot

from spectui.core.views.snapshot import Snapshot
from spectui.tui.app import SpectuiApp
from tests.tui.fakes import FakeController

Opener = Callable[..., AbstractAsyncContextManager[tuple[Pilot[None], FakeController]]]


@pytest.fixture
def opened() -> Opener:
    """Opens the app on a snapshot, with a controller that records."""

    @asynccontextmanager
    async def open_app(
        snapshot: Snapshot | None = None,
        *,
        size: tuple[int, int] = (80, 24),
        welcome: bool = False,
        controller: FakeController | None = None,
    ) -> AsyncIterator[tuple[Pilot[None], FakeController]]:
        controller = controller or FakeController(snapshot)
        app = SpectuiApp(controller, welcome=welcome)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.pause()
            yield pilot, controller

    return open_app
