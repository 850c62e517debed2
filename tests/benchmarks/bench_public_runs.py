"""Public runs: from the lowest length of each machine predict its others (p_min 0 only), as `explain` does.

Prints each error. Target: the median over machines of their medians at most 9 %.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from spectui.core.bet.speedup import expected_tokens, textbook_speedup
from spectui.core.verdict.explain import Observed, explain
from tests.benchmarks.budgets import Budget, missed

RUNS = Path(__file__).parent.parent / "data" / "cases" / "public_runs.csv"
TARGET_PERCENT = 9.0


def machines() -> dict[str, list[tuple[int, float, float, float]]]:
    """(k, baseline, measured, ratio) by machine, lowest length first."""
    found: dict[str, list[tuple[int, float, float, float]]] = defaultdict(list)
    with RUNS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["k"].isdigit() and row["p_min"] in {"0", "0.0"}:
                name = f"{row['hardware']}, {row['target']}, {row['draft']}"
                numbers = (float(row[c]) for c in ("baseline_tps", "spec_tps", "accepted_over_drafted"))
                found[name].append((int(row["k"]), *numbers))  # type: ignore[arg-type]  # three floats
    return {name: sorted(rows) for name, rows in found.items() if len(rows) > 1}


def main() -> int:
    medians = []
    for name, (first, *others) in machines().items():
        k, baseline, measured, ratio = first
        values = explain(Observed(baseline=baseline, measured=measured, draft_length=k, ratio=ratio))
        assert values.facts.bet.alpha is not None
        assert values.facts.implied_c is not None
        errors = []
        for length, plain, speed, _ in others:
            tokens = expected_tokens(values.facts.bet.alpha.value, length)
            predicted = textbook_speedup(tokens, length, values.facts.implied_c)
            error = predicted / (speed / plain) - 1
            errors.append(abs(error))
            print(
                f"{name}: k {k} -> {length}: predicted {predicted:.2f}x, "
                f"measured {speed / plain:.2f}x, {error:+.1%}"
            )
        medians.append(median(errors))
        print(f"{name}: median {medians[-1]:.1%}")
    total = median(medians)
    name = f"error of predictions, median over {len(medians)} public machines"
    return int(missed(Budget(name=name, figure=100 * total, limit=TARGET_PERCENT, unit="%")))


if __name__ == "__main__":
    sys.exit(main())
