"""Paired comparison of two arms: the same prompts in both -> how much faster B is, with its interval and a verdict.

Works on logarithms: answers differ in length and prompts in difficulty, so what is averaged is ln(speed of B over
speed of A) per prompt, and the result is a geometric mean ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import starmap
from random import Random
from statistics import NormalDist
from typing import Final

from spectui.core.bet.intervals import LEVEL, student_quantile
from spectui.core.text import counted

MIN_PAIRS: Final = 8
"""Below this many pairs no interval is given: the coverage was checked from here on."""

DECIDED: Final = 0.03
"""The difference, as a share, that `further_pairs` is about, where servers of equal settings differ by less."""
_CLEAR_OF_LIVES: Final = 1.25
"""So many times what server starts alone can hide: no number of pairs shows what is smaller."""

_POWER: Final = 0.8
"""Chance of seeing that difference where it is real (Cohen 1988, the usual 80 %)."""
_DETECTION: Final = NormalDist().inv_cdf(0.5 + LEVEL / 2) + NormalDist().inv_cdf(_POWER)
"""z + z_power: a difference of so many standard errors shows with that chance."""

MIN_BLOCKS: Final = 4
"""Nor with fewer blocks: what the pairs of a block share could not be told from a difference of the arms."""

_MIN_RESAMPLED: Final = 8
"""From so many units on they are drawn again; with fewer, Student's t."""

_REPLICATES: Final = 1999
FINEST: Final = 1 / (_REPLICATES + 1)
"""The smallest error that so many draws resolve: a smaller one gives the same interval."""
_LEAST_SPREAD: Final = 0.1
"""Share of the pairs' own spread below which a draw's counts as this: a draw of equal values knows no spread."""
_LARGEST: Final = 690.0
"""Bound of a logarithm, so that absurd timings of a server overflow nothing."""
_DRIFT_ERROR: Final = 0.01
"""Error of each of the three drift checks; at 5 % one run in seven would show a drift that is none."""


class Winner(StrEnum):
    """The faster arm, where the interval tells."""

    A = "a"
    B = "b"
    NEITHER = "indistinguishable"


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer of one arm: tokens that target passes committed, and the seconds of decoding them."""

    tokens: int
    seconds: float

    @property
    def log_speed(self) -> float:
        """ln of tokens per second."""
        return math.log(self.tokens) - math.log(self.seconds)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same prompt with the same seed in both arms, both read above 0.

    block: number of the stretch in which arm A and arm B took their turn on the same few prompts.
    """

    prompt: str
    block: int
    a: Reading
    b: Reading

    @property
    def log_ratio(self) -> float:
        """ln of B's speed over A's."""
        return self.b.log_speed - self.a.log_speed


@dataclass(frozen=True, slots=True)
class Shift:
    """The second half of a run over its first, with a 99 % interval."""

    value: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Whether the halves differ by more than chance."""
        return self.low > 1 or self.high < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What changed on the way: the speed of each arm, which pairing cancels, and the ratio, which it does not.

    None where the run is too short for halves.
    """

    a: Shift | None = None
    b: Shift | None = None
    ratio: Shift | None = None

    @property
    def machine(self) -> bool:
        """Whether an arm became faster or slower during the run."""
        return any(change is not None and change.seen for change in (self.a, self.b))

    @property
    def result(self) -> bool:
        """Whether the ratio itself changed, so that one number does not describe the run."""
        return self.ratio is not None and self.ratio.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """B over A; `ratio` is None without a pair, `low` and `high` with fewer than 8 of them or 4 blocks."""

    pairs: int
    ratio: float | None = None
    """Geometric mean of B's tokens per second over A's."""
    low: float | None = None
    high: float | None = None
    further_pairs: int | None = None
    """Pairs beyond these that would show a difference of `decides` with a power of 80 %."""
    decides: float = DECIDED
    """As a share."""
    own_half_width: float | None = None
    """As `half_width`, of what more pairs make narrower only."""
    by_block: bool = False
    """Whether noise that neighbours share made the interval wider than single pairs say."""
    drift: Drift = Drift()

    @property
    def verdict(self) -> Winner:
        """The faster arm; neither while the interval contains 1 or is not known."""
        if self.low is not None and self.low > 1:
            return Winner.B
        if self.high is not None and self.high < 1:
            return Winner.A
        return Winner.NEITHER

    @property
    def half_width(self) -> float | None:
        """Half the interval as a share of the ratio: 0.03 is 3 % to either side."""
        if self.low is None or self.high is None or self.low <= 0:
            return None
        return math.sqrt(self.high / self.low) - 1


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is drawn as one: a pair, or all pairs of a block. total: sum of their values."""

    total: float
    size: int


def compare(pairs: Sequence[Pair], *, error: float = 1 - LEVEL, between: float = 0.0) -> Comparison:
    """Compare both arms over pairs in the order in which they were measured.

    error: chance of an interval that misses; a stop rule hands out less per look (see `looks`). between: standard
    error of the ratio that all pairs share and none shows, as `intervals.TWO_STARTS_ERROR` of two server starts.
    """
    return replace(_compared([pairs], error=error, between=between), drift=_drift(pairs))


def compare_together(
    workloads: Mapping[str, Sequence[Pair]], *, error: float = 1 - LEVEL, between: float = 0.0
) -> Comparison:
    """The same over several workloads, each of which counts alike, however many pairs it has."""
    return _compared(list(workloads.values()), error=error, between=between)


def sentence(found: Comparison, where: str) -> str:
    """The result in one sentence; `where` is the workload."""
    prompts = counted(found.pairs, "prompt")
    if found.ratio is None or found.low is None or found.high is None:
        return f"undecided on {where}: {prompts}, an interval takes {MIN_PAIRS} in {MIN_BLOCKS} blocks"
    if found.verdict is Winner.NEITHER:
        said = f"indistinguishable on {where} ({found.low:.2f} to {found.high:.2f}), {prompts}"
        if not found.further_pairs:
            return f"{said}: a difference of {found.decides:.0%} would have shown"
        return f"{said}: about {_about(found.further_pairs)} more would decide {found.decides:.0%}"
    fast, slow, ratio, low, high = "B", "A", found.ratio, found.low, found.high
    if found.verdict is Winner.A:
        fast, slow, ratio, low, high = "A", "B", 1 / ratio, 1 / high, 1 / low
    digits = 2 if low >= 1.01 else 3
    span = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{fast} is {ratio:.{digits}f}x faster than {slow} ({span}) on {where}, {prompts}"


def _compared(strata: Sequence[Sequence[Pair]], *, error: float, between: float) -> Comparison:
    strata = [pairs for pairs in strata if pairs]
    if not strata:
        return Comparison(pairs=0)
    values = [[(p.block, p.log_ratio) for p in pairs] for pairs in strata]
    number = sum(map(len, strata))
    blocks = [len({p.block for p in pairs}) for pairs in strata]
    if min(map(len, strata)) < MIN_PAIRS or min(blocks) < MIN_BLOCKS:
        means = [math.fsum(value for _, value in v) / len(v) for v in values]
        return Comparison(pairs=number, ratio=_exp(math.fsum(means) / len(means)))
    units = [_units(v, error) for v in values]
    middle, spread = _moments(units)
    own = spread * _critical(units, error)
    half = math.hypot(own, between * NormalDist().inv_cdf(1 - error / 2))
    decides = _decides(between)
    return Comparison(
        pairs=number,
        ratio=_exp(middle),
        low=_exp(middle - half),
        high=_exp(middle + half),
        further_pairs=_further(number, spread, between, decides),
        decides=decides,
        own_half_width=_exp(own) - 1,
        by_block=any(len(u) < len(v) for u, v in zip(units, values, strict=True)),
    )


def _exp(logarithm: float) -> float:
    return math.exp(max(-_LARGEST, min(_LARGEST, logarithm)))


def _about(number: int) -> int:
    """Two digits: the spread that it comes from is not known better."""
    return number if number < 100 else round(number, 1 - int(math.log10(number)))


def _single(values: Iterable[tuple[int, float]]) -> list[_Unit]:
    return [_Unit(value, 1) for _, value in values]


def _blocks(values: Iterable[tuple[int, float]]) -> list[_Unit]:
    sums: dict[int, tuple[float, int]] = {}
    for block, value in values:
        total, size = sums.get(block, (0.0, 0))
        sums[block] = total + value, size + 1
    return list(starmap(_Unit, sums.values()))


def _units(values: Sequence[tuple[int, float]], error: float) -> list[_Unit]:
    """Single pairs, or whole blocks where those give the wider interval: shared noise is no evidence twice.

    With too few blocks their spread says nothing.
    """
    single, blocks = _single(values), _blocks(values)
    if len(blocks) < MIN_BLOCKS:
        return single

    def width(units: list[_Unit]) -> float:
        return _moments([units])[1] * student_quantile(1 - error / 2, len(units) - 1)

    return max(single, blocks, key=width)


def _moments(strata: Sequence[Sequence[_Unit]]) -> tuple[float, float]:
    """Mean of the strata's means, and its standard error for units of unequal size (Cochran 1977, 9A)."""
    middle = variance = 0.0
    for units in strata:
        size = sum(u.size for u in units)
        mean = sum(u.total for u in units) / size
        squares = sum((u.total - u.size * mean) ** 2 for u in units)
        middle += mean
        variance += len(units) / (len(units) - 1) * squares / size**2
    return middle / len(strata), math.sqrt(variance) / len(strata)


def _critical(strata: Sequence[Sequence[_Unit]], error: float) -> float:
    """How many standard errors the interval reaches to either side.

    Symmetric percentile-t over units drawn again (Hall 1988, On symmetric bootstrap confidence intervals). The
    draws are seeded: the same pairs give the same interval.
    """
    fewest = min(map(len, strata))
    if fewest < _MIN_RESAMPLED:
        return student_quantile(1 - error / 2, fewest - 1)
    rng = Random(1)  # noqa: S311  reproducible, no secret
    middle, whole = _moments(strata)
    if whole <= 0:
        return 0.0
    found = []
    for _ in range(_REPLICATES):
        drawn = [rng.choices(units, k=len(units)) for units in strata]
        mean, spread = _moments(drawn)
        found.append(abs(mean - middle) / max(spread, _LEAST_SPREAD * whole))
    found.sort()
    return found[min(_REPLICATES - 1, math.ceil((1 - error) * (_REPLICATES + 1)) - 1)]


def _decides(between: float) -> float:
    """The difference that pairs can decide, as a share: 3 %, or what stands clear of what starts hide."""
    return max(DECIDED, math.expm1(_CLEAR_OF_LIVES * _DETECTION * between))


def _further(number: int, spread: float, between: float, decides: float) -> int:
    """Pairs still missing until that difference shows: n = s^2 / ((ln(1 + d) / (z + z_power))^2 - between^2)."""
    allowed = (math.log1p(decides) / _DETECTION) ** 2 - between**2
    return max(0, math.ceil(number * spread**2 / allowed - number))


def _drift(pairs: Sequence[Pair]) -> Drift:
    if len(pairs) < MIN_PAIRS:
        return Drift()
    middle = pairs[len(pairs) // 2].block
    halves = [p for p in pairs if p.block < middle], [p for p in pairs if p.block >= middle]
    if min(map(len, halves)) < MIN_PAIRS // 2:
        return Drift()

    def change(value: Callable[[Pair], float]) -> Shift:
        return _change(*([(p.block, value(p)) for p in half] for half in halves))

    return Drift(
        a=change(lambda p: p.a.log_speed),
        b=change(lambda p: p.b.log_speed),
        ratio=change(lambda p: p.log_ratio),
    )


def _change(first: Sequence[tuple[int, float]], second: Sequence[tuple[int, float]]) -> Shift:
    """Difference of two means with unequal variances; the degrees of freedom are the smaller half's."""
    halves = [_units(first, _DRIFT_ERROR), _units(second, _DRIFT_ERROR)]
    (before, error_before), (after, error_after) = (_moments([units]) for units in halves)
    degrees = min(map(len, halves)) - 1
    half = math.hypot(error_before, error_after) * student_quantile(1 - _DRIFT_ERROR / 2, degrees)
    by = after - before
    return Shift(_exp(by), _exp(by - half), _exp(by + half))
