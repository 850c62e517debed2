"""What a command is about: a profile by name or file, a server by its address, workloads, this user's folders.

Every function raises SpectuiError, one line, for input that cannot be used.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from spectui.core.profile import BaselineSettings, ServerSettings, TuningProfile
from spectui.errors import UsageError
from spectui.lab.workloads.workloads import load_workload
from spectui.llama.http.address import server_address
from spectui.store.paths import Folders
from spectui.store.profiles import load

_SLOWEST: Final = 0.001
_FASTEST: Final = 1e7
_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:\d{1,5}(/.*)?|\[[0-9a-fA-F:]+\]:\d{1,5}(/.*)?")


def target_of(text: str) -> TuningProfile:
    """A profile by name or file, or a server by its address."""
    if "://" in text or (_HOST_AND_PORT.fullmatch(text) and not Path(text).exists()):
        return TuningProfile(server=ServerSettings(url=server_address(text)))
    return load_profile(text)


def load_profile(name: str) -> TuningProfile:
    """The profile of that name or file."""
    return load(name, Folders.default()).profile


def with_baseline(profile: TuningProfile, text: str) -> TuningProfile:
    """The profile with a stated plain speed, or with a second server's address."""
    with suppress(ValueError):
        speed = float(text)
        if not _SLOWEST <= speed <= _FASTEST:
            raise UsageError(
                f"--baseline {text}: a speed is from {_SLOWEST:g} to {_FASTEST:g} tokens per second"
            )
        return replace(profile, baseline=BaselineSettings(tokens_per_second=speed))
    return replace(profile, baseline=BaselineSettings(url=server_address(text)))


def workloads_of(text: str | None, profile: TuningProfile) -> tuple[str, ...]:
    """Names of workloads that exist; the profile's own without any."""
    names = tuple(dict.fromkeys((profile.traffic.workload if text is None else text).split(",")))
    for name in names:
        load_workload(profile.with_traffic(workload=name).traffic)
    return names
