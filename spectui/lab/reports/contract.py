"""The headless contract: what each command prints with `--json`, as pydantic models.

Unknown is null. Field names are stable; new ones may come. A name is that of the quantity in the code, or stands in
`PLACES` of contract_types: so the pass cost R is `pass_cost` in the code and `round_cost` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spectui.lab.reports.contract_measure import (
    CheckJson,
    CostJson,
    DoctorJson,
    ExplainJson,
    MeasureJson,
    PredictJson,
    ProbeJson,
)
from spectui.lab.reports.contract_types import Count, Model, Named, Number, about


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
    streams: Number = about("mean number of requests that decoded at once")
    round_cost: Number | None


class ConcurrencyJson(Model):
    """Speed with and without speculation, by requests at once."""

    build: str | None
    workload: str
    rows: list[LevelJson] = about("the numbers of requests asked for")
    inverts_between: list[int] | None = about("numbers of requests between which the gain turns")
    message: str = about("the result in one sentence")


class ShiftJson(Model):
    """The second half of a run over its first."""

    value: Number = about("the ratio")
    low: Number = about("lower end of the 99 % interval")
    high: Number = about("upper end of the 99 % interval")


class DriftJson(Model):
    """What changed on the way; null where the run is too short for halves."""

    machine: bool = about("whether an arm became faster or slower")
    result: bool = about("whether the ratio itself changed")
    a: ShiftJson | None = about("speed of a")
    b: ShiftJson | None = about("speed of b")
    ratio: ShiftJson | None = about("speed of b over that of a")


class DifferenceJson(Model):
    """Where two answers part; untrusted text."""

    prompt: str = about("the prompt, cut to one line")
    position: Count = about("characters that both share before it")
    a: str = about("how the answer of a goes on")
    b: str = about("how the answer of b goes on")


class ComparedWorkload(Model):
    """One workload of `ab`."""

    ratio: Number | None
    low: Number | None
    high: Number | None
    verdict: str
    pairs: Count
    further_pairs: int | None = about("pairs beyond these that would show a difference of `decides`")
    decides: Number = about("difference from 1 that the run is made to show")
    stopped: str = about("why it ended")
    short_answers: Count = about("answers that were too short to time")
    drift: DriftJson = about("what changed on the way")
    identical_outputs: bool | None
    different_outputs: int | None = about("prompts whose answers differ; null where nothing was compared")
    first_difference: DifferenceJson | None = about("the first prompt whose answers part, and where")
    summary: str


class AbJson(Model):
    """Two configurations beside each other; the top level is all workloads together, each counting alike."""

    a: MeasureJson = about("the first arm, as `measure` prints it")
    b: MeasureJson = about("the second arm")
    ratio: Number | None
    low: Number | None
    high: Number | None
    verdict: str
    pairs: Count
    identical_outputs: bool | None
    workloads: dict[str, ComparedWorkload] = about("the comparison by name of the workload")
    summary: str


class SettingJson(Model):
    """A setting of speculation."""

    mode: str
    draft: str | None
    k: int | None
    p_min: Number | None
    ngram_lookup: int | None
    ngram_length: int | None


class ConditionJson(Model):
    """What a server is asked under."""

    workload: str
    temperature: Number


class PlannedCell(SettingJson, ConditionJson):
    """A setting on a workload at a temperature."""


class CellJson(PlannedCell):
    """A cell of a sweep."""

    tokens_per_second: Number | None
    speedup_actual: Number | None
    speedup_predicted: Number | None = about(
        "from cells that were measured, or of this one by the full cost of a pass"
    )
    low: Number | None
    high: Number | None
    measured: bool
    requests: Count
    tokens_per_pass: Number | None
    failure: str | None


class SweepBaselineJson(ConditionJson):
    """Speed of a workload at a temperature without speculation."""

    tokens_per_second: Number | None
    low: Number | None
    high: Number | None
    drift: Number | None = about("the last baseline over the first; null with one")


class RecommendationJson(SettingJson):
    """The setting to use."""

    speedup: Number
    low: Number | None
    high: Number | None
    measured: bool
    doubts: list[str] = about("why it is not sure, a few words each")


class SweepJson(Model):
    """The best setting of each workload, and every cell."""

    sweep: int | None = about("number of the sweep in the store; null where it was not kept")
    finished: bool = about("whether nothing is left to measure")
    cells: list[CellJson] = about("every setting on every workload")
    baselines: list[SweepBaselineJson] = about("speeds without speculation")
    recommendation: dict[str, RecommendationJson | None] = about(
        "what to use, by workload; null where nothing is known"
    )
    server_seconds: Number = about("seconds that servers ran for")


class SpanJson(Model):
    """From the least to the most."""

    least: Number = about("at least so many")
    most: Number = about("at most so many")


class SweepPlanJson(Model):
    """What a sweep would measure, and how long that takes."""

    cells: list[PlannedCell] = about("every setting on every workload")
    restarts: SpanJson = about("server starts")
    minutes: SpanJson = about("minutes that it takes")
    tokens_per_second: Number = about("speed without speculation that the minutes rest on, tokens per second")
    speed_source: str = about("measured or assumed")


class FileJson(Model):
    """A file as it was when the run was measured."""

    path: str
    size: Count = about("bytes")
    mtime_ns: int = about("time of its last change, nanoseconds since 1970")


class MachineJson(Model):
    """The machine that a server ran on."""

    name: str = about("host name")
    cpu: str | None = about("model of the processor")
    cores: int | None = about("physical cores")
    memory_gib: Number | None = about("main memory, GiB")
    gpus: list[str] = about("names of the GPUs")


class RunJson(Model):
    """Everything that is kept of one run; its numbers are those of `measure`."""

    id: int = about("number of the run")
    source: str = about("command that measured it, or the dashboard")
    started_at: Number = about("seconds since 1970")
    ended_at: Number | None = about("seconds since 1970; null while it runs, or where it was cut off")
    failure: str | None
    stale: bool | None = about("whether the build or a file changed since; null where nothing tells")
    workload: str
    mode: str
    k: int | None
    p_min: Number | None
    temperature: Number
    concurrency: int
    model: str | None = about("file of the target")
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
    baseline_source: str | None = about("where the speed without speculation is from")
    speedup_actual: Number | None
    speedup_low: Number | None
    speedup_high: Number | None
    speedup_textbook: Number | None
    speedup_predicted: Number | None
    round_cost: Number | None
    cost: CostJson
    stalled_passes: Count
    argv: list[str] | None
    binary: FileJson | None = about("llama-server; null for a server of somebody else")
    machine: MachineJson | None = about("the machine that the server ran on; null where it is unknown")
    profile: Named = about("the whole profile, by section")


class HistoryJson(Model):
    """The runs that were measured, the newest first."""

    runs: list[RunJson] = about("the runs")


class HistoryComparisonJson(Model):
    """In what two runs differ."""

    a: RunJson = about("the first run")
    b: RunJson = about("the second run")
    differences: dict[str, Named] = about("settings that differ: the values a and b by section.field")
    ratio: Number | None
    low: Number | None
    high: Number | None
    cautions: list[str] = about("what else changed between them: the build, or a file")


class RemovedJson(Model):
    """How much was removed."""

    runs: Count = about("number of runs")
    sweeps: Count = about("number of sweeps")


class HistoryPruneJson(Model):
    """How many old runs and sweeps were removed."""

    removed: RemovedJson = about("how many")


class ProfileJson(Model):
    """A saved or shipped profile."""

    name: str = about("name to give to commands")
    description: str = about("what it is for, in its own words")
    shipped: bool = about("whether it comes with spectui")
    path: str
    problem: str | None = about("why it cannot be used")


class ProfilesJson(Model):
    """Saved and shipped profiles."""

    profiles: list[ProfileJson] = about("the profiles")


CONTRACT: Final[Mapping[str, type[Model]]] = MappingProxyType(
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
        "export --format json": SweepJson,
        "history": HistoryJson,
        "history show": RunJson,
        "history compare": HistoryComparisonJson,
        "history export --format json": HistoryJson,
        "history prune": HistoryPruneJson,
        "profiles list": ProfilesJson,
    }
)
"""The model of every command that prints JSON."""
