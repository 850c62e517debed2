"""The headless contract: what each command prints with `--json`, as pydantic models.

Unknown is null. Field names are stable; new ones may come. A name is that of the quantity in the code, or stands in
`PLACES` of contract_types: so the pass cost R is `pass_cost` in the code and `round_cost` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, Field

from spectui.lab.reports.contract_measure import (
    CheckJson,
    CostJson,
    DoctorJson,
    ExplainJson,
    MeasureJson,
    PredictJson,
    ProbeJson,
)
from spectui.lab.reports.contract_types import Count, Model, Named, Number


class LevelJson(Model):
    """One number of requests at once."""

    concurrency: int
    tokens_per_second: Number | None
    baseline_tokens_per_second: Number | None
    speedup_actual: Number | None
    low: Number | None
    high: Number | None
    speedup_predicted: Number | None
    tokens_per_pass: Number | None
    streams: Number = Field(description="mean number of requests that decoded at once")
    round_cost: Number | None


class ConcurrencyJson(Model):
    """`spectui concurrency`."""

    build: str | None
    workload: str
    rows: list[LevelJson]
    inverts_between: list[int] | None = Field(description="numbers of requests between which the gain turns")
    message: str


class _Ratio(Model):
    ratio: Number | None = Field(description="speed of b over that of a")
    low: Number | None
    high: Number | None


class ShiftJson(Model):
    """The second half of a run over its first, 99 %."""

    value: Number
    low: Number
    high: Number


class DriftJson(Model):
    """What changed on the way."""

    machine: bool
    result: bool
    a: ShiftJson | None
    b: ShiftJson | None
    ratio: ShiftJson | None


class DifferenceJson(Model):
    """Where two answers part."""

    prompt: str
    position: Count = Field(description="characters that both share before it")
    a: str
    b: str


class ComparedWorkload(_Ratio):
    """One workload of `ab`."""

    verdict: str
    pairs: Count
    further_pairs: int | None
    decides: Number = Field(description="difference from 1 that the run is made to show")
    stopped: str = Field(description="why it ended")
    short_answers: Count
    drift: DriftJson
    identical_outputs: bool | None
    different_outputs: int | None
    first_difference: DifferenceJson | None
    summary: str


class AbJson(_Ratio):
    """`spectui ab`; the top level is all workloads together, each counting alike."""

    a: MeasureJson
    b: MeasureJson
    verdict: str
    pairs: Count
    identical_outputs: bool | None
    workloads: dict[str, ComparedWorkload]
    summary: str


class SettingJson(Model):
    """A setting of speculation."""

    mode: str
    draft: str | None
    k: int | None
    p_min: Number | None
    ngram_lookup: int | None
    ngram_length: int | None


class PlannedCell(SettingJson):
    """A setting on a workload at a temperature."""

    workload: str
    temperature: Number


class CellJson(PlannedCell):
    """A cell of a sweep."""

    tokens_per_second: Number | None
    speedup_actual: Number | None
    speedup_predicted: Number | None
    low: Number | None
    high: Number | None
    measured: bool
    requests: Count
    tokens_per_pass: Number | None
    failure: str | None


class SweepBaselineJson(Model):
    """The plain speed of a workload at a temperature."""

    workload: str
    temperature: Number
    tokens_per_second: Number | None
    low: Number | None
    high: Number | None
    drift: Number | None = Field(description="the last baseline over the first; null with one")


class RecommendationJson(SettingJson):
    """What to use."""

    speedup: Number
    low: Number | None
    high: Number | None
    measured: bool
    doubts: list[str]


class SweepJson(Model):
    """`spectui sweep`, and `export --format json`."""

    sweep: int | None = Field(description="its number in the store; null where it was not kept")
    finished: bool
    cells: list[CellJson]
    baselines: list[SweepBaselineJson]
    recommendation: dict[str, RecommendationJson | None]
    server_seconds: Number


class SpanJson(Model):
    """From the least to the most."""

    least: Number
    most: Number


class SweepPlanJson(Model):
    """`spectui sweep --plan`."""

    cells: list[PlannedCell]
    restarts: SpanJson = Field(description="server starts")
    minutes: SpanJson
    tokens_per_second: Number
    speed_source: str = Field(description="measured or assumed")


class FileJson(Model):
    """A file as it was."""

    path: str
    size: Count = Field(description="bytes")
    mtime_ns: int


class MachineJson(Model):
    """The machine that a server ran on."""

    name: str
    cpu: str | None
    cores: int | None
    memory_gib: Number | None
    gpus: list[str]


class RunJson(Model):
    """One kept run: `spectui history show`; the numbers are those of `measure`."""

    id: int
    source: str
    started_at: Number = Field(description="seconds since 1970")
    ended_at: Number | None
    failure: str | None
    stale: bool | None = Field(
        description="whether the build or a file changed since; null where nothing tells"
    )
    workload: str
    mode: str
    k: int | None
    p_min: Number | None
    temperature: Number
    concurrency: int
    model: str | None
    draft: str | None
    build: str | None
    requests: Count
    tokens: Count
    passes: Count
    drafted: Count
    accepted: Count
    tokens_per_second: Number | None
    tokens_per_second_low: Number | None
    tokens_per_second_high: Number | None
    time_to_first_token_ms: Number | None
    alpha: Number | None
    alpha_low: Number | None
    alpha_high: Number | None
    acceptance_ratio: Number | None
    tokens_per_pass: Number | None
    drafted_per_pass: Number | None
    survival: list[Number] | None
    pass_ms: Number | None
    baseline_tokens_per_second: Number | None
    baseline_source: str | None
    speedup_actual: Number | None
    speedup_low: Number | None
    speedup_high: Number | None
    speedup_textbook: Number | None
    speedup_predicted: Number | None
    round_cost: Number | None
    cost: CostJson
    stalled_passes: Count
    argv: list[str] | None
    binary: FileJson | None
    machine: MachineJson | None
    profile: Named = Field(description="the whole profile, by section")


class HistoryJson(Model):
    """`spectui history`, and `history export --format json`."""

    runs: list[RunJson]


class HistoryComparisonJson(_Ratio):
    """`spectui history compare`."""

    a: RunJson
    b: RunJson
    differences: dict[str, Named]
    cautions: list[str]


class RemovedJson(Model):
    """How much was removed."""

    runs: Count
    sweeps: Count


class HistoryPruneJson(Model):
    """`spectui history prune`."""

    removed: RemovedJson


class ProfileJson(Model):
    """A saved or shipped profile."""

    name: str
    description: str
    shipped: bool
    path: str
    problem: str | None = Field(description="why it cannot be used")


class ProfilesJson(Model):
    """`spectui profiles list`."""

    profiles: list[ProfileJson]


CONTRACT: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        "measure": MeasureJson,
        "probe": ProbeJson,
        "predict": PredictJson,
        "explain": ExplainJson,
        "check": CheckJson,
        "doctor": DoctorJson,
        "concurrency": ConcurrencyJson,
        "ab": AbJson,
        "sweep": SweepJson,
        "sweep --plan": SweepPlanJson,
        "history": HistoryJson,
        "history show": RunJson,
        "history compare": HistoryComparisonJson,
        "history prune": HistoryPruneJson,
        "profiles list": ProfilesJson,
    }
)
"""The model of each command that has `--json`."""
