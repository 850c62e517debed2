"""The headless contract of measure, probe, predict, explain, check and doctor."""

from __future__ import annotations

from spectui.lab.reports.contract_types import Count, Model, Named, Number, about


class FindingJson(Model):
    """What is the case, and what to do about it."""

    code: str = about("stable name of the finding")
    message: str = about("the finding in one sentence; untrusted text may be part of it")
    advice: str = about("what to do; empty where nothing is to be done")
    evidence: Named = about("numbers and words that it rests on, by name")


class CostJson(Model):
    """Parts of the cost of a pass; V(n) is the cost of a target pass over n tokens."""

    t1_ms: Number | None
    c: Number | None
    u: Number | None = about("fixed rest of a pass, in plain steps")
    v: dict[str, Number] | None = about("V(n) in plain steps, by n")
    sources: dict[str, str] = about("probed, counted, fitted, assumed or stated, by part")
    intervals: Named = about("95 % interval by part; null where it is unknown")
    inseparable: str | None = about("parts that this run cannot tell apart")


class LossJson(Model):
    """Where the plain steps of a pass go; all but tokens sum to `round_cost`."""

    tokens: Number = about("E, the plain steps that a pass replaces")
    target: Number = about("the plain step that a pass is at least")
    drafting: Number = about("plain steps of drafting")
    verification: Number = about("plain steps of verifying drafted tokens")
    overhead: Number = about("plain steps of the fixed rest, u")
    unexplained: Number = about("plain steps that no known part explains")


class WorkloadJson(Model):
    """One workload of `measure`."""

    requests: Count
    tokens: Count
    passes: Count
    drafted: Count
    accepted: Count
    tokens_per_second: Number | None
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
    speedup_actual: Number | None
    speedup_low: Number | None
    speedup_high: Number | None
    speedup_textbook: Number | None
    speedup_predicted: Number | None
    round_cost: Number | None
    cost: CostJson
    stalled_passes: Count
    loss: LossJson | None = about("where the plain steps of a pass go")
    outcome: str | None = about("winning, even, losing, off, unknown or broken")


class MeasureJson(Model):
    """What the bet yields, by workload."""

    build: str | None
    argv: list[str] | None
    workloads: dict[str, WorkloadJson] = about("numbers by name of the workload")
    findings: list[FindingJson]


class ProbeJson(Model):
    """What a target pass over n tokens costs."""

    t1_ms: Number | None
    v: dict[str, Number | None] = about("V(n) in plain steps, by n; null where it could not be measured")


class BestLength(Model):
    """The fastest draft length of those asked for."""

    k: int | None = about("draft length, tokens; null where speculation off is as fast, or nothing is known")
    speedup: Number | None


class PredictedLength(Model):
    """One draft length of `predict`."""

    k: int
    expected_tokens: Number = about("E, the mean number of tokens that a pass commits")
    speedup: Number
    break_even_alpha: Number | None = about("alpha that breaks even; null for the full cost of a pass")


class PredictJson(Model):
    """Speedup by draft length, without a server."""

    alpha: Number
    c: Number
    model: str = about("textbook, E / (1 + k c), or full, E / (V(k + 1) + (k + 1) c + u)")
    rows: list[PredictedLength] = about("the draft lengths asked for")
    best: BestLength = about("the fastest of them")


class ExplainedLength(Model):
    """Predicted speedup at a draft length."""

    k: int
    speedup: Number
    low: Number | None
    high: Number | None


class ExplainJson(Model):
    """Why a bet wins or loses."""

    alpha: Number | None
    alpha_low: Number | None
    alpha_high: Number | None
    acceptance_ratio: Number | None
    tokens_per_pass: Number | None
    drafted_per_pass: Number | None
    round_cost: Number | None
    implied_c: Number | None = about(
        "(R - 1) / drafted per pass: price of a drafted token, all included, in plain steps"
    )
    speedup_actual: Number | None
    speedup_textbook: Number | None
    speedup_predicted: Number | None
    predictions: list[ExplainedLength] = about("predicted speedup by draft length")
    best: BestLength = about("the fastest of them")
    findings: list[FindingJson]


class CheckJson(Model):
    """What is wrong with a pasted command line."""

    ok: bool
    findings: list[FindingJson]
    argv: list[str] | None = about("the line corrected; null where that cannot be done without asking")


class ExaminedJson(Model):
    """What `doctor` looked at; null is unknown, or does not apply."""

    url: str | None = about("address of a running server; null before a launch")
    binary: str | None = about("path of llama-server")
    build: str | None
    model: str | None = about("name of the target")
    draft: str | None
    mode: str | None
    draft_length: int | None = about("draft length, tokens; for n-gram modes the longest of the lookup")
    speculating: bool | None = about("whether the server's slots say that it speculates")
    acceptance_ratio: Number | None
    command_checked: bool = about("whether the command line was there to be checked")


class DoctorJson(Model):
    """What is wrong with a profile or a running server."""

    ok: bool = about("whether nothing keeps the server from starting, speculating or answering")
    findings: list[FindingJson]
    server: ExaminedJson = about("what was looked at")
