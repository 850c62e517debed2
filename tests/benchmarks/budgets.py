"""Budgets: a figure beside its target, printed by the benchmark that measures it and kept for the table of all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

KEPT_IN: Final = "SPECTUI_BUDGETS"
"""Variable that names the file to which each budget is added; `python -m tests.benchmarks` sets it."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """One figure and what it may be."""

    name: str
    figure: float
    limit: float
    unit: str = ""
    at_least: bool = False
    """The figure must reach the limit; else it must not exceed it."""

    @property
    def met(self) -> bool:
        """Whether the figure keeps to its limit; one that is no number does not."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    @property
    def target(self) -> str:
        """The limit in words."""
        return f"{'at least' if self.at_least else 'at most'} {_shown(self.limit, self.unit)}"

    @property
    def measured(self) -> str:
        """The figure with its unit."""
        return _shown(self.figure, self.unit)

    @property
    def verdict(self) -> str:
        """What is said of it."""
        return "met" if self.met else "MISSED"


def missed(*budgets: Budget) -> bool:
    """Print budgets, keep them for the table, and tell whether one of them is missed."""
    for budget in budgets:
        print(f"{budget.name}: {budget.measured}; target {budget.target}: {budget.verdict}", flush=True)
    if path := os.environ.get(KEPT_IN):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(budget)) + "\n" for budget in budgets)
    return not all(budget.met for budget in budgets)


def kept(path: Path) -> list[Budget]:
    """What benchmarks added to this file."""
    return [Budget(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def table(budgets: list[Budget]) -> str:
    """One line for each budget, in columns."""
    rows = [("budget", "figure", "target", "")]
    rows += [(budget.name, budget.measured, budget.target, budget.verdict) for budget in budgets]
    name, figure, target = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join(
        f"{row[0]:{name}}  {row[1]:>{figure}}  {row[2]:{target}}  {row[3]}".rstrip() for row in rows
    )


def _shown(value: float, unit: str) -> str:
    number = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{number} {unit}".rstrip() if unit != "x" else f"{number}x"
