"""The result of an A/B run as the headless contract's object, and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spectui.core.ab.comparison import sentence
from spectui.core.text import counted, one_line
from spectui.lab.experiments.ab import AbResult, Outputs
from spectui.lab.reports.contract import AbJson, ComparedWorkload
from spectui.lab.reports.contract_types import contract_values
from spectui.lab.reports.run_json import measurement_to_json
from spectui.lab.reports.text import UNKNOWN, columns, number


def ab_to_json(result: AbResult) -> dict[str, Any]:
    """The object of `spectui ab --json`; the top level is all workloads together, each counting alike."""
    whole = result.together
    known = [o.identical for o in result.outputs.values() if o.identical is not None]
    return contract_values(
        AbJson,
        whole,
        a=measurement_to_json(result.a.measurement),
        b=measurement_to_json(result.b.measurement),
        identical_outputs=all(known) if known else None,
        workloads={name: _workload(result, name) for name in result.ended},
        summary=sentence(whole, " and ".join(name for name in result.ended if result.pairs.get(name))),
    )


def ab_table(data: dict[str, Any]) -> str:
    """The same for people."""
    head = ("arm", "workload", "tok/s", "tokens/pass", "alpha", "ratio", "first token", "build")
    rows = []
    for arm in ("a", "b"):
        for name, w in data[arm]["workloads"].items():
            first = number(w["time_to_first_token_ms"], 0, " ms")
            rows.append(
                (
                    arm.upper(),
                    name,
                    number(w["tokens_per_second"], 1),
                    number(w["tokens_per_pass"]),
                    number(w["alpha"]),
                    number(w["acceptance_ratio"]),
                    first,
                    data[arm]["build"] or UNKNOWN,
                )
            )
    lines = [columns(head, rows)]
    for name, found in data["workloads"].items():
        lines += [found["summary"], *_remarks(name, found)]
    if len(data["workloads"]) > 1:
        lines.append(data["summary"])
    return "\n".join(lines)


def _workload(result: AbResult, name: str) -> dict[str, Any]:
    ended, outputs = result.ended[name], result.outputs.get(name, Outputs())
    return contract_values(
        ComparedWorkload,
        ended.result,
        stopped=ended.reason,
        short_answers=result.short.get(name, 0),
        identical_outputs=outputs.identical,
        different_outputs=outputs.different if outputs.compared else None,
        first_difference=None
        if outputs.first is None
        else {"prompt": one_line(outputs.first[0], 80), **asdict(outputs.first[1])},
        summary=sentence(ended.result, name),
    )


def _remarks(name: str, found: dict[str, Any]) -> Sequence[str]:
    drift, lines = found["drift"], []
    if drift["machine"]:
        moved = [f"{arm.upper()} {drift[arm]['value'] - 1:+.0%}" for arm in ("a", "b")]
        lines.append(f"  the machine drifted on {name}, second half against first: {', '.join(moved)}")
    if drift["result"]:
        lines.append(f"  the ratio itself changed by {drift['ratio']['value'] - 1:+.0%}: repeat the run")
    if found["identical_outputs"]:
        lines.append("  both arms wrote the same")
    elif found["first_difference"] is not None:
        first = found["first_difference"]
        lines.append(
            f"  outputs differ for {counted(found['different_outputs'], 'prompt')}, first for {first['prompt']} "
            f"at character {first['position']}: {first['a']!r} against {first['b']!r}"
        )
    if found["short_answers"]:
        lines.append(f"  {counted(found['short_answers'], 'answer')} too short to time")
    return lines
