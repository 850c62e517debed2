"""Target passes -> alpha, survival by position and tokens per pass, each with an interval.

The acceptance ratio that servers print is not alpha unless k = 1; it is reported and enters no formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectui.core.bet.estimates import Estimate, PositionRow
from spectui.core.bet.intervals import LEVEL, MIN_CLUSTERS, RatioSums, ratio, student_quantile, wilson
from spectui.core.bet.passes import RequestPasses, TargetPass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSums:
    """What one request contributes: the cluster of every interval. Positions count from 1 at index 0."""

    alpha: RatioSums
    """x: accepted tokens, y: accepted plus passes rejected somewhere; one member per pass."""
    tokens: RatioSums
    """x: committed tokens, y: target passes; one member per pass."""
    at_risk: tuple[int, ...]
    survived: tuple[int, ...]
    drafted: int
    accepted: int
    committed: int
    passes: int


def sums_of(request: RequestPasses, *, fixed_length: bool, positions: int) -> RequestSums:
    """Reduce one request to its sums.

    fixed_length: whether only a request's end cuts drafts, so that cut positions are censored. With p_min or
    an n-gram lookup the cut is informative, and every pass counts at every position.
    """
    alpha, tokens = RatioSums(), RatioSums()
    at_risk, survived = [0] * positions, [0] * positions
    for step in request.passes:
        tokens = tokens.plus(step.committed, step.merged)
        if not step.apart:
            continue
        alpha = alpha.plus(step.accepted, step.accepted + step.rejected)
        _count_positions(step, at_risk, survived, fixed_length=fixed_length)
    return RequestSums(
        alpha=alpha,
        tokens=tokens,
        at_risk=tuple(at_risk),
        survived=tuple(survived),
        drafted=request.drafted,
        accepted=request.accepted,
        committed=sum(p.committed for p in request.passes),
        passes=request.target_passes,
    )


def _count_positions(
    step: TargetPass, at_risk: list[int], survived: list[int], *, fixed_length: bool
) -> None:
    for index in range(len(at_risk)):
        position = index + 1
        if fixed_length:
            if step.accepted < position - 1 or step.drafted < position:
                break
        elif step.accepted < position - 1:
            break
        at_risk[index] += 1
        survived[index] += step.accepted >= position


def alpha_estimate(requests: Sequence[RequestSums]) -> Estimate | None:
    """Per-token acceptance: sum a / (sum a + rejected passes), full acceptance censored.

    The maximum-likelihood estimate of a geometric run censored at d; its interval is clustered by request.
    """
    estimate = ratio([r.alpha for r in requests])
    if estimate is None:
        return None
    low, high = estimate.share_interval() or (None, None)
    return Estimate(value=estimate.value, low=low, high=high)


def tokens_per_pass(requests: Sequence[RequestSums]) -> Estimate | None:
    """E, committed tokens over target passes, with its interval clustered by request."""
    estimate = ratio([r.tokens for r in requests])
    if estimate is None:
        return None
    low, high = estimate.interval() or (None, None)
    return Estimate(value=estimate.value, low=None if low is None else max(0.0, low), high=high)


def survival(requests: Sequence[RequestSums]) -> tuple[PositionRow, ...]:
    """S(j), the share of passes that accept at least j tokens, as the product of the conditional shares.

    Where nothing is censored this is the plain share. The interval linearises log S over requests (Greenwood's
    formula between passes, the larger of both) and is Wilson's at the effective number of trials.
    """
    positions = max((len(r.at_risk) for r in requests), default=0)
    totals = [
        (sum(r.at_risk[j] for r in requests), sum(r.survived[j] for r in requests)) for j in range(positions)
    ]
    first_at_risk = totals[0][0] if totals else 0
    rows: list[PositionRow] = []
    share, greenwood = 1.0, 0.0
    influence = [0.0] * len(requests)
    for index, (n, kept) in enumerate(totals):
        if n == 0:
            break
        hazard = kept / n
        share *= hazard
        if hazard > 0:
            greenwood += (1 - hazard) / (hazard * n)
            for i, r in enumerate(requests):
                influence[i] += (r.survived[index] - hazard * r.at_risk[index]) / (hazard * n)
        low, high = _share_interval(share, greenwood, influence, first_at_risk)
        rows.append(PositionRow(position=index + 1, survival=share, low=low, high=high, at_risk=n))
        if kept == 0:
            break
    return tuple(rows)


def survival_shares(requests: Sequence[RequestSums]) -> tuple[float, ...]:
    """S(j) alone, without intervals; positions that nobody could reach are left out."""
    positions = max((len(r.at_risk) for r in requests), default=0)
    shares: list[float] = []
    share = 1.0
    for index in range(positions):
        n = sum(r.at_risk[index] for r in requests)
        if n == 0:
            break
        share *= sum(r.survived[index] for r in requests) / n
        shares.append(share)
    return tuple(shares)


def _share_interval(
    share: float, greenwood: float, influence: Sequence[float], trials: int
) -> tuple[float, float]:
    quantile = student_quantile(0.5 + LEVEL / 2, max(1, trials - 1))
    variance = share * share * greenwood
    if len(influence) >= MIN_CLUSTERS:
        n = len(influence)
        between = share * share * n / (n - 1) * math.fsum(v * v for v in influence)
        by_cluster = student_quantile(0.5 + LEVEL / 2, n - 1)
        if between * by_cluster**2 > variance * quantile**2:
            variance, quantile = between, by_cluster
    spread = share * (1 - share)
    effective = spread / variance if spread > 0 and variance > 0 else float(trials)
    return wilson(share, max(1.0, effective), quantile)


def acceptance_ratio(drafted: int, accepted: int) -> float | None:
    """Accepted over drafted, as servers print it; None when nothing was drafted."""
    return accepted / drafted if drafted > 0 else None


def alpha_from_mean_accepted(mean_accepted: float, draft_length: int) -> float | None:
    """Solve alpha + ... + alpha^k = mean accepted tokens per pass (Leviathan et al. 2023, eq. 1, without the 1).

    An estimate from totals, for drafts of a fixed length only. None outside 0 to k.
    """
    if not 0 <= mean_accepted <= draft_length or draft_length < 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if math.fsum(middle**j for j in range(1, draft_length + 1)) < mean_accepted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def true_alpha(survival_shares: Iterable[float]) -> float:
    """What `alpha_estimate` tends to when acceptance is not geometric: sum S(j) / (sum S(j) + 1 - S(k))."""
    shares = tuple(survival_shares)
    kept = math.fsum(shares)
    return kept / (kept + 1 - shares[-1])
