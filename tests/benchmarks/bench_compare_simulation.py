"""Simulated A/B runs: how often identical arms are told apart, and how often a true 15 % is found.

Each setting with one look at the end and with the looks of a run. Targets: identical arms in at most 5 % of runs on
average, in at most 10 % of any forty on 24 pairs; 15 % in at least 9 of 10 at 5 to 8 % of noise.
"""

from __future__ import annotations

import random
import sys

from spectui.core.ab.comparison import Pair, Winner, compare
from spectui.core.ab.interim_looks import Looks
from tests.ab_runs import Arms, run_of

RUNS = 400
FORTY = 40
IDENTICAL = (
    Arms(noise=0.03),
    Arms(noise=0.08),
    Arms(noise=0.15),
    Arms(noise=0.08, turn=0.04),
    Arms(noise=0.03, turn=0.1),
    Arms(noise=0.08, turn=0.03, drift=0.1),
    Arms(noise=0.06, slow=0.1),
    Arms(noise=0.08, turn=0.15, block=4),
)
DIFFERENT = tuple(Arms(ratio=1.15, noise=n, turn=0.03, drift=0.05) for n in (0.05, 0.08))


def looked_at(pairs: list[Pair], block: int) -> tuple[Winner, int]:
    """Verdict and pairs of a run that may end early."""
    looks = Looks(len(pairs))
    for number in range(block, len(pairs) + 1, block):
        end = looks.after(pairs[:number])
        if end is not None:
            return end.result.verdict, end.result.pairs
    raise AssertionError("a run ends with its last pair")


def shares(arms: Arms, number: int, runs: int, seed: int) -> tuple[list[bool], list[bool], float]:
    """Whether a difference was claimed, run by run: with one look and with several; mean pairs of the latter."""
    rng = random.Random(seed)
    single, several, used = [], [], 0
    for _ in range(runs):
        pairs = run_of(rng, arms, number)
        single.append(compare(pairs).verdict is not Winner.NEITHER)
        verdict, size = looked_at(pairs, arms.block)
        several.append(verdict is not Winner.NEITHER)
        used += size
    return single, several, used / runs


def main() -> int:
    missed = False
    totals: list[float] = []
    for number, runs in ((8, RUNS), (24, RUNS), (200, FORTY)):
        for seed, arms in enumerate(IDENTICAL):
            if number < 4 * arms.block:
                continue
            single, several, used = shares(arms, number, runs, seed)
            worst = max(
                sum(found[i : i + FORTY]) for found in (single, several) for i in range(0, runs, FORTY)
            )
            one, more = sum(single) / runs, sum(several) / runs
            totals += [one, more]
            if number == 24:
                missed = missed or max(one, more) > 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5
            print(
                f"identical, {number} pairs: {one:.3f} at one look, {more:.3f} at several, "
                f"{used:.1f} pairs used, at most {worst} of {FORTY}: {arms}"
            )
    mean = sum(totals) / len(totals)
    print(f"identical arms told apart: {mean:.3f} on average, target at most 0.05")
    missed = missed or mean > 0.05
    for seed, arms in enumerate(DIFFERENT):
        single, several, used = shares(arms, 24, RUNS, 100 + seed)
        found = min(sum(single), sum(several)) / RUNS
        print(
            f"15 % found in {sum(single) / RUNS:.3f} at one look, {sum(several) / RUNS:.3f} at several, "
            f"{used:.1f} pairs used, target at least 0.9: {arms}"
        )
        missed = missed or found < 0.9
    return missed


if __name__ == "__main__":
    sys.exit(main())
