"""Speed by concurrency in the names of the headless contract, and for people."""

from __future__ import annotations

from typing import Any, Final

from spectui.lab.experiments.concurrency import Levels
from spectui.lab.reports.contract import ConcurrencyJson, LevelJson
from spectui.lab.reports.contract_types import contract_values, ends
from spectui.lab.reports.text import columns, number

_BAR: Final = 40
"""Characters of the longest bar."""


def levels_to_json(levels: Levels) -> dict[str, Any]:
    """The object of `concurrency --json`; unknown is null."""
    return contract_values(
        ConcurrencyJson,
        levels,
        rows=[
            contract_values(
                LevelJson,
                row.bet,
                concurrency=row.at_once,
                **ends(row.bet.speedup_actual),
            )
            for row in levels.rows
        ],
        inverts_between=levels.inversion,
        message=levels.sentence,
    )


def levels_table(data: dict[str, Any]) -> str:
    """The same for people: the numbers, and both speeds as bars."""
    head = ("at once", "plain", "speculating", "actual", "95 %", "predicted", "tokens/pass")
    rows = [
        (
            str(row["concurrency"]),
            number(row["baseline_tokens_per_second"], 1),
            number(row["tokens_per_second"], 1),
            number(row["speedup_actual"], 2, "x"),
            _range(row["low"], row["high"]),
            number(row["speedup_predicted"], 2, "x"),
            number(row["tokens_per_pass"]),
        )
        for row in data["rows"]
    ]
    return "\n".join(
        [
            f"{data['workload']}, build {data['build'] or '-'}",
            columns(head, rows, right=True),
            "",
            *_bars(data),
            "",
            str(data["message"]),
        ]
    )


def _bars(data: dict[str, Any]) -> list[str]:
    """Aggregate tokens per second: plain as dots, speculating as blocks, on one scale."""
    rows = data["rows"]
    most = max(
        (row[name] or 0.0 for row in rows for name in ("tokens_per_second", "baseline_tokens_per_second")),
        default=0.0,
    )
    lines = ["aggregate tokens/s, without speculation (.) and with it (#)"]
    for row in rows:
        for name, sign, label in (
            ("baseline_tokens_per_second", ".", str(row["concurrency"])),
            ("tokens_per_second", "#", ""),
        ):
            value = row[name]
            length = 0 if value is None or most <= 0 else round(_BAR * value / most)
            lines.append(f"{label:>3} {sign * length} {number(value, 1)}")
    return lines


def _range(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"
