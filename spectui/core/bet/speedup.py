"""Acceptance and cost -> predicted speedup by draft length, the best length, and where the bet breaks even.

The textbook form takes verification as free and is a guide. The calibrated form puts what the running settings
really cost into the price of a drafted token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from spectui.core.bet.estimates import CurvePoint

CURVE_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
"""Draft lengths that a curve is drawn through, for a logarithmic axis."""


def expected_tokens(alpha: float, draft_length: int) -> float:
    """E = 1 + alpha + ... + alpha^k, tokens per target pass (Leviathan et al. 2023, eq. 1)."""
    return math.fsum(alpha**j for j in range(draft_length + 1))


def textbook_speedup(tokens: float, draft_length: float, c: float) -> float:
    """E / (1 + k c) in plain steps (Leviathan et al. 2023, theorem 3.8); verification is taken as free."""
    return tokens / (1 + draft_length * c)


def full_speedup(tokens: float, draft_length: int, c: float, v: float, u: float = 0.0) -> float:
    """E / R with R = V(k+1) + (k+1) c + u: since b9109 the draft evaluates one token more than it drafts."""
    return tokens / (v + (draft_length + 1) * c + u)


def break_even_alpha(draft_length: int, c: float) -> float | None:
    """The alpha at which the textbook speedup is 1; None where no alpha below 1 reaches it."""
    target = draft_length * c
    if target >= draft_length:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if expected_tokens(middle, draft_length) - 1 < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def tail_hazard(shares: Sequence[float]) -> float:
    """Mean conditional acceptance over the later half of the positions, to continue a survival curve with."""
    k = len(shares)
    middle = k // 2
    before = shares[middle - 1] if middle else 1.0
    if before <= 0 or shares[-1] <= 0:
        return 0.0
    return min(1.0, math.pow(shares[-1] / before, 1 / (k - middle)))


def continued(shares: Sequence[float], draft_length: int) -> list[float]:
    """S(1) to S(k): measured where it was, then on by the tail's hazard; 0 where nothing was seen."""
    known = list(shares[:draft_length])
    hazard = tail_hazard(shares) if shares else 0.0
    while len(known) < draft_length:
        known.append((known[-1] if known else 1.0) * hazard)
    return known


def tokens_at(shares: Sequence[float], draft_length: int) -> float:
    """E at another length from measured survival: 1 + sum S(j)."""
    return 1 + math.fsum(continued(shares, draft_length))


def implied_c(pass_cost: float, drafted_per_pass: float) -> float | None:
    """(R - 1) / mean d: what a drafted token costs with all that comes along, in plain steps."""
    if drafted_per_pass <= 0:
        return None
    return max(0.0, (pass_cost - 1) / drafted_per_pass)


def curve(
    shares: Sequence[float], c: float, lengths: Sequence[int] = CURVE_LENGTHS
) -> tuple[CurvePoint, ...]:
    """Speedup E(k) / (1 + k c) at each length."""
    return tuple(
        CurvePoint(draft_length=k, speedup=textbook_speedup(tokens_at(shares, k), k, c)) for k in lengths
    )


def best_point(points: Sequence[CurvePoint]) -> CurvePoint | None:
    """The fastest point, the shortest length among equals."""
    return max(points, key=lambda p: (p.speedup, -p.draft_length), default=None)


def verification_cost(measured: Mapping[int, float], tokens: float) -> float:
    """V(n) from points measured in plain steps, V(1) = 1.

    Linear between points, never falling: a pass over more tokens is not cheaper, only noisier. Beyond the last
    point it goes on at the mean slope of the points' upper half.
    """
    points = _rising(measured)
    if len(points) == 1:
        return 1.0
    last = points[-1]
    if tokens > last[0]:
        middle = points[len(points) // 2 - 1 if len(points) > 1 else 0]
        slope = (last[1] - middle[1]) / (last[0] - middle[0])
        return last[1] + slope * (tokens - last[0])
    right = next(i for i, (n, _) in enumerate(points) if n >= tokens and i > 0)
    (n0, v0), (n1, v1) = points[right - 1], points[right]
    return v0 + (v1 - v0) * (tokens - n0) / (n1 - n0)


def _rising(measured: Mapping[int, float]) -> list[tuple[int, float]]:
    """The points in order of n, each at least as high as those before it."""
    points: list[tuple[int, float]] = []
    for n, v in sorted({**measured, 1: 1.0}.items()):
        points.append((n, max(v, points[-1][1]) if points else v))
    return points
