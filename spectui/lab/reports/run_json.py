"""A measurement in the names of the headless contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from spectui.core.bet.estimates import BetReading, Cost, Costs, Source
from spectui.core.secrets import redacted
from spectui.lab.experiments.measure import Measurement
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.reports.text import finding_to_json


def bet_to_json(bet: BetReading) -> dict[str, Any]:
    """One workload in the headless contract's names; unknown is null."""
    alpha, actual = bet.alpha, bet.speedup_actual
    return {
        "requests": bet.requests,
        "tokens": bet.tokens,
        "passes": bet.passes,
        "drafted": bet.drafted,
        "accepted": bet.accepted,
        "tokens_per_second": bet.tokens_per_second,
        "time_to_first_token_ms": bet.time_to_first_token_ms,
        "alpha": alpha.value if alpha else None,
        "alpha_low": alpha.low if alpha else None,
        "alpha_high": alpha.high if alpha else None,
        "acceptance_ratio": bet.acceptance_ratio,
        "tokens_per_pass": bet.tokens_per_pass.value if bet.tokens_per_pass else None,
        "drafted_per_pass": bet.drafted_per_pass,
        "survival": [row.survival for row in bet.survival] if bet.survival else None,
        "pass_ms": bet.pass_ms,
        "baseline_tokens_per_second": bet.baseline.value if bet.baseline else None,
        "speedup_actual": actual.value if actual else None,
        "speedup_low": actual.low if actual else None,
        "speedup_high": actual.high if actual else None,
        "speedup_textbook": bet.speedup_textbook,
        "speedup_predicted": bet.speedup_predicted,
        "round_cost": bet.pass_cost,
        "cost": costs_to_json(bet.costs),
        "stalled_passes": bet.stalled,
        "loss": asdict(bet.loss) if bet.loss else None,
    }


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
    return {
        "build": result.build,
        "argv": list(redacted(result.argv)) or None,
        "workloads": {
            name: {**bet_to_json(bet), "outcome": result.outcomes.get(name)}
            for name, bet in result.bets.items()
        },
        "findings": [finding_to_json(f) for f in result.findings],
    }


def probe_to_json(result: ProbeResult) -> dict[str, Any]:
    """The object of `spectui probe --json`; a point that could not be measured is null."""
    v: dict[str, float | None] = {str(n): value for n, value in sorted(result.v.items())}
    return {"t1_ms": result.t1_ms, "v": v | {str(n): None for n in result.dropped}}
