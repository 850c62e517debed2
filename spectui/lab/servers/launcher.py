"""A profile -> a launch plan: everything that starting a server takes, checked before anything is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spectui.core.profile import TuningProfile, used_draft
from spectui.errors import LaunchError
from spectui.llama.binary.argv import build_argv, child_environment, command_line
from spectui.llama.binary.capabilities import Capabilities
from spectui.llama.binary.find import BinaryProbe, Device, find_binary, list_devices
from spectui.llama.process.ready import free_port

_NO_DEVICE: Final = "none"
HOST: Final = "127.0.0.1"
_KEY_VARIABLE: Final = "LLAMA_API_KEY"
"""Variable that llama-server reads its key from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything that starting a server takes, checked beforehand."""

    profile: TuningProfile
    binary: Path
    capabilities: Capabilities
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    inherited_names: tuple[str, ...]
    """LLAMA_ARG_* variables found in our environment."""
    port: int
    api_key: str | None = field(default=None, repr=False)
    """Key that the server asks for; it travels in its environment, never on the command line."""

    @property
    def command(self) -> str:
        """The command line, as a shell takes it."""
        return command_line(self.argv)


class Launcher:
    """Profiles -> launch plans, asking each binary once what it accepts. say: told where that takes long."""

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, say: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._probe = BinaryProbe(say=say)
        self._environ = dict(os.environ if environ is None else environ)

    async def plan(self, profile: TuningProfile) -> LaunchPlan:
        """Check a profile against its binary.

        Raises BinaryError, FlagError, UsageError, or LaunchError for a model file that is not there.
        """
        binary = await self.binary(profile)
        capabilities = await self.capabilities(binary)
        port = profile.server.port or free_port(HOST)
        if names_devices(profile):
            for problem in unknown_devices(profile, await list_devices(binary)):
                raise problem
        argv = build_argv(profile, capabilities, binary=str(binary), port=port, host=HOST)
        for role, path in missing_models(profile):
            code = "model-missing" if role == "target" else "draft-model-missing"
            raise LaunchError(f"the {role} model {path} does not exist: correct the path", code=code)
        environment, names = child_environment(
            self._environ, inherit=profile.server.inherit_llama_env, caps=capabilities
        )
        key = self._environ.get(profile.server.api_key_env or "")
        if key:
            environment[_KEY_VARIABLE] = key
        return LaunchPlan(
            profile=profile,
            binary=binary,
            capabilities=capabilities,
            argv=argv,
            environment=environment,
            inherited_names=names,
            port=port,
            api_key=key or (environment.get(_KEY_VARIABLE) if profile.server.inherit_llama_env else None),
        )

    async def aclose(self) -> None:
        """End what is still being asked of a binary."""
        await self._probe.aclose()

    @property
    def environment_names(self) -> tuple[str, ...]:
        """LLAMA_ARG_* variables of our environment."""
        return child_environment(self._environ, inherit=False)[1]

    async def binary(self, profile: TuningProfile) -> Path:
        """The llama-server of a profile. Raises BinaryError."""
        return await asyncio.to_thread(find_binary, profile.server.binary, self._environ)

    async def capabilities(self, binary: Path) -> Capabilities:
        """What a binary accepts. Raises BinaryError."""
        return await self._probe.capabilities(binary)


def names_devices(profile: TuningProfile) -> bool:
    """Whether the profile says on which devices a model runs."""
    return bool(profile.server.device or profile.speculation.draft_device)


def unknown_devices(profile: TuningProfile, offered: Sequence[Device]) -> tuple[LaunchError, ...]:
    """Devices that the profile names and the binary does not list: it would end with a long help text."""
    wanted = (
        ("server.device", profile.server.device),
        ("speculation.draft_device", profile.speculation.draft_device),
    )
    known = [device.name for device in offered]
    return tuple(
        LaunchError(
            f"{key}: this binary has no device {name}; it has {', '.join(known) or 'the CPU only'}",
            code="flag-value",
        )
        for key, value in wanted
        for name in (value or "").split(",")
        if name and name != _NO_DEVICE and name not in known
    )


def missing_models(profile: TuningProfile) -> tuple[tuple[str, str], ...]:
    """Role (target or draft) and path of each model that the profile names, needs and that is not there."""
    named = (("target", profile.server.model), ("draft", used_draft(profile.speculation)))
    return tuple((role, path) for role, path in named if path is not None and not Path(path).is_file())
