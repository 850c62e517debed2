"""What the command line's arguments mean: number types, profiles and addresses, and workloads.

Apart from the commands; every function raises SpectuiError, one line, for input that cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from spectui.errors import UsageError

if TYPE_CHECKING:
    from spectui.core.profile import TuningProfile
    from spectui.store.paths import Folders

_SLOWEST: Final = 0.001
_FASTEST: Final = 1e7
_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:\d{1,5}(/.*)?|\[[0-9a-fA-F:]+\]:\d{1,5}(/.*)?")
_DURATION: Final = re.compile(r"(?:(?P<h>\d{1,4})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,8})s?)?")


class Numbers(click.ParamType[tuple[int, ...]]):
    """Comma-separated whole numbers in a range."""

    name = "N,N,..."

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers in the order given, each once."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers, such as 1,2,4,8", param, ctx)
        if not all(self._low <= n <= self._high for n in numbers):
            self.fail(f"{value!r}: each number must be from {self._low} to {self._high}", param, ctx)
        return tuple(dict.fromkeys(numbers))


class Reals(click.ParamType[tuple[float, ...]]):
    """Comma-separated numbers in a range."""

    name = "X,X,..."

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers in the order given, each once."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers, such as 0,0.5", param, ctx)
        if not all(self._low <= n <= self._high for n in numbers):
            self.fail(f"{value!r}: each number must be from {self._low:g} to {self._high:g}", param, ctx)
        return tuple(dict.fromkeys(numbers))


class Real(click.FloatRange):
    """A finite number in a range; NaN would pass every comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, if it is one and in range."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Duration(click.ParamType[float]):
    """A time span above 0, in seconds: 90, 90s, 10m, 1h30m."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Its seconds."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        seconds = (
            0.0
            if found is None
            else sum(int(found[unit] or 0) * factor for unit, factor in (("h", 3600), ("m", 60), ("s", 1)))
        )
        if seconds <= 0:
            self.fail(f"{str(value)[:40]!r} is no time span, such as 90s, 10m or 1h30m", param, ctx)
        return float(seconds)


def listed(numbers: Iterable[float]) -> str:
    """Numbers as Numbers and Reals take them."""
    return ",".join(f"{number:g}" for number in numbers)


def target_of(text: str) -> TuningProfile:
    """A profile by name or file, or a server by its address."""
    from spectui.core.profile import ServerSettings, TuningProfile  # noqa: PLC0415

    if "://" in text or (_HOST_AND_PORT.fullmatch(text) and not Path(text).exists()):
        return TuningProfile(server=ServerSettings(url=checked_url(text)))
    return load_profile(text)


def load_profile(name: str) -> TuningProfile:
    """The profile of that name or file."""
    from spectui.store.profiles import load  # noqa: PLC0415

    return load(name, folders()).profile


def folders() -> Folders:
    """This user's folders."""
    from spectui.store.paths import Folders  # noqa: PLC0415

    return Folders.default()


def checked_url(text: str) -> str:
    """An address as a base URL."""
    from spectui.llama.http.address import server_address  # noqa: PLC0415

    return server_address(text)


def with_baseline(profile: TuningProfile, text: str) -> TuningProfile:
    """The profile with a stated plain speed, or with a second server's address."""
    from spectui.core.profile import BaselineSettings  # noqa: PLC0415

    with suppress(ValueError):
        speed = float(text)
        if not _SLOWEST <= speed <= _FASTEST:
            raise UsageError(
                f"--baseline {text}: a speed is from {_SLOWEST:g} to {_FASTEST:g} tokens per second"
            )
        return replace(profile, baseline=BaselineSettings(tokens_per_second=speed))
    return replace(profile, baseline=BaselineSettings(url=checked_url(text)))


def workloads_of(text: str | None, profile: TuningProfile) -> tuple[str, ...]:
    """Names of workloads that exist; the profile's own without any."""
    from spectui.lab.workloads.workloads import load_workload  # noqa: PLC0415

    names = tuple(dict.fromkeys((profile.traffic.workload if text is None else text).split(",")))
    for name in names:
        load_workload(profile.with_traffic(workload=name).traffic)
    return names
