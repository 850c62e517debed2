"""What the staged settings would run: command line, problem, and the modes of their binary.

Computed off the tick, only when the staged settings change, since a new binary must first be asked for its help.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from spectui.core.profile import OFF, TuningProfile
from spectui.errors import SpectuiError
from spectui.lab.servers.launcher import HOST, Launcher
from spectui.llama.binary.argv import build_argv, command_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Of one staged profile."""

    command: str = ""
    problem: str = ""
    """Why it cannot be launched; empty when it can."""
    modes: tuple[str, ...] = (OFF,)
    environment: tuple[str, ...] = ()
    """LLAMA_ARG_* variables found in the environment."""


class PreviewKeeper:
    """Keeps the preview of the latest profile; `current` is what is known now."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._of: tuple[TuningProfile, int | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.current = Preview()

    def follow(self, profile: TuningProfile, port: int | None) -> Preview:
        """The latest preview; starts to compute a new one when profile or port changed."""
        if self._of != (profile, port):
            self._of = (profile, port)
            if self._task is not None:
                self._task.cancel()
            self._task = asyncio.create_task(self._compute(profile, port), name="preview")
        return self.current

    async def aclose(self) -> None:
        """End the computation at work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._launcher.aclose()

    async def _compute(self, profile: TuningProfile, port: int | None) -> None:
        names = self._launcher.environment_names
        try:
            binary = await self._launcher.binary(profile)
            capabilities = await self._launcher.capabilities(binary)
        except SpectuiError as error:
            self.current = Preview(problem=str(error), environment=names)
            return
        modes = capabilities.modes
        try:
            argv = build_argv(
                profile, capabilities, binary=str(binary), port=port or profile.server.port or 8080, host=HOST
            )
        except SpectuiError as error:
            self.current = Preview(problem=str(error), modes=modes, environment=names)
            return
        self.current = Preview(command=command_line(argv), modes=modes, environment=names)
