"""A sweep as the headless contract's object, and for people: a heat map per condition and a sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spectui.core.bet.estimates import Estimate
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Pace, Setting, name_of
from spectui.core.sweep.prediction import Predictions
from spectui.core.sweep.recommendation import Recommendation, has_drifted
from spectui.core.text import counted, one_line
from spectui.lab.experiments.sweep_record import Found, SweepOrder, going_on, recommendations
from spectui.lab.reports.contract import (
    CellJson,
    PlannedCell,
    RecommendationJson,
    SweepBaselineJson,
    SweepJson,
    SweepPlanJson,
)
from spectui.lab.reports.contract_types import contract_values, ends
from spectui.lab.reports.text import UNKNOWN, columns, number

_UNMEASURED: Final = "."


def sweep_to_json(found: Found) -> dict[str, Any]:
    """The object of `spectui sweep --json`; unknown is null."""
    grid, known = found.order.grid, found.outcomes
    predictions = Predictions(grid, known)
    return contract_values(
        SweepJson,
        found,
        sweep=found.number,
        cells=[_cell(found, cell, predictions) for cell in grid.cells],
        baselines=[_baseline(found, condition) for condition in grid.conditions],
        recommendation={
            name_of(condition, grid): None if best is None else recommendation_to_json(best)
            for condition, best in recommendations(found, known).items()
        },
    )


def plan_to_json(order: SweepOrder, pace: Pace) -> dict[str, Any]:
    """The object of `spectui sweep --plan --json`: what would be measured, and how long that takes."""
    grid = order.grid
    sure = grid.settings if order.exhaustive else grid.certain(replays=order.replays)
    least, most = order.expected_seconds((), pace)
    # The baseline may come again at the end.
    most += pace.seconds(1, len(grid.conditions), order.requests)
    return contract_values(
        SweepPlanJson,
        cells=[contract_values(PlannedCell, cell.condition, cell.setting) for cell in grid.cells],
        restarts={"least": 1 + len(sure), "most": 2 + len(grid.settings)},
        minutes={"least": least / 60, "most": most / 60},
        tokens_per_second=pace.speed,
        speed_source="measured" if pace.measured else "assumed",
    )


def plan_table(data: dict[str, Any]) -> str:
    """The same for people."""
    head = ("workload", "T", "mode", "draft", "k", "p_min", "lookup", "length")
    rows = [
        (*(_text(cell[name]) for name in _AXES[:3]), _file(cell["draft"]), *map(_text, _numbers(cell)))
        for cell in data["cells"]
    ]
    starts, minutes = data["restarts"], data["minutes"]
    summary = (
        f"{counted(len(rows), 'cell')}, {_span(starts, '{:.0f}')} server starts, "
        f"about {_span(minutes, '{:.1f}')} min at {data['tokens_per_second']:.1f} tokens/s ({data['speed_source']})"
    )
    return f"{columns(head, rows)}\n{summary}"


def sweep_table(data: dict[str, Any]) -> str:
    """A heat map per condition, measured plain and predicted in brackets, then what to use."""
    lines: list[str] = []
    for base in data["baselines"]:
        cells = [
            c
            for c in data["cells"]
            if (c["workload"], c["temperature"]) == (base["workload"], base["temperature"])
        ]
        plain = number(base["tokens_per_second"], 1)
        lines += [f"{base['workload']}, T {base['temperature']:g}, without speculation {plain} tokens/s"]
        if has_drifted(base["drift"]):
            lines.append(
                f"the machine drifted: {base['drift'] - 1:+.0%} between the first baseline and the last, "
                "so nothing is sure: repeat it when nothing else runs"
            )
        for lookup in (False, True):
            part = [c for c in cells if (c["k"] is None) == lookup]
            if part:
                lines.append(_map(part, "ngram_length" if lookup else "k"))
        lines.append("")
    lines += [sentence(name, best) for name, best in data["recommendation"].items()]
    kept = data["sweep"]
    name = "this sweep was not kept" if kept is None else f"sweep {kept}"
    state = "" if data["finished"] else ", unfinished" + ("" if kept is None else f": {going_on(kept)}")
    lines.append(f"{name}: servers ran for {data['server_seconds']:.0f} s{state}")
    return "\n".join(lines)


def sentence(name: str, best: Mapping[str, Any] | None) -> str:
    """A recommendation in one sentence, with its doubts."""
    if best is None:
        return f"{name}: nothing is known yet"
    doubts = ", ".join(best["doubts"])
    if best["mode"] == PLAIN.mode:
        if doubts:
            return f"{name}: speculation off, nothing wins by 5 %, not sure: {doubts}"
        return f"{name}: leave speculation off, nothing wins by 5 % for sure"
    how = "" if best["measured"] else ", predicted"
    gain = f"{best['speedup']:.2f}x ({best['low']:.2f} to {best['high']:.2f}{how})"
    if doubts:
        return f"{name}: {label_of(best)}: {gain}, not sure: {doubts}"
    return f"{name}: use {label_of(best)}: {gain}"


_AXES: Final = ("workload", "temperature", "mode", "draft", "k", "p_min", "ngram_lookup", "ngram_length")


def _cell(found: Found, cell: Cell, predictions: Predictions) -> dict[str, Any]:
    run, failed = found.cells.get(cell), found.failed.get(cell)
    guess, actual = predictions.of(cell), found.speedup(cell)
    measured = actual is not None
    shown = actual if guess is None or measured else guess.speedup
    return contract_values(
        CellJson,
        cell.condition,
        cell.setting,
        tokens_per_second=run.speed.aggregate.value if run is not None and run.speed else None,
        speedup_actual=actual.value if actual else None,
        speedup_predicted=found.speedup_predicted(cell) if guess is None else guess.speedup.value,
        **ends(shown),
        measured=measured,
        requests=run.requests if measured and run is not None else 0,
        tokens_per_pass=run.tokens_per_pass if run else None,
        failure=None if failed is None or failed.failure is None else one_line(failed.failure, 200),
    )


def _baseline(found: Found, condition: Condition) -> dict[str, Any]:
    baseline = found.baseline(condition)
    speed = baseline.speed.aggregate if baseline is not None and baseline.speed is not None else None
    return contract_values(
        SweepBaselineJson,
        condition,
        tokens_per_second=speed.value if speed else None,
        **ends(speed),
        drift=baseline.drift if baseline else None,
    )


def recommendation_to_json(best: Recommendation) -> dict[str, Any]:
    """A recommendation as the contract has it."""
    speedup = best.speedup or Estimate(value=1.0)
    return contract_values(RecommendationJson, best.setting, best, speedup=speedup.value, **ends(speedup))


def _map(cells: Sequence[Mapping[str, Any]], across: str) -> str:
    """Rows by everything but one axis, columns along it."""
    heads = list(dict.fromkeys(cell[across] for cell in cells))
    rows: dict[str, dict[Any, str]] = {}
    for cell in cells:
        rows.setdefault(label_of({**cell, across: None}), {})[cell[across]] = _shade(cell)
    label = "k" if across == "k" else "length"
    head = ("", *(f"{label} {_text(h)}" if h is not None else "" for h in heads))
    made = [(row, *(values.get(h, "") for h in heads)) for row, values in rows.items()]
    return columns(head, made)


def _shade(cell: Mapping[str, Any]) -> str:
    if cell["measured"]:
        return number(cell["speedup_actual"])
    if cell["failure"]:
        return "failed"
    guess = cell["speedup_predicted"]
    return _UNMEASURED if guess is None else f"({guess:.2f})"


def label_of(values: Mapping[str, Any]) -> str:
    """The setting of a cell or a recommendation in a few words."""
    return Setting(**{name: values[name] for name in _AXES[2:]}).label


def _numbers(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in _AXES[4:])


def _span(ends: Mapping[str, float], form: str) -> str:
    low, high = form.format(ends["least"]), form.format(ends["most"])
    return low if low == high else f"{low} to {high}"


def _file(path: str | None) -> str:
    return UNKNOWN if path is None else one_line(path.rpartition("/")[2], 40)


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:g}" if isinstance(value, float) else one_line(str(value), 80)
