"""Commands that take a while, one at a time: an urgent one cancels those before it, a patient one waits its turn.

Whatever an operation raises reaches one handler; nothing is lost in a task that nobody looks at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spectui.errors import UsageError

Work = Callable[[], Awaitable[None]]


class Operations:
    """The next operation begins when the one before has cleaned up, however it ended.

    Once closed, both kinds raise UsageError: what they would start nobody would end.
    """

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._urgent: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def hurried(self) -> bool:
        """Whether an urgent operation runs or waits."""
        return self._urgent is not None and not self._urgent.done()

    def urgent(self, work: Work) -> asyncio.Task[None]:
        """Cancel what runs or waits, then run this; returns what ends when it has, however it ended."""
        self._cancel_all()
        self._urgent = self._begin(work)
        return self._urgent

    def patient(self, work: Work) -> None:
        """Run this when everything before it has ended."""
        self._begin(work)

    async def settled(self) -> None:
        """Wait until nothing runs or waits."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def aclose(self) -> None:
        """Cancel everything and wait until it has cleaned up; nothing begins any more."""
        self._closed = True
        self._cancel_all()
        await self.settled()

    def _begin(self, work: Work) -> asyncio.Task[None]:
        if self._closed:
            raise UsageError("this session is closed: open the profile again")
        task = asyncio.create_task(self._run(work), name="operation")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, work: Work) -> None:
        async with self._lock:
            try:
                await work()
            except Exception as error:  # noqa: BLE001  the one handler; a task's exception would be seen by nobody
                self._on_error(error)

    def _cancel_all(self) -> None:
        for task in self._tasks:
            # A second cancellation would break off the first one's cleaning up.
            if not task.cancelling():
                task.cancel()


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
