"""The user's profile files as the dashboard reads and writes them, off the event loop.

Apart from the bridge, which runs what is in them. Each method raises ProfileError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from spectui.core.profile import TuningProfile
from spectui.tui.control.interface import ProfileOption

if TYPE_CHECKING:
    from spectui.store.paths import Folders
    from spectui.store.profiles import LoadedProfile


class SavedProfiles:
    """where: asked for the folders on first use."""

    def __init__(self, where: Callable[[], Folders]) -> None:
        self._where = where

    async def options(self) -> tuple[ProfileOption, ...]:
        """Saved profiles, then shipped ones."""
        from spectui.store.profiles import list_profiles  # noqa: PLC0415

        entries = await asyncio.to_thread(list_profiles, self._where())
        return tuple(
            ProfileOption(name=e.name, description=e.description, problem=e.problem or "") for e in entries
        )

    async def load(self, name: str) -> LoadedProfile:
        """The profile of this name or path."""
        from spectui.store.profiles import load  # noqa: PLC0415

        return await asyncio.to_thread(load, name, self._where())

    async def save(self, profile: TuningProfile, name: str) -> LoadedProfile:
        """Keep it under this name, in place of one of that name."""
        from spectui.store.profiles import save  # noqa: PLC0415

        return await asyncio.to_thread(save, profile, name, self._where())

    async def remember(self, name: str) -> None:
        """Open this one the next time when nothing is named."""
        from spectui.store.profiles import remember_last  # noqa: PLC0415

        await asyncio.to_thread(remember_last, name, self._where())

    async def last(self) -> str | None:
        """The one that was remembered."""
        from spectui.store.profiles import last_profile  # noqa: PLC0415

        return await asyncio.to_thread(last_profile, self._where())
