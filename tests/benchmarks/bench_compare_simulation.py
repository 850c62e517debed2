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
from tests.benchmarks.budgets import Budget, missed

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
    at_24: list[float] = []
    totals: list[float] = []
    found: list[float] = []
    for number, runs in ((8, RUNS), (24, RUNS), (200, FORTY)):
        for seed, arms in enumerate(IDENTICAL):
            if number < 4 * arms.block:
                continue
            single, several, used = shares(arms, number, runs, seed)
            worst = max(
                sum(claims[i : i + FORTY]) for claims in (single, several) for i in range(0, runs, FORTY)
            )
            one, more = sum(single) / runs, sum(several) / runs
            totals += [one, more]
            if number == 24:
                at_24 += [one, more]
            print(
                f"identical, {number} pairs: {one:.3f} at one look, {more:.3f} at several, "
                f"{used:.1f} pairs used, at most {worst} of {FORTY}: {arms}"
            )
    mean = sum(totals) / len(totals)
    for seed, arms in enumerate(DIFFERENT):
        single, several, used = shares(arms, 24, RUNS, 100 + seed)
        found += [sum(single) / RUNS, sum(several) / RUNS]
        print(
            f"15 % found in {sum(single) / RUNS:.3f} at one look, {sum(several) / RUNS:.3f} at several, "
            f"{used:.1f} pairs used: {arms}"
        )
    # A share of 5 % shows up as more than this in one of 40 settings.
    chance = 0.05 + 2 * (0.05 * 0.95 / RUNS) ** 0.5
    return int(
        missed(
            Budget(name="simulated A/B: identical arms told apart", figure=100 * mean, limit=5, unit="%"),
            Budget(
                name="simulated A/B: the same, the worst setting on 24 pairs",
                figure=100 * max(at_24),
                limit=100 * chance,
                unit="%",
            ),
            Budget(
                name="simulated A/B: 15 % found", figure=100 * min(found), limit=90, unit="%", at_least=True
            ),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
