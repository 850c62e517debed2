"""Acceptance and the cost of passes -> predicted speedup at any draft length, ends of requests included.

A draft is cut to the room that a request has left but one, so that short requests feel a long draft less than
E / R says. Where the agreements along the text are known they are walked; else the expected passes of a request
follow from the survival curve, from the request's end backwards, token by token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from spectui.core.bet.agreement import Agreements
from spectui.core.bet.estimates import CurvePoint
from spectui.core.bet.speedup import CURVE_LENGTHS, continued

_LONGEST_REQUEST: Final = 256
"""Beyond so many tokens the end of a request changes nothing that could be seen."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """What a request of some tokens is expected to take."""

    passes: float
    steps: float
    """In plain steps of the target."""


def request_cost(
    shares: Sequence[float], draft_length: int, tokens: int, pass_cost: Callable[[int], float]
) -> RequestCost:
    """Expected passes and plain steps for `tokens` tokens after the free first one.

    pass_cost gives R of a pass with d drafted tokens. With r tokens left d = min(k, r - 1); the pass accepts a
    with P(a >= j) = S(j) for j up to d and commits a + 1.
    """
    survive = [1.0, *continued(shares, draft_length)]
    cost = [pass_cost(d) for d in range(draft_length + 1)]
    passes, steps = [0.0], [0.0]
    for left in range(1, tokens + 1):
        drafted = min(draft_length, left - 1)
        more_passes = more_steps = 0.0
        for accepted in range(drafted + 1):
            chance = survive[accepted] - (survive[accepted + 1] if accepted < drafted else 0.0)
            more_passes += chance * passes[left - accepted - 1]
            more_steps += chance * steps[left - accepted - 1]
        passes.append(1 + more_passes)
        steps.append(cost[drafted] + more_steps)
    return RequestCost(passes[-1], steps[-1])


def predicted_speedup(
    shares: Sequence[float], draft_length: int, tokens: float, pass_cost: Callable[[int], float]
) -> float:
    """Plain steps of a request over its expected steps with speculation."""
    length = max(1, min(_LONGEST_REQUEST, round(tokens)))
    return length / request_cost(shares, draft_length, length, pass_cost).steps


def full_curve(
    shares: Sequence[float],
    tokens: float,
    pass_cost: Callable[[int], float],
    *,
    replicates: Sequence[Sequence[float]] = (),
    cost_error: float = 0.0,
    lengths: Sequence[int] = CURVE_LENGTHS,
) -> tuple[CurvePoint, ...]:
    """Predicted speedup at each length, with a 95 % interval where replicates of the survival curve are given.

    replicates: survival curves of requests drawn again (bootstrap); cost_error: relative standard error of the
    cost side, baseline included.
    """
    points = []
    for k in lengths:
        value = predicted_speedup(shares, k, tokens, pass_cost)
        error = math.hypot(_relative_spread(shares, replicates, k), cost_error) if replicates else None
        points.append(_point(k, value, error))
    return tuple(points)


def walked_curve(
    agreements: Agreements,
    pass_cost: Callable[[int], float],
    *,
    cost_error: float = 0.0,
    lengths: Sequence[int] = CURVE_LENGTHS,
) -> tuple[CurvePoint, ...]:
    """Predicted speedup at each length over the text that was seen, with a 95 % interval where it can be told.

    cost_error: relative standard error of the cost side, baseline included.
    """
    points = []
    for k in lengths:
        found = agreements.at(k, pass_cost)
        if found is None:
            return ()
        error = None if found.error is None else math.hypot(found.error, cost_error)
        points.append(_point(k, found.speedup, error))
    return tuple(points)


def _point(draft_length: int, value: float, error: float | None) -> CurvePoint:
    """A point with the interval of its relative standard error, symmetric on a logarithmic scale."""
    if error is None:
        return CurvePoint(draft_length=draft_length, speedup=value)
    band = math.exp(1.96 * error)
    return CurvePoint(draft_length=draft_length, speedup=value, low=value / band, high=value * band)


def _relative_spread(shares: Sequence[float], replicates: Sequence[Sequence[float]], k: int) -> float:
    """Relative standard deviation of E at length k over the replicates."""
    if len(replicates) < 2:
        return 0.0
    yields = [1 + math.fsum(continued(r, k)) for r in replicates]
    centre = math.fsum(yields) / len(yields)
    variance = math.fsum((y - centre) ** 2 for y in yields) / (len(yields) - 1)
    return math.sqrt(variance) / (1 + math.fsum(continued(shares, k)))
