"""Do the intervals hold the truth? Acceptance that is known: synthetic on a real current server, and simulated.

Ten settings of rates, geometric, rising and falling, k from 1 to 16. Targets: 95 % intervals of alpha and of every
S(j) hold the true value in at least 93 % of all cases; the mean bias of E at most 0.5 %. E is 1 + sum S(j), which
predictions use; beside it stands committed tokens per pass, which the end of each request lowers.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

from spectui.core.bet.acceptance import true_alpha
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.bet.segment import Segment
from spectui.core.profile import (
    SamplingSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.servers.server import AttachedServer
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from tests.benchmarks.bench_setup import tiny_pair
from tests.benchmarks.budgets import Budget, missed
from tests.current_server import current_server

PASSES = 400
TOKENS = 200
REAL, SIMULATED = 2, 40
"""Runs per setting, on the real server and simulated."""


def geometric(alpha: float, k: int) -> list[float]:
    return [alpha**j for j in range(1, k + 1)]


def of_hazards(first: float, last: float, k: int) -> list[float]:
    """Survival of a conditional acceptance that goes from `first` to `last` over the positions."""
    shares, share = [], 1.0
    for j in range(k):
        share *= first + (last - first) * (j / (k - 1) if k > 1 else 0)
        shares.append(share)
    return shares


SETTINGS = (
    ("geometric 0.3", geometric(0.3, 1)),
    ("geometric 0.7", geometric(0.7, 2)),
    ("geometric 0.5", geometric(0.5, 4)),
    ("geometric 0.85", geometric(0.85, 8)),
    ("geometric 0.95", geometric(0.95, 16)),
    ("rising 0.4 to 0.9", of_hazards(0.4, 0.9, 4)),
    ("rising 0.6 to 0.95", of_hazards(0.6, 0.95, 8)),
    ("rising 0.5 to 0.98", of_hazards(0.5, 0.98, 16)),
    ("falling 0.9 to 0.4", of_hazards(0.9, 0.4, 6)),
    ("falling 0.95 to 0.3", of_hazards(0.95, 0.3, 12)),
)


@dataclass
class Tally:
    """What the runs of one kind said."""

    runs: int = 0
    alpha: list[bool] = field(default_factory=list)
    shares: list[bool] = field(default_factory=list)
    bias: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)

    def add(self, segment: Segment, rates: list[float]) -> None:
        """Compare one run with the truth. A position that nobody reached has no interval and counts as missed."""
        bet = segment.bet()
        truth = true_alpha(rates)
        alpha, tokens = bet.alpha, bet.tokens_per_pass
        assert alpha is not None
        assert tokens is not None
        self.runs += 1
        self.alpha.append(_holds(alpha.low, truth, alpha.high))
        rows = {row.position: row for row in bet.survival}
        for j, share in enumerate(rates, 1):
            row = rows.get(j)
            if row is None:
                # Beyond the last position that any pass reached nothing is claimed.
                if share * PASSES > 5:
                    self.shares.append(False)
                continue
            self.shares.append(_holds(row.low, share, row.high))
        true_tokens = 1 + math.fsum(rates)
        self.bias.append((1 + math.fsum(row.survival for row in bet.survival)) / true_tokens - 1)
        self.measured.append(tokens.value / true_tokens - 1)

    def joined(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            self.runs + other.runs,
            self.alpha + other.alpha,
            self.shares + other.shares,
            self.bias + other.bias,
            self.measured + other.measured,
        )

    def line(self, name: str) -> str:
        """One row of the table."""
        return (
            f"{name:22} {self.runs:5} {_share(self.alpha):7.3f} {_share(self.shares):7.3f} "
            f"{100 * _mean(self.bias):+7.2f} % {100 * _mean(self.measured):+7.2f} %"
        )


def _holds(low: float | None, value: float, high: float | None) -> bool:
    return low is not None and high is not None and low - 1e-12 <= value <= high + 1e-12


def _share(seen: list[bool]) -> float:
    return sum(seen) / len(seen) if seen else math.nan


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def profile_of(k: int, url: str | None = None, seed: int = 1) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple", draft_length=k),
        sampling=SamplingSettings(seed=seed),
        traffic=TrafficSettings(workload="code", max_tokens=TOKENS, warmup=1, ignore_eos=True),
    )


def simulated(rates: list[float], rng: random.Random) -> Segment:
    """Requests of the usual length until there are enough passes."""
    k = len(rates)
    segment = Segment(profile_of(k))
    passes = 0
    while passes < PASSES:
        left, steps = TOKENS - 1, []
        while left > 0:
            drafted = min(k, left - 1)
            draw = rng.random()
            accepted = sum(draw < rates[j] for j in range(drafted))
            steps.append(
                TargetPass(drafted, accepted, min(left, accepted + 1), 10.0, last=left <= accepted + 1)
            )
            left -= accepted + 1
        passes += len(steps)
        segment.add(
            RequestPasses(
                passes=tuple(steps),
                drafted=sum(s.drafted for s in steps),
                accepted=sum(s.accepted for s in steps),
                predicted_n=TOKENS,
                predicted_ms=10.0 * len(steps),
            )
        )
    return segment


async def real(rates: list[float], target: Path, draft: Path, seed: int) -> Segment:
    """The same on a server with synthetic acceptance, which it draws from the seed of each request."""
    k = len(rates)
    with current_server(target, draft, rates=rates) as url:
        profile = profile_of(k, url, seed)
        server = AttachedServer(profile, api_key=None)
        await server.connect()
        try:
            collector = Collector(profile)
            expected = (TOKENS - 1) / (1 + math.fsum(rates))
            order = PromptSequence(load_workload(profile.traffic))
            await collector.send(server, order, requests=math.ceil(PASSES / expected))
            while collector.segment.bet().passes < PASSES:
                await collector.send(server, order, requests=1, warm_up=False)
        finally:
            await server.stop()
    return collector.segment


async def main() -> int:
    target, draft = tiny_pair()
    rng = random.Random(20)
    head = f"{'setting':22} {'runs':>5} {'alpha':>7} {'S(j)':>7} {'bias E':>9} {'E measured':>9}"
    totals = {"real": Tally(), "simulated": Tally()}
    print(f"{PASSES} passes a run, requests of {TOKENS} tokens\n{head}")
    for name, rates in SETTINGS:
        tallies = {"real": Tally(), "simulated": Tally()}
        for _ in range(REAL):
            tallies["real"].add(await real(rates, target, draft, rng.randrange(2**30)), rates)
        for _ in range(SIMULATED):
            tallies["simulated"].add(simulated(rates, rng), rates)
        for kind, tally in tallies.items():
            print(tally.line(f"{name}, k={len(rates)}" if kind == "real" else "  simulated"), flush=True)
            totals[kind] = totals[kind].joined(tally)
    both = totals["real"].joined(totals["simulated"])
    for name, tally in (*totals.items(), ("all", both)):
        print(tally.line(name))
    bias = _mean(both.bias)
    held = _share(both.alpha + both.shares)
    print(
        f"held by alpha alone {100 * _share(both.alpha):.1f} %, by S(j) alone {100 * _share(both.shares):.1f} %; "
        f"mean bias of E {100 * bias:+.2f} %"
    )
    return int(
        missed(
            Budget(
                name="intervals that hold the truth", figure=100 * held, limit=93, unit="%", at_least=True
            ),
            Budget(name="bias of E, mean", figure=100 * abs(bias), limit=0.5, unit="%"),
        )
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
