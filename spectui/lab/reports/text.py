"""Plain-text tables for the headless commands: the same values as their JSON, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

UNKNOWN: Final = "-"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Rows under a head, each column as wide as its widest cell."""
    lines = [tuple(head), *(tuple(r) for r in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    made = []
    for line in lines:
        cells = [c.rjust(w) if right else c.ljust(w) for c, w in zip(line, widths, strict=True)]
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    """A value with its unit, or the mark for unknown."""
    return UNKNOWN if value is None else f"{value:.{digits}f}{unit}"


def measurement_table(data: dict[str, Any]) -> str:
    """`spectui measure` for people."""
    head = (
        "workload",
        "the bet",
        "tok/s",
        "baseline",
        "actual",
        "textbook",
        "alpha",
        "ratio",
        "tokens/pass",
        "c",
        "passes",
    )
    rows = [
        (
            name,
            str(w["outcome"] or UNKNOWN).upper(),
            number(w["tokens_per_second"], 1),
            number(w["baseline_tokens_per_second"], 1),
            number(w["speedup_actual"], 2, "x"),
            number(w["speedup_textbook"], 2, "x"),
            _alpha(w),
            number(w["acceptance_ratio"]),
            number(w["tokens_per_pass"]),
            number(w["cost"]["c"]),
            str(w["passes"]),
        )
        for name, w in data["workloads"].items()
    ]
    build = f"build {data['build'] or UNKNOWN}"
    return "\n".join([build, columns(head, rows), *finding_lines(data["findings"])])


def probe_table(data: dict[str, Any]) -> str:
    """`spectui probe` for people: V(n), and what it is per token."""
    rows = [
        (n, number(v), UNKNOWN if v is None else number(v / int(n)), _bar(v)) for n, v in data["v"].items()
    ]
    head = ("tokens", "V, plain steps", "per token", "")
    return f"one plain step: {data['t1_ms']:.1f} ms\n{columns(head, rows)}"


def _bar(value: float | None) -> str:
    return "" if value is None else "#" * min(60, round(4 * value))


def _alpha(workload: dict[str, Any]) -> str:
    if workload["alpha"] is None:
        return UNKNOWN
    if workload["alpha_low"] is None:
        return number(workload["alpha"])
    half = (workload["alpha_high"] - workload["alpha_low"]) / 2
    return f"{workload['alpha']:.2f} +-{half:.2f}"


def finding_lines(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line for each finding of the headless contract."""
    return [f"{f['code']}: {f['message']}" + (f"; {f['advice']}" if f["advice"] else "") for f in findings]
