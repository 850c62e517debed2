"""One run at k = 4, a baseline and a probe predict every other length: how far off on a real server?

    bench_prediction.py [BLOCKS [REQUESTS [TOKENS]]]

Demo pair, temperature 0, code, prose and JSON. Two rounds, the second in reverse order, so that a machine that
drifts hits all alike; identical runs of both rounds give the repeat noise. Only the first round's baseline, probe
and k = 4 are calibrated on; each prediction is compared with the mean of both rounds. Target: median error of
tokens/s at most the larger of 4 % and twice the repeat noise, no cell beyond three times that. The textbook's error
stands beside.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from spectui.core.bet.agreement import Agreements
from spectui.core.bet.cost import calibrated
from spectui.core.bet.curves import cost_model
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import SpeedEstimate, drafting_since
from spectui.core.bet.speedup import textbook_speedup, tokens_at
from spectui.core.profile import TuningProfile
from spectui.lab.demo import DEMO_BLOCKS
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.probe import ProbeResult, probe
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.harness import launched, pair_profile

CALIBRATED = 4
LENGTHS = (1, 2, 3, 6, 8, 12, 16)
WORKLOADS = ("code", "prose", "json")
BLOCKS, REQUESTS, TOKENS = (
    int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((1, DEMO_BLOCKS), (2, 3), (3, 64))
)


@dataclass(frozen=True)
class Run:
    """One workload in one server start."""

    bet: BetReading
    speed: SpeedEstimate
    agreements: Agreements | None

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self.speed.per_stream.value


@dataclass(frozen=True)
class Row:
    """Errors of one cell: predicted over measured, less one."""

    workload: str
    k: int
    tokens: float
    cost: float
    rate: float
    textbook: float


async def one_run(server: Server, profile: TuningProfile) -> Run:
    before = server.drafting
    collector = Collector(profile)
    await collector.send(server, PromptSequence(load_workload(profile.traffic)), requests=REQUESTS)
    speed = collector.segment.speed()
    assert speed is not None
    drafting = drafting_since(before, server.drafting)
    return Run(collector.segment.bet(drafting=drafting), speed, collector.segment.agreements(Random(1)))


async def served(profile: TuningProfile, *, probed: bool = False) -> tuple[dict[str, Run], ProbeResult]:
    """All workloads on one server."""
    async with launched(profile) as server:
        found = await probe(server.client) if probed else ProbeResult()
        runs = {w: await one_run(server, profile.with_traffic(workload=w)) for w in WORKLOADS}
    return runs, found


def rows_of(
    workload: str, plain: Run, base: Run, probed: ProbeResult, measured: dict[int, list[Run]]
) -> list[Row]:
    """Calibrate on `base` and compare each length with what was measured."""
    t1 = 1000 / plain.rate
    bet, draft_ms = base.bet, base.bet.draft_ms
    assert bet.tokens_per_pass is not None
    assert bet.drafted_per_pass is not None
    assert bet.pass_ms is not None
    assert base.agreements is not None
    assert draft_ms is not None
    c = draft_ms / t1
    model = cost_model(replace(bet, t1_ms=t1, c=c), probed.v)
    assert model is not None
    fitted = calibrated(model, drafted_per_pass=bet.drafted_per_pass, pass_cost=bet.pass_ms / t1)
    shares = [row.survival for row in bet.survival]
    shares += [0.0] * (CALIBRATED - len(shares))
    rows = []
    for k, runs in measured.items():
        found = base.agreements.at(k, fitted.pass_cost)
        assert found is not None
        tokens = found.tokens_per_pass
        price = tokens / found.speedup * t1
        seen_tokens = _mean([r.bet.tokens_per_pass.value for r in runs if r.bet.tokens_per_pass])
        seen_price = _mean([r.bet.pass_ms for r in runs if r.bet.pass_ms])
        seen_rate = _mean([r.rate for r in runs])
        book = textbook_speedup(tokens_at(shares, k), k, c) * plain.rate
        rows.append(
            Row(
                workload,
                k,
                tokens / seen_tokens - 1,
                price / seen_price - 1,
                1000 * tokens / price / seen_rate - 1,
                book / seen_rate - 1,
            )
        )
    return rows


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


async def main() -> int:
    pair = await small_pair(BLOCKS)
    base = (
        pair_profile(pair.target, pair.drafts[0], wheel_binary())
        .with_server(threads=None)
        .with_traffic(max_tokens=TOKENS, warmup=1)
    )
    order: list[int | None] = [None, CALIBRATED, *LENGTHS]
    seen: dict[int | None, list[dict[str, Run]]] = {k: [] for k in order}
    probed = ProbeResult()
    for turn in (order, order[::-1]):
        for k in turn:
            profile = base.without_speculation() if k is None else base.with_speculation(draft_length=k)
            runs, found = await served(profile, probed=k is None and not probed.v)
            probed = found if found.v else probed
            seen[k].append(runs)
            said = ", ".join(f"{w} {r.rate:.2f} tok/s" for w, r in runs.items())
            print(f"{'plain' if k is None else f'k = {k}'}: {said}", flush=True)
    noise = median(
        abs(first[w].rate / second[w].rate - 1) for first, second in seen.values() for w in WORKLOADS
    )
    print(f"\nV(n): {', '.join(f'{n}: {v:.2f}' for n, v in probed.v.items())}")
    rows = [
        row
        for w in WORKLOADS
        for row in rows_of(
            w,
            seen[None][0][w],
            seen[CALIBRATED][0][w],
            probed,
            {k: [runs[w] for runs in seen[k]] for k in LENGTHS},
        )
    ]
    print(f"{'workload':9} {'k':>3} {'E':>8} {'pass cost':>10} {'tokens/s':>9} {'textbook':>9}")
    for r in rows:
        print(f"{r.workload:9} {r.k:3} {r.tokens:+8.1%} {r.cost:+10.1%} {r.rate:+9.1%} {r.textbook:+9.1%}")
    limit = max(0.04, 2 * noise)
    middle, worst = median(abs(r.rate) for r in rows), max(abs(r.rate) for r in rows)
    print(
        f"{BLOCKS} blocks, {REQUESTS} requests of {TOKENS} tokens per cell and round\n"
        f"median error: E {median(abs(r.tokens) for r in rows):.1%}, pass cost "
        f"{median(abs(r.cost) for r in rows):.1%}, tokens/s {middle:.1%}; textbook "
        f"{median(abs(r.textbook) for r in rows):.1%}\n"
        f"repeat noise {noise:.1%}"
    )
    return int(
        missed(
            Budget(name="predicted tokens/s, median error", figure=100 * middle, limit=100 * limit, unit="%"),
            Budget(name="predicted tokens/s, largest error", figure=100 * worst, limit=300 * limit, unit="%"),
        )
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
