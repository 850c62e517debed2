"""Waiting for an end that outlasts a cancellation: who is cancelled meanwhile goes on only after it.

Servers, A/B runs and sweeps end through it, because what begins next takes them as gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def finished(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end. A cancellation of whoever waits is raised after that; the work knows nothing of it."""
    task = asyncio.ensure_future(work)
    cancelled = await _outlasted(task)
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    task.result()


async def ended(task: asyncio.Task[None]) -> None:
    """Wait until a task has cleaned up, also when whoever waits is cancelled, which cancels the task as well."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        if not task.cancelling():
            task.cancel()
        await _outlasted(task)
        raise


async def _outlasted(task: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Wait until a task is done, however often that is cancelled; returns the last cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
