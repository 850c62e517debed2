"""Real A/B runs on the demo pair: identical settings told apart, and a true difference of about 15 % found.

    bench_ab.py [--blocks N] [--tokens N] [--threads N] [--workload NAME] [--parts recorded,live,difference]

Two servers of identical settings answer 200 prompts in blocks A B B A, once; forty comparisons of 24 pairs are
drawn from these blocks, and eight more are run live. Then the draft lengths 1 to 6 are measured at length, and
the two whose speeds differ by nearest to 15 % are compared live ten times. Targets: at most 4 of 40 and 1 of 8
claims between identical settings, the difference found in at least 9 of 10.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from dataclasses import replace
from itertools import combinations
from math import exp, fsum, log

from spectui.core.ab.comparison import Comparison, Pair, Winner, compare, sentence
from spectui.core.ab.interim_looks import Looks
from spectui.core.bet.intervals import TWO_STARTS_ERROR
from spectui.core.profile import TuningProfile
from spectui.lab.experiments.ab import AbOrder, AbResult, AbRun
from spectui.lab.experiments.ab_arm import Arm
from spectui.lab.servers.launcher import Launcher
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.harness import pair_profile

RECORDED, DRAWN, LIVE, PLANNED, BLOCK = 200, 40, 8, 24, 2
DIFFERENCE, DIFFERENT = 0.15, 10
LENGTHS, AT_LENGTH = (1, 2, 3, 4, 5, 6), 48


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--workload", default="json")
    parser.add_argument("--parts", default="recorded,live,difference")
    return parser.parse_args()


async def recorded(profiles: tuple[TuningProfile, ...], number: int) -> list[list[Pair]]:
    """Every profile against the first, block by block, every other block in the reverse order."""
    workload = load_workload(profiles[0].traffic)
    prompts = PromptSequence(workload, seed=profiles[0].sampling.seed)
    arms = [Arm(profile, launcher=Launcher()) for profile in profiles]
    results = [AbResult(a=arms[0], b=arm, pairs={workload.name: []}) for arm in arms[1:]]
    try:
        for arm in arms:
            await arm.open(workload)
            await arm.warm_up(workload, [next(prompts)])
        for block in range(number // BLOCK):
            asked = [next(prompts) for _ in range(BLOCK)]
            order = sorted(range(len(arms)), reverse=block % 2 == 1)
            turns = {i: await arms[i].turn(workload, asked) for i in order}
            for i, result in enumerate(results, 1):
                result.take(workload.name, block, turns[0], turns[i])
    finally:
        for arm in arms:
            await arm.close()
    return [result.pairs[workload.name] for result in results]


def drawn(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    """24 pairs of twelve recorded blocks, numbered anew."""
    blocks: dict[int, list[Pair]] = {}
    for pair in pairs:
        blocks.setdefault(pair.block, []).append(pair)
    whole = [found for found in blocks.values() if len(found) == BLOCK]
    chosen = rng.sample(whole, PLANNED // BLOCK)
    return [replace(pair, block=number) for number, found in enumerate(chosen) for pair in found]


def ended(pairs: list[Pair]) -> Comparison:
    """The result of a run over these pairs, with its looks."""
    looks = Looks(len(pairs), between=TWO_STARTS_ERROR)
    for number in range(BLOCK, len(pairs) + 1, BLOCK):
        end = looks.after(pairs[:number])
        if end is not None:
            return end.result
    raise AssertionError("a run ends with its last pair")


async def live(a: TuningProfile, b: TuningProfile) -> Comparison:
    """One run as `spectui ab` makes it."""
    workload = a.traffic.workload
    result = await AbRun(a, b, launcher=Launcher()).run(AbOrder(workloads=(workload,), pairs=PLANNED))
    found = result.ended[workload].result
    print(f"  {sentence(found, workload)}", flush=True)
    return found


def nearest(profiles: dict[int, TuningProfile], pairs: dict[int, list[Pair]]) -> tuple[int, int, float]:
    """The two lengths whose mean speeds differ by nearest to 15 %, the slower first, and their ratio."""
    means = {k: fsum(p.log_ratio for p in found) / len(found) for k, found in pairs.items()}
    means[min(profiles)] = 0.0
    print("  " + ", ".join(f"k = {k}: {exp(mean):.3f} of k = 1" for k, mean in sorted(means.items())))
    near = min(
        combinations(means, 2), key=lambda ks: abs(abs(means[ks[0]] - means[ks[1]]) - log(1 + DIFFERENCE))
    )
    slow, fast = sorted(near, key=lambda k: means[k])
    return slow, fast, exp(means[fast] - means[slow])


async def main() -> int:
    args = options()
    pair = await small_pair(args.blocks)
    profile = pair_profile(pair.target, pair.drafts[0], wheel_binary(), draft_length=2)
    profile = profile.with_server(threads=args.threads)
    profile = profile.with_traffic(workload=args.workload, max_tokens=args.tokens, warmup=1)

    parts = {"recorded": of_recorded, "live": of_live, "difference": of_difference}
    return int(any([await parts[name](profile, args.workload) for name in args.parts.split(",")]))


async def of_recorded(profile: TuningProfile, workload: str) -> bool:
    """Comparisons drawn from one long run of identical settings; whether they miss their target."""
    (same,) = await recorded((profile, profile), RECORDED)
    whole = compare(same, between=TWO_STARTS_ERROR)
    print(f"recorded: {sentence(whole, workload)}, ratio {whole.ratio:.4f}", flush=True)
    rng = random.Random(1)
    samples = [drawn(same, rng) for _ in range(DRAWN)]
    bare = sum(compare(s).verdict is not Winner.NEITHER for s in samples)
    once = sum(compare(s, between=TWO_STARTS_ERROR).verdict is not Winner.NEITHER for s in samples)
    several = sum(ended(s).verdict is not Winner.NEITHER for s in samples)
    print(f"identical, drawn: {once} of {DRAWN} claims at one look ({bare} without the error between starts), "
          f"{several} at several", flush=True)  # fmt: skip
    name = f"A/B: claims between identical settings, of {DRAWN} drawn"
    return missed(Budget(name=name, figure=max(once, several), limit=4))


async def of_live(profile: TuningProfile, _workload: str) -> bool:
    """Live comparisons of identical settings."""
    claims = sum([(await live(profile, profile)).verdict is not Winner.NEITHER for _ in range(LIVE)])
    name = f"A/B: claims between identical settings, of {LIVE} live"
    return missed(Budget(name=name, figure=claims, limit=1))


async def of_difference(profile: TuningProfile, _workload: str) -> bool:
    """Live comparisons of two draft lengths that differ by about 15 %."""
    profiles = {k: profile.with_speculation(draft_length=k) for k in LENGTHS}
    against = await recorded(tuple(profiles.values()), AT_LENGTH)
    slow, fast, ratio = nearest(profiles, dict(zip(LENGTHS[1:], against, strict=True)))
    print(f"k = {fast} is {ratio:.3f} of k = {slow} over {AT_LENGTH} prompts", flush=True)
    found = sum([(await live(profiles[slow], profiles[fast])).verdict is Winner.B for _ in range(DIFFERENT)])
    name = f"A/B: a difference of about 15 % found, of {DIFFERENT} live"
    return missed(Budget(name=name, figure=found, limit=9, at_least=True))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
