"""The adaptive sweep against the exhaustive one: server seconds, and a paired A/B of what both pick.

    python bench_sweep.py --blocks 180 --runs 8 --tokens 96 --k 1,2,4,8 --workload code,rewrite --pairs 24

Targets: at most a third of the server seconds; no workload where the exhaustive pick is surely faster; and on the
rewrite workload an n-gram setting of at least 1.5x, found without being told one. The defaults take hours.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from spectui.core.profile import TuningProfile, is_ngram
from spectui.lab.experiments.ab import AbOrder, AbRun
from spectui.lab.experiments.sweep import Sweeper
from spectui.lab.experiments.sweep_order import order_for
from spectui.lab.experiments.sweep_record import Found
from spectui.lab.reports.ab import ab_to_json
from spectui.lab.reports.export import recommended_profiles
from spectui.lab.reports.sweep import sweep_table, sweep_to_json
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore
from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.harness import pair_profile

SHARE = 1 / 3
REWRITE_SPEEDUP = 1.5
COPIES = "rewrite"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=180)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--k", default="1,2,3,4,6,8,12,16")
    parser.add_argument("--workload", default="code,prose,json,rewrite")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--pairs", type=int, default=24)
    return parser.parse_args()


def say(line: str) -> None:
    if not line.startswith("starting "):
        print(f"  {line}", flush=True)


async def swept(profile: TuningProfile, args: argparse.Namespace, home: Path, *, exhaustive: bool) -> Found:
    """One sweep, with a store of its own."""
    launcher = Launcher()
    order = await order_for(
        profile,
        launcher,
        workloads=tuple(args.workload.split(",")),
        ks=tuple(map(int, args.k.split(","))),
        requests=args.runs,
        exhaustive=exhaustive,
    )
    results = ResultStore(home / f"results-{exhaustive}.sqlite")
    baselines = BaselineStore(home / "baselines.json")
    print("exhaustive" if exhaustive else "adaptive", flush=True)
    sweeper = Sweeper(order, launcher=launcher, results=results, baselines=baselines, progress=say)
    found = await sweeper.run()
    print(sweep_table(sweep_to_json(found)), flush=True)
    return found


async def compared(adaptive: TuningProfile, exhaustive: TuningProfile, workload: str, pairs: int) -> bool:
    """Whether the exhaustive pick is surely faster; equal picks need no run."""
    if adaptive == exhaustive:
        print(f"{workload}: both pick the same")
        return False
    run = AbRun(adaptive, exhaustive, launcher=Launcher())
    data = ab_to_json(await run.run(AbOrder(workloads=(workload,), pairs=pairs)))
    print(f"{workload}, A adaptive and B exhaustive: {data['summary']}", flush=True)
    return bool(data["verdict"] == "b")


async def main() -> int:
    args = options()
    pair = await small_pair(args.blocks)
    profile = pair_profile(pair.target, pair.drafts[0], wheel_binary())
    profile = profile.with_server(threads=args.threads).with_traffic(max_tokens=args.tokens)
    with tempfile.TemporaryDirectory() as folder:
        few = await swept(profile, args, Path(folder), exhaustive=False)
        every = await swept(profile, args, Path(folder), exhaustive=True)
    picks, best = recommended_profiles(few), recommended_profiles(every)
    worse = [w for w, found in picks.items() if await compared(found, best[w], w, args.pairs)]
    share = few.server_seconds / every.server_seconds
    print(f"server seconds {few.server_seconds:.0f} of {every.server_seconds:.0f}")
    print(f"workloads with a surely slower pick: {', '.join(worse) or 'none'}")
    budgets = [
        Budget(
            name="server seconds of the adaptive sweep, of the exhaustive one's",
            figure=100 * share,
            limit=100 * SHARE,
            unit="%",
        ),
        Budget(name="workloads whose adaptive pick is surely slower", figure=len(worse), limit=0),
    ]
    if COPIES in picks:
        speculation = picks[COPIES].speculation
        gain = sweep_to_json(few)["recommendation"][COPIES]["speedup"]
        print(f"{COPIES}: {speculation.mode} {gain:.2f}x")
        budgets.append(
            Budget(
                name=f"speedup of the n-gram mode picked for {COPIES}",
                figure=gain if is_ngram(speculation.mode) else 0.0,
                limit=REWRITE_SPEEDUP,
                unit="x",
                at_least=True,
            )
        )
    return int(missed(*budgets))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
