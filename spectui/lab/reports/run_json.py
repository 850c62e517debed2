"""A measurement in the names of the headless contract."""

from __future__ import annotations

from typing import Any

from spectui.core.bet.estimates import BetReading, Cost, Costs, Source
from spectui.core.secrets import redacted
from spectui.core.verdict.findings import Outcome
from spectui.lab.experiments.measure import Measurement
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.reports.contract_measure import MeasureJson, ProbeJson, WorkloadJson
from spectui.lab.reports.contract_types import contract_values


def bet_to_json(bet: BetReading, outcome: Outcome | None) -> dict[str, Any]:
    """One workload of a measurement."""
    return contract_values(
        WorkloadJson,
        bet,
        survival=[row.survival for row in bet.survival] or None,
        cost=costs_to_json(bet.costs),
        outcome=outcome,
    )


def costs_to_json(costs: Costs) -> dict[str, Any]:
    """The price of a pass in the contract's names; beside it where each part comes from, and its interval."""
    parts = {"t1_ms": costs.t1_ms, "c": costs.c, "u": costs.u}
    known = {name: part for name, part in parts.items() if part is not None}
    v = {str(n): part for n, part in costs.v.items()}
    return {
        **{name: part.value if part else None for name, part in parts.items()},
        "v": {n: part.value for n, part in v.items()} or None,
        "sources": {name: str(part.source) for name, part in known.items()}
        | ({"v": str(Source.PROBED)} if v else {}),
        "intervals": {name: _interval(part) for name, part in known.items()}
        | ({"v": {n: _interval(part) for n, part in v.items()}} if v else {}),
        "inseparable": costs.inseparable or None,
    }


def _interval(part: Cost) -> list[float] | None:
    return None if part.low is None or part.high is None else [part.low, part.high]


def measurement_to_json(result: Measurement) -> dict[str, Any]:
    """The whole object of `spectui measure --json`."""
    return contract_values(
        MeasureJson,
        result,
        argv=redacted(result.argv) or None,
        workloads={name: bet_to_json(bet, result.outcomes.get(name)) for name, bet in result.bets.items()},
    )


def probe_to_json(result: ProbeResult) -> dict[str, Any]:
    """The object of `spectui probe --json`; a point that could not be measured is null."""
    v: dict[str, float | None] = {str(n): value for n, value in sorted(result.v.items())}
    return contract_values(ProbeJson, result, v=v | {str(n): None for n in result.dropped})
