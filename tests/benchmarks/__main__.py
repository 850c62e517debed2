"""All budgets as one table: python -m tests.benchmarks [--all | --list | NAME...].

Without arguments those that take seconds or few minutes; NAME is a benchmark without "bench_". Each also runs
alone, as python -m tests.benchmarks.bench_NAME. Run them on a quiet machine. Exit status 1: a budget is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.budgets import KEPT_IN, kept, table

SHORT: Final = ("first_frame", "public_runs", "compare_simulation", "restart", "cpu_memory")
LONG: Final = ("counters", "sweep_kill", "truth", "prediction", "ab", "sweep")
"""A quarter of an hour up to hours each."""
QUICK: Final = {"cpu_memory": ("--quick",)}
"""What is added where the long ones are not asked for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="the long ones too, which take hours")
    parser.add_argument("--list", action="store_true", help="what there is")
    given = parser.parse_args()
    if given.list:
        print(f"short: {', '.join(SHORT)}\nlong: {', '.join(LONG)}")
        return 0
    for name in given.names:
        if name not in (*SHORT, *LONG):
            parser.error(f"there is no benchmark {name!r}; --list says what there is")
    names = given.names or (*SHORT, *LONG) if given.all else given.names or SHORT
    quick = QUICK if not given.all and not given.names else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budgets"
        path.touch()
        failed = [name for name in names if not _run(name, path, quick.get(name, ()))]
        budgets = kept(path)
    print(f"\n{table(budgets)}")
    for name in failed:
        print(f"bench_{name} ended before it had measured anything: FAILED")
    return int(bool(failed) or not all(budget.met for budget in budgets))


def _run(name: str, path: Path, options: tuple[str, ...]) -> bool:
    """Run one benchmark; whether it came to its budgets: a failure must not look like a table without it."""
    print(f"== bench_{name}", flush=True)
    before = path.stat().st_size
    argv = [sys.executable, "-m", f"tests.benchmarks.bench_{name}", *options]
    status = subprocess.run(argv, env={**os.environ, KEPT_IN: str(path)}, check=False).returncode
    return status in {0, 1} and path.stat().st_size > before


if __name__ == "__main__":
    sys.exit(main())
