"""The history screen's controller: reads the results store in a thread.

It needs no session. The lab is imported on first use, after the first frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectui.core.views.run_list import RunDetails, RunList
    from spectui.store.paths import Folders


class HistoryControl:
    """Implements HistoryController over the user's results store."""

    def __init__(self, where: Callable[[], Folders]) -> None:
        self._where = where

    async def runs(self, limit: int) -> RunList:
        """The newest runs, so many at most. Raises StoreError."""

        def read() -> RunList:
            from spectui.lab.views.run_list import newest_runs  # noqa: PLC0415
            from spectui.store.results import ResultStore  # noqa: PLC0415

            return newest_runs(ResultStore.default(self._where()), limit)

        return await asyncio.to_thread(read)

    async def details(self, a: int, b: int) -> RunDetails:
        """Two runs side by side. Raises StoreError."""

        def read() -> RunDetails:
            from spectui.lab.views.run_list import side_by_side  # noqa: PLC0415
            from spectui.store.results import ResultStore  # noqa: PLC0415

            return side_by_side(ResultStore.default(self._where()), a, b)

        return await asyncio.to_thread(read)
