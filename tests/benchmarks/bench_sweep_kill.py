"""Kill -9 in the middle of a sweep, ten times at random moments: every finished cell is kept, and none is twice.

    python bench_sweep_kill.py [ROUNDS] [SEED]

Target: nothing lost, nothing twice, and the same command comes to the end of the same sweep.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.sweep_runs import SMALL, killed_and_resumed, saved_pair


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pair = asyncio.run(small_pair())
    with tempfile.TemporaryDirectory() as home:
        # The store and the remembered baselines of the user stay out of it.
        for name in ("DATA", "CACHE", "CONFIG", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = home
        profile = saved_pair(pair, wheel_binary(), Path(home) / "pair.toml")
        wrong = killed_and_resumed(rounds, Random(seed), [profile, *SMALL])
    for line in wrong:
        print(line)
    name = f"finished cells lost or twice after {rounds} kills"
    return int(missed(Budget(name=name, figure=len(wrong), limit=0)))


if __name__ == "__main__":
    sys.exit(main())
