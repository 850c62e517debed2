"""A bet, its settings and its server -> the verdict: one place for the dashboard and the headless commands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from spectui.core import speedup
from spectui.core.profile import OFF, TuningProfile
from spectui.core.snapshot import BetView, CurvePoint
from spectui.core.verdict import Facts, Failure, Verdict, judge
from spectui.lab.server import LaunchedServer, Server


def predicted_curve(bet: BetView, profile: TuningProfile) -> tuple[CurvePoint, ...]:
    """Speedup at other draft lengths, calibrated on what the running settings cost; empty where unknowable.

    The calibrated price spreads the whole cost of a pass evenly over its drafted tokens. Verification grows
    faster than evenly with the length, so for shorter drafts this reads low, as the textbook form reads high:
    the truth lies between, and their geometric mean stands for it.
    """
    price = None
    if bet.pass_cost is not None and bet.drafted_per_pass:
        price = speedup.implied_c(bet.pass_cost, bet.drafted_per_pass)
    calibrated, upper = _curve(bet, profile, price), textbook_curve(bet, profile)
    if not upper:
        return calibrated
    now = profile.speculation.draft_length
    return tuple(
        replace(low, speedup=math.sqrt(low.speedup * high.speedup)) if low.draft_length < now else low
        for low, high in zip(calibrated, upper, strict=False)
    )


def textbook_curve(bet: BetView, profile: TuningProfile) -> tuple[CurvePoint, ...]:
    """Speedup at other draft lengths with verification taken as free; empty where c is unknown."""
    return _curve(bet, profile, bet.c)


def _curve(bet: BetView, profile: TuningProfile, price: float | None) -> tuple[CurvePoint, ...]:
    speculation = profile.speculation
    if price is None or not bet.fixed_length or not bet.survival:
        return ()
    shares = [row.survival for row in bet.survival]
    shares += [0.0] * (speculation.draft_length - len(shares))
    return speedup.curve(shares, price)


def verdict_of(
    bet: BetView,
    profile: TuningProfile,
    server: Server | None,
    *,
    failures: Sequence[Failure] = (),
    traffic: bool = False,
) -> Verdict:
    """Judge one segment; what the server's log reported is added to `failures`."""
    speculation, actual = profile.speculation, bet.speedup_actual
    best = speedup.best_point(predicted_curve(bet, profile))
    facts = Facts(
        mode=speculation.mode,
        draft_length=speculation.draft_length,
        p_min=speculation.p_min,
        speculating=server.speculating if server and speculation.mode != OFF else None,
        draft_on_cpu_beside_gpu=isinstance(server, LaunchedServer) and server.draft_on_cpu_beside_gpu,
        requests=bet.requests,
        passes=bet.passes,
        drafted=bet.drafted,
        accepted=bet.accepted,
        tokens_per_pass=bet.tokens_per_pass.value if bet.tokens_per_pass else None,
        drafted_per_pass=bet.drafted_per_pass,
        speedup=actual.value if actual else None,
        speedup_low=actual.low if actual else None,
        speedup_high=actual.high if actual else None,
        best_length=best.draft_length if best else None,
        best_speedup=best.speedup if best else None,
        traffic=traffic,
    )
    said = tuple(failures)
    if server is not None:
        said += tuple(f for f in server.failures if f.code not in {x.code for x in said})
    return judge(facts, said)
