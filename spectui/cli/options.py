"""The types of options: numbers in a range, lists of them, and time spans. Nonsense becomes click's one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, Final

import click

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
