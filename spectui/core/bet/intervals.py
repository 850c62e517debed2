"""Interval arithmetic for proportions and ratios over clusters: Student quantiles, Wilson, ratio estimators.

Speed, tokens per pass and acceptance all have the same intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

LEVEL: Final = 0.95
"""Confidence of every interval that is shown."""

START_ERROR: Final = 0.015
"""Standard error that each server start brings along, as a share of its speed, which no run within it shows.

Identical restarts of b10434 on two cores spread over 4 % without speculation, and the range of a handful of starts
is two to three of their standard errors; the ratios of eight pairs of equal servers spread by 2.4 % beyond their
intervals.
"""
TWO_STARTS_ERROR: Final = math.hypot(START_ERROR, START_ERROR)
"""The same for a ratio of speeds that were measured in two starts."""

MIN_CLUSTERS: Final = 5
"""Below this a variance between clusters says nothing, and the variance between passes is used."""


def student_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t by the Cornish-Fisher series (Abramowitz and Stegun 26.7.5).

    Within 1 % of the exact value from 4 degrees of freedom on, at the 97.5 % point.
    """
    z = NormalDist().inv_cdf(probability)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / degrees + g2 / degrees**2 + g3 / degrees**3 + g4 / degrees**4


def wilson(share: float, effective: float, quantile: float) -> tuple[float, float]:
    """Wilson score interval of a share seen in `effective` independent trials (Wilson 1927)."""
    q2 = quantile * quantile
    middle = (share + q2 / (2 * effective)) / (1 + q2 / effective)
    inside = share * (1 - share) / effective + q2 / (4 * effective * effective)
    half = quantile * math.sqrt(max(0.0, inside)) / (1 + q2 / effective)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class RatioSums:
    """Sufficient sums of one cluster for the ratio sum x / sum y, members counted by `n`."""

    n: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def plus(self, x: float, y: float) -> RatioSums:
        """These sums with one more member."""
        return RatioSums(
            self.n + 1, self.x + x, self.y + y, self.xx + x * x, self.xy + x * y, self.yy + y * y
        )

    def joined(self, other: RatioSums) -> RatioSums:
        """The sums of both clusters as one."""
        return RatioSums(
            self.n + other.n,
            self.x + other.x,
            self.y + other.y,
            self.xx + other.xx,
            self.xy + other.xy,
            self.yy + other.yy,
        )


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio, the variance of its estimator and the quantile for its interval; None where unknowable."""

    value: float
    variance: float | None
    quantile: float
    trials: float
    """Sum of the denominators."""

    @property
    def standard_error(self) -> float | None:
        """Half the interval over 1.96: what a normal spread of the same interval would have."""
        return None if self.variance is None else math.sqrt(self.variance) * self.quantile / 1.96

    def interval(self) -> tuple[float, float] | None:
        """Symmetric interval, for a ratio that is not a share."""
        if self.variance is None:
            return None
        half = self.quantile * math.sqrt(self.variance)
        return self.value - half, self.value + half

    def share_interval(self) -> tuple[float, float] | None:
        """Wilson interval at the effective number of trials, for a ratio between 0 and 1."""
        if self.variance is None:
            return None
        spread = self.value * (1 - self.value)
        effective = self.trials
        if spread > 0 and self.variance > 0:
            effective = min(spread / self.variance, self.trials * 4)
        return wilson(self.value, effective, self.quantile)


def ratio(clusters: Sequence[RatioSums]) -> Ratio | None:
    """Ratio estimator clustered by request (Cochran, Sampling Techniques, 6.3 and 9A).

    The variance is the larger of the one between members and, from five clusters on, the one between clusters:
    few clusters can agree by chance. None where the denominator is 0.
    """
    total = RatioSums()
    for cluster in clusters:
        total = total.joined(cluster)
    if total.y <= 0:
        return None
    r = total.x / total.y
    variance, quantile = None, student_quantile(0.5 + LEVEL / 2, max(1, total.n - 1))
    if total.n > 1:
        residual = max(0.0, total.xx - 2 * r * total.xy + r * r * total.yy)
        variance = total.n / (total.n - 1) * residual / total.y**2
    used = [c for c in clusters if c.n]
    if len(used) >= MIN_CLUSTERS and variance is not None:
        between = sum((c.x - r * c.y) ** 2 for c in used) * len(used) / (len(used) - 1) / total.y**2
        by_cluster = student_quantile(0.5 + LEVEL / 2, len(used) - 1)
        if between * by_cluster**2 > variance * quantile**2:
            variance, quantile = between, by_cluster
    return Ratio(r, variance, quantile, total.y)
