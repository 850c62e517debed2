"""A bet, its settings and its server -> the verdict: one place for the dashboard and the headless commands."""

from __future__ import annotations

from collections.abc import Sequence

from spectui.core.bet.estimates import BetView, CurvePoint, LookupPrediction
from spectui.core.bet.segment import longest_draft
from spectui.core.profile import OFF, TuningProfile, asks_for_gpu
from spectui.core.verdict.verdict import Facts, Failure, Verdict, judge
from spectui.lab.measuring.ngram_replay import offers_lookups
from spectui.lab.servers.server import LaunchedServer, Server


def verdict_of(
    bet: BetView,
    profile: TuningProfile,
    server: Server | None,
    *,
    failures: Sequence[Failure] = (),
    traffic: bool = False,
    measuring_baseline: bool = False,
    baseline_problem: str = "",
    baseline_stale: str = "",
    gpu_free_gib: float | None = None,
    best: CurvePoint | None = None,
    lookup: LookupPrediction | None = None,
) -> Verdict:
    """Judge one segment; what the server's log reported is added to `failures`.

    lookup: counts while the server is one of ours that offers it.
    """
    if server is None or not (server.alive and offers_lookups(server)):
        lookup = None
    speculation, actual = profile.speculation, bet.speedup_actual
    loss = bet.loss
    facts = Facts(
        mode=speculation.mode,
        draft_length=longest_draft(profile),
        p_min=speculation.p_min,
        speculating=server.speculating if server and speculation.mode != OFF else None,
        draft_on_cpu_beside_gpu=isinstance(server, LaunchedServer) and server.draft_on_cpu_beside_gpu,
        gpu_unused=isinstance(server, LaunchedServer) and server.on_cpu_only and asks_for_gpu(profile),
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
        best_low=best.low if best else None,
        best_high=best.high if best else None,
        best_measured=best is not None and best.measured,
        best_lookup=lookup.lookup if lookup else None,
        best_lookup_length=lookup.length if lookup else None,
        best_lookup_speedup=lookup.speedup.value if lookup else None,
        best_lookup_low=lookup.speedup.low if lookup else None,
        best_lookup_high=lookup.speedup.high if lookup else None,
        c=bet.c,
        draft_steps=loss.drafting if loss else None,
        verification_steps=loss.verification if loss else None,
        overhead_steps=loss.overhead if loss else None,
        rest_steps=loss.unexplained if loss else None,
        slots=profile.traffic.concurrency,
        traffic=traffic,
        measuring_baseline=measuring_baseline,
        baseline_problem=baseline_problem,
        baseline_stale=baseline_stale,
        baseline_expected=not profile.attached,
        gpu_free_gib=gpu_free_gib,
        two_pass_server=bet.two_pass,
    )
    said = tuple(failures)
    if server is not None:
        said += tuple(f for f in server.failures if f.code not in {x.code for x in said})
    return judge(facts, said)
