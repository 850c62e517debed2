"""The headless contract of measure, probe, predict, explain, check and doctor."""

from __future__ import annotations

from pydantic import Field

from spectui.lab.reports.contract_types import Count, Model, Named, Number


class FindingJson(Model):
    """What is the case, and what to do about it."""

    code: str = Field(description="stable name of the finding")
    message: str
    advice: str = Field(description="what to do; empty where nothing is to be done")
    evidence: Named = Field(description="the numbers that it rests on")


class CostJson(Model):
    """The price of a pass in plain steps."""

    t1_ms: Number | None = Field(description="milliseconds of a plain step")
    c: Number | None = Field(description="a draft step in plain steps")
    u: Number | None = Field(description="fixed rest of a pass in plain steps")
    v: dict[str, Number] | None = Field(description="a pass over n tokens in plain steps, by n")
    sources: dict[str, str] = Field(description="probed, counted, fitted, assumed or stated, by part")
    intervals: Named = Field(description="95 % interval by part, null where it is unknown")
    inseparable: str | None = Field(description="parts that this run cannot tell apart")


class LossJson(Model):
    """Where the plain steps of a pass go; they sum to `round_cost`."""

    tokens: Number = Field(description="E, the plain steps that a pass replaces")
    target: Number
    drafting: Number
    verification: Number
    overhead: Number
    unexplained: Number


class WorkloadJson(Model):
    """One workload of `measure`."""

    requests: Count = Field(description="requests that ended")
    tokens: Count = Field(description="committed tokens, without the free first ones")
    passes: Count = Field(description="target passes")
    drafted: Count
    accepted: Count
    tokens_per_second: Number | None = Field(description="decode speed of all streams together")
    time_to_first_token_ms: Number | None = Field(description="median, milliseconds")
    alpha: Number | None = Field(description="per-token acceptance; full acceptance is censored")
    alpha_low: Number | None
    alpha_high: Number | None
    acceptance_ratio: Number | None = Field(description="accepted over drafted")
    tokens_per_pass: Number | None = Field(description="E")
    drafted_per_pass: Number | None
    survival: list[Number] | None = Field(
        description="share of passes that accept at least j tokens, j from 1"
    )
    pass_ms: Number | None = Field(description="mean milliseconds of a pass with its drafting")
    baseline_tokens_per_second: Number | None = Field(description="speed without speculation")
    speedup_actual: Number | None
    speedup_low: Number | None = Field(description="95 % interval of the actual speedup")
    speedup_high: Number | None
    speedup_textbook: Number | None = Field(description="E / (1 + k c)")
    speedup_predicted: Number | None = Field(description="by the full cost of a pass")
    round_cost: Number | None = Field(description="R, cost of a pass in plain steps")
    cost: CostJson
    stalled_passes: Count = Field(description="passes that something else held up; left out of speeds")
    loss: LossJson | None
    outcome: str | None = Field(description="winning, even, losing, off, unknown or broken")


class MeasureJson(Model):
    """`spectui measure`."""

    build: str | None
    argv: list[str] | None = Field(description="the server's command line, secrets taken out")
    workloads: dict[str, WorkloadJson]
    findings: list[FindingJson]


class ProbeJson(Model):
    """`spectui probe`."""

    t1_ms: Number | None = Field(description="milliseconds of a plain step")
    v: dict[str, Number | None] = Field(
        description="V(n) in plain steps by n; null where it was not measured"
    )


class BestLength(Model):
    """The fastest draft length; k is null where speculation off is."""

    k: int | None
    speedup: Number | None


class PredictedLength(Model):
    """One draft length of `predict`."""

    k: int
    expected_tokens: Number = Field(description="E, tokens per pass")
    speedup: Number
    break_even_alpha: Number | None = Field(description="alpha that breaks even; textbook form only")


class PredictJson(Model):
    """`spectui predict`."""

    alpha: Number
    c: Number
    model: str = Field(description="textbook or full")
    rows: list[PredictedLength]
    best: BestLength


class ExplainedLength(Model):
    """Speedup at another draft length."""

    k: int
    speedup: Number
    low: Number | None
    high: Number | None


class ExplainJson(Model):
    """`spectui explain`."""

    alpha: Number | None
    alpha_low: Number | None
    alpha_high: Number | None
    acceptance_ratio: Number | None
    tokens_per_pass: Number | None
    drafted_per_pass: Number | None
    round_cost: Number | None = Field(description="R, cost of a pass in plain steps")
    implied_c: Number | None = Field(description="(R - 1) / mean d")
    speedup_actual: Number | None
    speedup_textbook: Number | None
    speedup_predicted: Number | None
    predictions: list[ExplainedLength]
    best: BestLength
    findings: list[FindingJson]


class CheckJson(Model):
    """`spectui check`."""

    ok: bool = Field(description="whether the binary takes the line as it is")
    findings: list[FindingJson]
    argv: list[str] | None = Field(
        description="the line corrected; null where that cannot be done without asking"
    )


class ExaminedJson(Model):
    """What `doctor` looked at."""

    url: str | None
    binary: str | None
    build: str | None
    model: str | None
    draft: str | None
    mode: str | None
    draft_length: int | None
    speculating: bool | None
    acceptance_ratio: Number | None
    command_checked: bool


class DoctorJson(Model):
    """`spectui doctor`."""

    ok: bool
    findings: list[FindingJson]
    server: ExaminedJson
