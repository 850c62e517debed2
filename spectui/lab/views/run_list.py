"""The results store -> what the history screen shows: the newest runs as rows, and two of them side by side.

Of everything in a run, what fits on a screen. Text in a run is untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spectui.core.text import one_line
from spectui.core.views.run_list import Difference, Number, RunDetails, RunList, RunRow
from spectui.lab.reports.history import (
    cell_text,
    compare_runs,
    comparison_to_json,
    is_stale,
    kept_run,
    kept_runs,
    local_time,
    ratio_sentence,
    remark_of,
    run_to_json,
)
from spectui.store.records import RunFilter
from spectui.store.results import ResultStore

_NUMBERS: Final = {
    "tokens/s": "tokens_per_second",
    "actual": "speedup_actual",
    "alpha": "alpha",
    "tokens per pass": "tokens_per_pass",
    "pass ms": "pass_ms",
    "first token ms": "time_to_first_token_ms",
    "baseline tokens/s": "baseline_tokens_per_second",
    "requests": "requests",
}
_LONGEST: Final = 300
"""Characters of a value."""


def newest_runs(store: ResultStore, limit: int) -> RunList:
    """The newest runs, `limit` at most. Raises StoreError."""
    runs, builds = kept_runs(store, RunFilter(limit=limit + 1)), store.builds()
    rows = tuple(row_of(run_to_json(run, stale=is_stale(run, builds))) for run in runs[:limit])
    return RunList(rows=rows, cut=len(runs) > limit)


def side_by_side(store: ResultStore, a: int, b: int) -> RunDetails:
    """Two runs by their numbers. Raises StoreError."""
    comparison = compare_runs(kept_run(store, a), kept_run(store, b))
    data = comparison_to_json(comparison, store.builds())
    one, other = data["a"], data["b"]
    return RunDetails(
        a=row_of(one),
        b=row_of(other),
        numbers=tuple(Number(name=name, a=one[key], b=other[key]) for name, key in _NUMBERS.items()),
        differences=tuple(
            Difference(name=name, a=_value(pair["a"]), b=_value(pair["b"]))
            for name, pair in data["differences"].items()
        ),
        cautions=tuple(one_line(caution, _LONGEST) for caution in data["cautions"]),
        sentence=ratio_sentence(data),
    )


def row_of(run: Mapping[str, Any]) -> RunRow:
    """A run of `run_to_json` as a row."""
    return RunRow(
        id=run["id"],
        started=local_time(run["started_at"]),
        workload=one_line(run["workload"], 40),
        mode=one_line(run["mode"], 40),
        source=one_line(run["source"], 40),
        k=run["k"],
        p_min=run["p_min"],
        temperature=run["temperature"],
        tokens_per_second=run["tokens_per_second"],
        speedup=run["speedup_actual"],
        alpha=run["alpha"],
        requests=run["requests"],
        build=one_line(run["build"] or "", 40),
        model=_file(run["model"] or run["profile"]["server"]["url"]),
        draft=_file(run["draft"]),
        remark=remark_of(run),
    )


def _file(path: str | None) -> str:
    if path is None:
        return ""
    return one_line(path if "://" in path else path.replace("\\", "/").rpartition("/")[2], 80)


def _value(value: object) -> str:
    return one_line(cell_text(value), _LONGEST)
