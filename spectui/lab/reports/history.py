"""Kept runs -> what is shown of them: which are stale, how two differ, and all of them as JSON, CSV or a table.

Text in a run comes from servers, models and files, and is untrusted.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.segment import draft_length_of
from spectui.core.profile import OFF, fields_of_mode, is_ngram
from spectui.core.text import one_line
from spectui.errors import StoreError
from spectui.lab.experiments.sweep_record import Found, found_of
from spectui.lab.reports.contract import HistoryComparisonJson, RunJson
from spectui.lab.reports.contract_measure import CostJson
from spectui.lab.reports.contract_types import contract_values, ends
from spectui.lab.reports.run_json import costs_to_json
from spectui.lab.reports.text import UNKNOWN, columns, number
from spectui.store.baselines import FileIdentity
from spectui.store.records import Run, RunConditions, RunFilter
from spectui.store.results import ResultStore

_HIDDEN: Final = frozenset({"profile.schema_version", "profile.description"})
"""Settings that say nothing about a run."""
_BET: Final = "profile.speculation."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs beside each other."""

    a: Run
    b: Run
    differences: Mapping[str, tuple[Any, Any]]
    """Every condition that is not the same and that one of both modes uses, as section.field, with both values."""
    ratio: Estimate | None
    """Speed of b over that of a."""
    cautions: tuple[str, ...] = ()
    """What else than the settings was another one: the build, or a file."""


def kept_runs(store: ResultStore, wanted: RunFilter | None = None) -> tuple[Run, ...]:
    """The runs that are wanted, the newest first, with the speedups that the report of a sweep has of its cells.

    A run of a sweep that is not kept any more, or cannot be read, has its speedup over the baseline of its time.
    Raises StoreError.
    """
    return _by_now(store, store.runs(wanted))


def kept_run(store: ResultStore, number: int) -> Run:
    """One run by its number, as in `kept_runs`. Raises StoreError."""
    return _by_now(store, (store.run(number),))[0]


def _by_now(store: ResultStore, runs: Sequence[Run]) -> tuple[Run, ...]:
    sweeps: dict[int | None, Found] = {}
    for sweep in {run.sweep for run in runs if run.sweep is not None}:
        with suppress(StoreError):
            sweeps[sweep] = found_of(store.sweep(sweep))
    return tuple(
        replace(run, summary=found.by_now(run.id, run.summary))
        if (found := sweeps.get(run.sweep)) is not None and run.id in found.runs
        else run
        for run in runs
    )


def is_stale(run: Run, builds: Mapping[str, str]) -> bool | None:
    """Whether the build, the binary or a model is another one now than when it was measured.

    builds: the build that was seen last at each place. False when nothing is known to have changed; None when there
    is nothing to tell it by.
    """
    conditions = run.conditions
    files = [f for f in (conditions.binary, conditions.model, conditions.draft) if f is not None]
    now = builds.get(conditions.place or "")
    if not files and (conditions.build is None or now is None):
        return None
    rebuilt = conditions.build is not None and now is not None and conditions.build != now
    return rebuilt or any(_changed(file) for file in files)


def compare_runs(a: Run, b: Run) -> RunComparison:
    """How two runs differ in conditions and speed.

    The interval joins both runs' own errors on a logarithmic scale, as for a speedup. It does not know how the
    machine drifted between them; measuring both anew in turns does.
    """
    ones, others = _flat(a.conditions), _flat(b.conditions)
    modes = (a.conditions.profile.speculation.mode, b.conditions.profile.speculation.mode)
    used = {f"{_BET}{name}" for mode in modes for name in fields_of_mode(mode)}
    names = (name for name in {**ones, **others} if name in used or not name.startswith(_BET))
    pairs = {name: (ones.get(name), others.get(name)) for name in names}
    return RunComparison(
        a=a,
        b=b,
        differences={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        ratio=_ratio(a.summary.tokens_per_second, b.summary.tokens_per_second),
        cautions=tuple(_cautions(a.conditions, b.conditions)),
    )


def run_to_json(run: Run, *, stale: bool | None) -> dict[str, Any]:
    """One run in the headless contract's names; times are seconds since 1970, unknown is null."""
    conditions, summary = run.conditions, run.summary
    profile = conditions.profile
    speculation = profile.speculation
    return contract_values(
        RunJson,
        run,
        summary,
        conditions,
        profile.traffic,
        speculation,
        profile.sampling,
        stale=stale,
        k=draft_length_of(profile),
        p_min=None if speculation.mode == OFF or is_ngram(speculation.mode) else speculation.p_min,
        model=profile.server.model,
        draft=conditions.draft_path,
        survival=summary.survival or None,
        baseline_source=summary.baseline_source or None,
        round_cost=summary.round_cost,
        cost=costs_to_json(summary.costs),
        argv=conditions.argv or None,
        profile=asdict(profile),
    )


def comparison_to_json(comparison: RunComparison, builds: Mapping[str, str]) -> dict[str, Any]:
    """The object of `spectui history compare --json`."""
    return contract_values(
        HistoryComparisonJson,
        comparison,
        **ends(comparison.ratio),
        a=run_to_json(comparison.a, stale=is_stale(comparison.a, builds)),
        b=run_to_json(comparison.b, stale=is_stale(comparison.b, builds)),
        differences={name: {"a": a, "b": b} for name, (a, b) in comparison.differences.items()},
    )


def runs_to_csv(runs: Iterable[Mapping[str, Any]]) -> str:
    """Runs, each as `run_to_json` has it, as CSV with a head; lists and objects as JSON, unknown is empty."""
    file = io.StringIO()
    names = [name for name in RunJson.model_fields if name != "cost"]
    names += [f"cost_{name}" for name in CostJson.model_fields]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_spread(run) for run in runs)
    return file.getvalue().removesuffix("\n")


def history_table(data: dict[str, Any], *, others: bool = False) -> str:
    """`spectui history` for people. others: whether runs are kept beside those that were asked for."""
    head = (
        "run",
        "started",
        "source",
        "workload",
        "mode",
        "k",
        "tok/s",
        "actual",
        "alpha",
        "requests",
        "build",
        "",
    )
    rows = [
        (
            str(run["id"]),
            local_time(run["started_at"]),
            run["source"],
            one_line(run["workload"], 20),
            one_line(run["mode"], 20),
            UNKNOWN if run["k"] is None else str(run["k"]),
            number(run["tokens_per_second"], 1),
            number(run["speedup_actual"], 2, "x"),
            number(run["alpha"]),
            str(run["requests"]),
            one_line(run["build"] or UNKNOWN, 20),
            remark_of(run),
        )
        for run in data["runs"]
    ]
    if rows:
        return columns(head, rows)
    if others:
        return "no run matches; without options spectui history lists every run"
    return "no runs are kept; the dashboard and every measuring command keep theirs"


def run_table(data: dict[str, Any]) -> str:
    """One run for people: every value under its name."""
    times = {name: local_time(data[name]) for name in ("started_at", "ended_at") if data[name] is not None}
    lines = [f"{name}: {cell_text(value)}" for name, value in _flatten({**data, **times}).items()]
    return "\n".join([*lines, *filter(None, [remark_of(data)])])


def comparison_table(data: dict[str, Any]) -> str:
    """`spectui history compare` for people."""
    a, b = data["a"], data["b"]
    names = ("tokens_per_second", "speedup_actual", "alpha", "tokens_per_pass", "pass_ms", "requests")
    rows = [(name, cell_text(a[name]), cell_text(b[name])) for name in names]
    rows += [(name, cell_text(pair["a"]), cell_text(pair["b"])) for name, pair in data["differences"].items()]
    rows += [("", remark_of(a), remark_of(b))] if remark_of(a) or remark_of(b) else []
    lines = [columns(("", f"run {a['id']}", f"run {b['id']}"), rows)]
    lines += [f"careful: {caution}" for caution in data["cautions"]]
    return "\n".join(filter(None, [*lines, ratio_sentence(data)]))


def ratio_sentence(data: Mapping[str, Any]) -> str:
    """How much faster the second run of a comparison is; empty where a speed is unknown."""
    if data["ratio"] is None:
        return ""
    a, b = data["a"]["id"], data["b"]["id"]
    span = "" if data["low"] is None else f" ({data['low']:.2f} to {data['high']:.2f})"
    return f"run {b} has {data['ratio']:.2f}x the speed of run {a}{span}"


def _changed(file: FileIdentity) -> bool:
    try:
        return FileIdentity.of(file.path) != file
    except OSError:
        return True


def _cautions(a: RunConditions, b: RunConditions) -> Iterator[str]:
    if a.build is not None and b.build is not None and a.build != b.build:
        one, other = one_line(a.build, 40), one_line(b.build, 40)
        yield f"the runs are of different builds, {one} and {other}: part of the difference may be theirs"
    for was, now in ((a.binary, b.binary), (a.model, b.model), (a.draft, b.draft)):
        if was is not None and now is not None and was != now and was.path == now.path:
            yield f"{one_line(was.path, 200)} was changed between the runs"


def _ratio(a: Estimate | None, b: Estimate | None) -> Estimate | None:
    if a is None or b is None or a.value <= 0 or b.value <= 0:
        return None
    value = b.value / a.value
    errors = [_log_error(each) for each in (a, b)]
    if None in errors:
        return Estimate(value=value)
    spread = math.exp(math.hypot(*(error for error in errors if error is not None)))
    return Estimate(value=value, low=value / spread, high=value * spread)


def _log_error(estimate: Estimate) -> float | None:
    """Half the width of the interval on a logarithmic scale; an interval that reaches 0 has none."""
    if not estimate.low or estimate.low < 0 or estimate.high is None:
        return None
    return math.log(estimate.high / estimate.low) / 2


def _flat(conditions: RunConditions) -> dict[str, Any]:
    """The conditions by name, but for argv: the settings say the same, and it has another port each time."""
    data = asdict(conditions)
    del data["argv"]
    return {name: value for name, value in _flatten(data).items() if name not in _HIDDEN}


def _flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _spread(run: Mapping[str, Any]) -> dict[str, Any]:
    cost = {f"cost_{name}": value for name, value in run["cost"].items()}
    values = {name: value for name, value in run.items() if name != "cost"} | cost
    return {name: _field(value) for name, value in values.items()}


def _field(value: object) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return one_line(value) if isinstance(value, str) else value


def cell_text(value: object) -> str:
    """A value of a run for people, safe to show."""
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and value and all(isinstance(each, float) for each in value):
        return " ".join(f"{each:.3f}" for each in value)
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 2000)


def local_time(seconds: float) -> str:
    """The reader's local time, to the minute."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def remark_of(run: Mapping[str, Any]) -> str:
    """What must be known of a run before its numbers are believed; empty where nothing."""
    remarks: Sequence[str] = [
        *(["stale"] if run["stale"] else []),
        *(["unfinished"] if run["ended_at"] is None else []),
        *([f"failed: {one_line(run['failure'], 60)}"] if run["failure"] else []),
    ]
    return ", ".join(remarks)
