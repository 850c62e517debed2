"""Work on a server that has nothing else to do: it begins by itself, and traffic or a restart ends it at once.

Apart from the session's commands, because nobody asked for it and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class IdleWork:
    """At most one task; on_problem is told what went wrong, in one line."""

    def __init__(self, on_problem: Callable[[str], None]) -> None:
        self._on_problem = on_problem
        self._task: asyncio.Task[None] | None = None

    def begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start `work`, unless something is at work already."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(work), name="idle-work")

    async def end(self) -> None:
        """Cancel it and wait until it has cleaned up."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  a task that nobody looks at would keep it to itself
            self._on_problem(str(error))
