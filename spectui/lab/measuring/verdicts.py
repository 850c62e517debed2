"""A bet, its settings and its server -> the verdict: one place for the dashboard and the headless commands."""

from __future__ import annotations

from collections.abc import Sequence

from spectui.core.bet.estimates import BetReading, CurvePoint, LookupPrediction
from spectui.core.bet.segment import longest_draft
from spectui.core.profile import OFF, TuningProfile, asks_for_gpu
from spectui.core.verdict.verdict import Facts, Failure, Verdict, judge
from spectui.lab.measuring.ngram_replay import offers_lookups
from spectui.lab.servers.server import LaunchedServer, Server


def verdict_of(
    bet: BetReading,
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
    speculation = profile.speculation
    facts = Facts(
        mode=speculation.mode,
        draft_length=longest_draft(profile),
        p_min=speculation.p_min,
        speculating=server.speculating if server and speculation.mode != OFF else None,
        draft_on_cpu_beside_gpu=isinstance(server, LaunchedServer) and server.draft_on_cpu_beside_gpu,
        gpu_unused=isinstance(server, LaunchedServer) and server.on_cpu_only and asks_for_gpu(profile),
        bet=bet,
        best=best,
        lookup=lookup,
        slots=profile.traffic.concurrency,
        traffic=traffic,
        measuring_baseline=measuring_baseline,
        baseline_problem=baseline_problem,
        baseline_stale=baseline_stale,
        baseline_expected=not profile.attached,
        gpu_free_gib=gpu_free_gib,
    )
    said = tuple(failures)
    if server is not None:
        said += tuple(f for f in server.failures if f.code not in {x.code for x in said})
    return judge(facts, said)
