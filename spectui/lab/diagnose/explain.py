"""`spectui explain`: numbers, a server's log or a file of passes -> the explained bet and its verdict.

Reads what enters and fills in what the log of that era leaves open; the arithmetic is `core.explain`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spectui.core.bet.intervals import RatioSums, ratio
from spectui.core.bet.passes import RequestPasses
from spectui.core.profile import OFF
from spectui.core.verdict.explain import Explained, Observed, explain
from spectui.core.verdict.facts import WINNING_FROM, Facts
from spectui.core.verdict.findings import Failure, Verdict
from spectui.core.verdict.verdict import judge
from spectui.errors import UsageError
from spectui.lab.diagnose.log_reading import LogReading, read_log
from spectui.lab.diagnose.pass_files import read_passes
from spectui.lab.reports.contract_measure import ExplainJson
from spectui.lab.reports.contract_types import contract_values
from spectui.lab.reports.text import columns, finding_lines, number
from spectui.llama.builds import DEFAULT_LENGTH, PRESENT_DEFAULTS, TWO_PASSES, rereads_draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says; None and empty are unknown."""

    baseline: float | None = None
    measured: float | None = None
    draft_length: int | None = None
    ratio: float | None = None
    p_min: float | None = None
    c: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    predicted: int | None = None
    slots: int = 1
    v: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The values and the verdict."""

    values: Explained
    verdict: Verdict
    note: str = ""
    """What to know of the source, in one line."""


def explain_numbers(given: Given) -> Explanation:
    """Explain stated numbers. Raises UsageError where they say nothing or contradict each other."""
    _check(given)
    known = (given.ratio, given.drafted, given.measured)
    if all(value is None for value in known):
        raise UsageError(
            "explain needs numbers: --ratio with --k, or --drafted, --accepted and --predicted, "
            "with --baseline and --measured; or --log, or --passes"
        )
    return _judged(_observed(given))


def explain_passes(given: Given, path: str) -> Explanation:
    """Explain a file of passes. Raises UsageError, one line, for a file that cannot be used."""
    _check(given)
    passes = read_passes(path)
    longest = max(p.drafted for r in passes for p in r.passes)
    seen = replace(
        _observed(given),
        draft_length=given.draft_length or longest or None,
        passes=passes,
    )
    return _judged(_with_speed(seen, _pass_speeds(passes)))


def explain_log(given: Given, path: str) -> Explanation:
    """Explain a server's log; what the command line says goes before it. Raises UsageError."""
    _check(given)
    log = read_log(path)
    counted = given.drafted is None and given.accepted is None
    known_p_min = given.p_min if given.p_min is not None else log.p_min
    seen = replace(
        _observed(given),
        mode=OFF if log.plain else log.mode or "draft-simple",
        draft_length=given.draft_length or log.draft_length,
        p_min=_usual_p_min(log.build) if known_p_min is None else known_p_min,
        drafted=log.drafted if counted else given.drafted,
        accepted=log.accepted if counted else given.accepted,
        predicted=given.predicted if given.predicted is not None else log.predicted,
        first_tokens=max(1, log.requests),
        requests=log.requests,
        passes=log.passes,
        shares=log.shares,
        two_pass=log.build in TWO_PASSES,
        rereads=rereads_draft(log.build),
    )
    seen = _with_speed(seen, log.speeds if given.slots == 1 else ())
    if seen.c is None and seen.p_min == 0.0 and given.slots == 1 and log.draft_ms and seen.baseline:
        seen = replace(seen, c=log.draft_ms * seen.baseline / 1000)
    extra: dict[str, Any] = {
        "restored_share": log.restored_share,
        "repeated_prompts": log.repeated,
        "default_changed": _default_changed(given, log),
    }
    explained = _judged(seen, failures=_failures(log), **extra)
    if log.processes == 1:
        return explained
    note = f"{log.processes} servers wrote this log, one after the other; this is about the last one that answered"
    return replace(explained, note=note)


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """The object of `explain --json`; unknown is null, and a best length of null with 1.0 means off."""
    facts = explanation.values.facts
    best = facts.best
    worthwhile = best is not None and best.speedup >= WINNING_FROM and (best.low is None or best.low > 1)
    return contract_values(
        ExplainJson,
        facts.bet,
        facts,
        explanation.verdict,
        predictions=[
            {"k": p.draft_length, "speedup": p.speedup, "low": p.low, "high": p.high}
            for p in explanation.values.predictions
        ],
        best={
            "k": best.draft_length if best and worthwhile else None,
            "speedup": None if best is None else best.speedup if worthwhile else 1.0,
        },
    )


def explanation_table(data: dict[str, Any]) -> str:
    """The same for people: the verdict first, then the numbers behind it."""
    findings = finding_lines(data["findings"])
    values = [
        ("alpha, per-token acceptance", _with_interval(data)),
        ("acceptance ratio", number(data["acceptance_ratio"])),
        ("tokens per pass, E", number(data["tokens_per_pass"])),
        ("drafted per pass", number(data["drafted_per_pass"])),
        ("cost of a pass in plain steps, R", number(data["round_cost"])),
        ("price of a drafted token, all included", number(data["implied_c"])),
        ("speedup, actual", number(data["speedup_actual"], 2, "x")),
        ("speedup, textbook", number(data["speedup_textbook"], 2, "x")),
        ("speedup, predicted", number(data["speedup_predicted"], 2, "x")),
    ]
    parts = [*findings, columns(("", ""), values).lstrip("\n")]
    if data["predictions"]:
        rows = [(str(p["k"]), f"{p['speedup']:.2f}x") for p in data["predictions"]]
        best = data["best"]
        said = "off" if best["k"] is None else f"draft length {best['k']}, {best['speedup']:.2f}x"
        parts += [columns(("length", "predicted"), rows, right=True), f"best: {said}"]
    return "\n".join(parts)


def _with_interval(data: dict[str, Any]) -> str:
    if data["alpha_low"] is None:
        return number(data["alpha"])
    return f"{data['alpha']:.2f} ({data['alpha_low']:.2f} to {data['alpha_high']:.2f})"


def _check(given: Given) -> None:
    counts = {"--drafted": given.drafted, "--accepted": given.accepted}
    missing = [name for name, value in counts.items() if value is None]
    if len(missing) == 1:
        raise UsageError(f"{missing[0]} is missing: give both --drafted and --accepted, or neither")
    if given.drafted is not None and given.accepted is not None and given.accepted > given.drafted:
        raise UsageError(
            f"--accepted {given.accepted} is more than --drafted {given.drafted}: check which is which"
        )
    if given.accepted is not None and given.predicted is not None and given.predicted <= given.accepted + 1:
        raise UsageError(
            f"--predicted {given.predicted} leaves no token for the target beside --accepted {given.accepted}: "
            "give all generated tokens"
        )


def _observed(given: Given) -> Observed:
    return Observed(
        baseline=given.baseline,
        measured=given.measured,
        draft_length=given.draft_length,
        p_min=0.0 if given.p_min is None else given.p_min,
        ratio=given.ratio if given.drafted is None else None,
        drafted=given.drafted,
        accepted=given.accepted,
        predicted=given.predicted,
        c=given.c,
        v=given.v,
        slots=given.slots,
    )


def _judged(seen: Observed, *, failures: tuple[Failure, ...] = (), **extra: Any) -> Explanation:
    values = explain(seen)
    facts: Facts = replace(values.facts, **extra)
    return Explanation(values, judge(facts, failures))


def _pass_speeds(passes: Iterable[RequestPasses]) -> tuple[RatioSums, ...]:
    found = []
    for request in passes:
        sums = RatioSums()
        for step in request.passes:
            if step.ms is not None:
                sums = sums.plus(step.committed, step.ms / 1000)
        found.append(sums)
    return tuple(found)


def _with_speed(seen: Observed, speeds: tuple[RatioSums, ...]) -> Observed:
    """The speed that was counted, with its interval, unless one is stated."""
    speed = ratio(speeds)
    if seen.measured is not None or speed is None or speed.value <= 0:
        return seen
    interval = speed.interval()
    error = None if interval is None else interval[1] / speed.value - 1
    return replace(seen, measured=speed.value, speed_error=error, speed_stated=False)


def _usual_p_min(build: int | None) -> float | None:
    """0 where that is the build's default; else None, and the counts tell whether drafts were cut."""
    return 0.0 if build in PRESENT_DEFAULTS else None


def _failures(log: LogReading) -> tuple[Failure, ...]:
    if log.off is None:
        return log.failures
    text = log.off
    if log.draft_idle:
        text = (
            f"a draft model is loaded and nothing speculates ({text}): "
            "builds from b9464 on need a type, such as --spec-type draft-simple"
        )
    return (*log.failures, Failure(code="speculation-off", text=text))


def _default_changed(given: Given, log: LogReading) -> str:
    """Whoever expects other lengths than a log shows, while the log shows the new defaults, met the change."""
    if (log.draft_length, log.p_min) != (DEFAULT_LENGTH, 0.0):
        return ""
    expected = [
        f"{name} {value:g}"
        for name, value, found in (
            ("draft length", given.draft_length, log.draft_length),
            ("p_min", given.p_min, log.p_min),
        )
        if value is not None and value != found
    ]
    if not expected:
        return ""
    return (
        f"you expect {' and '.join(expected)}; the server runs draft length 3 and p_min 0, today's defaults"
    )
