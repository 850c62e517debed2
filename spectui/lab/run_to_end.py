"""Run one coroutine from a command: SIGINT and SIGTERM cancel it, so that every server of ours is ended first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")


def run_to_end(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of `work`. Raises KeyboardInterrupt when a signal ended it, after it cleaned up."""
    return asyncio.run(_guarded(work))


async def _guarded(work: Coroutine[Any, Any, _T]) -> _T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def end() -> None:
        # A second cancellation would break off the first one's cleaning up.
        if not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, end)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
