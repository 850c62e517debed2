"""Measurements -> ranked findings: what is the case, with the numbers, and what to do about it.

Two declarative tables, one for launches and one for measurements; a row is a code, the group that ranks it, when
it holds, and its words. The codes are part of the headless contract and stay stable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final


class Group(IntEnum):
    """Rank of a finding: the first group wins."""

    CANNOT_START = 1
    NOT_SPECULATING = 2
    FAILING = 3
    CANNOT_JUDGE = 4
    THE_BET = 5
    TO_KNOW = 6


class Outcome(StrEnum):
    """The bet in one word."""

    WINNING = "winning"
    LOSING = "losing"
    EVEN = "even"
    OFF = "off"
    UNKNOWN = "unknown"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting that a finding advises, so that one key can apply it."""

    mode: str | None = None
    draft_length: int | None = None
    p_min: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement with its evidence. message and advice are each one sentence; advice may be empty."""

    code: str
    group: Group
    message: str
    advice: str = ""
    evidence: Mapping[str, float | int | str | None] = field(default_factory=dict)
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The ranked findings of one segment and the sentence that heads them."""

    outcome: Outcome = Outcome.UNKNOWN
    headline: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def change(self) -> Change | None:
        """The first change that a finding advises."""
        return next((f.change for f in self.findings if f.change is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that a launch, a log or an HTTP answer said; code as in the launch table, text as it was said."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the measurement table judges. Unknown is None; speeds in tokens per second, lengths in tokens."""

    mode: str
    draft_length: int
    p_min: float = 0.0
    speculating: bool | None = None
    draft_on_cpu_beside_gpu: bool = False
    requests: int = 0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    tokens_per_pass: float | None = None
    drafted_per_pass: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    best_length: int | None = None
    """Draft length with the largest predicted speedup; None where lengths cannot be predicted."""
    best_speedup: float | None = None
    two_pass_server: bool = False
    traffic: bool = False
    """Whether test traffic flows."""
    baseline_expected: bool = True
    """Whether a baseline can be had at all by pressing a key."""

    @property
    def is_on(self) -> bool:
        """Whether the settings ask for speculation."""
        return self.mode != "off"

    @property
    def judged(self) -> bool:
        """Whether there is enough to judge the bet at all."""
        return self.is_on and self.speedup is not None and self.passes >= MIN_LIVE_PASSES

    @property
    def wins(self) -> bool:
        """Actual speedup at least 1.05, and its interval above 1."""
        return (
            self.judged
            and self.speedup is not None
            and self.speedup >= WINNING_FROM
            and (self.speedup_low or 0.0) > 1.0
        )

    @property
    def better_length(self) -> int | None:
        """A draft length that is predicted to win and to beat the running one; None if there is none."""
        if self.best_length is None or self.best_speedup is None or self.best_length == self.draft_length:
            return None
        now = self.speedup or 0.0
        worthwhile = self.best_speedup >= WINNING_FROM and self.best_speedup > now * 1.03
        return self.best_length if worthwhile else None


WINNING_FROM: Final = 1.05
MIN_LIVE_PASSES: Final = 20
"""Passes below which the dashboard calls nothing at all."""
ENOUGH_PASSES: Final = 200
ENOUGH_REQUESTS: Final = 10
_WRONG_PAIR_DRAFTS: Final = 50
_WRONG_PAIR_RATIO: Final = 0.02


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the measurement table."""

    code: str
    group: Group
    when: Callable[[Facts], bool]
    message: Callable[[Facts], str]
    advice: Callable[[Facts], str] = lambda _: ""
    evidence: tuple[str, ...] = ()
    change: Callable[[Facts], Change | None] = lambda _: None


def _length_message(f: Facts) -> str:
    bought = (f.tokens_per_pass or 1.0) - 1.0
    return f"{f.drafted_per_pass or 0.0:.0f} drafted tokens buy {bought:.2f}"


def _length_advice(f: Facts) -> str:
    return f"draft length {f.draft_length} -> {f.better_length}: predicted {f.best_speedup or 0.0:.2f}x"


def _length_change(f: Facts) -> Change | None:
    return Change(draft_length=f.better_length)


MEASUREMENT_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "speculation-off",
        Group.NOT_SPECULATING,
        lambda f: f.is_on and f.speculating is False,
        lambda f: f"{f.mode} was asked for and nothing speculates: the server says so itself",
        lambda _: "see the server's log for the reason; the draft only costs memory now",
        ("mode", "speculating"),
    ),
    Rule(
        "no-drafts",
        Group.NOT_SPECULATING,
        lambda f: (
            f.is_on and f.speculating is not False and f.drafted == 0 and f.passes >= 3 * MIN_LIVE_PASSES
        ),
        lambda f: f"speculation is on, and {f.passes} passes drafted nothing",
        lambda f: (
            "this workload repeats nothing: use a draft model, or a shorter lookup"
            if f.mode.startswith("ngram-")
            else f"lower p_min ({f.p_min:g}) or the least draft length"
        ),
        ("passes", "drafted", "p_min"),
    ),
    Rule(
        "draft-on-cpu",
        Group.NOT_SPECULATING,
        lambda f: f.is_on and f.draft_on_cpu_beside_gpu,
        lambda _: "the target runs on the GPU and the draft on the CPU",
        lambda _: "put the draft on the GPU: draft_gpu_layers = 99",
    ),
    Rule(
        "baseline-missing",
        Group.CANNOT_JUDGE,
        lambda f: f.is_on and f.speedup is None and f.passes > 0,
        lambda _: "no baseline: whether the bet wins is unknown",
        lambda f: "press b to measure it" if f.baseline_expected else "give one with --baseline",
    ),
    Rule(
        "run-too-short",
        Group.CANNOT_JUDGE,
        lambda f: f.is_on and f.passes > 0 and (f.passes < ENOUGH_PASSES or f.requests < ENOUGH_REQUESTS),
        lambda f: f"only {f.passes} passes in {f.requests} finished requests so far",
        lambda _: f"numbers settle from {ENOUGH_PASSES} passes in {ENOUGH_REQUESTS} requests on",
        ("passes", "requests"),
    ),
    Rule(
        "winning",
        Group.THE_BET,
        lambda f: f.wins,
        lambda f: f"each pass yields {f.tokens_per_pass or 0.0:.2f} tokens for {_cost(f):.2f} plain steps",
        lambda f: _length_advice(f) if f.better_length else "",
        ("speedup", "speedup_low", "speedup_high", "tokens_per_pass"),
        lambda f: _length_change(f) if f.better_length else None,
    ),
    Rule(
        "draft-too-long",
        Group.THE_BET,
        lambda f: f.judged and not f.wins and (f.better_length or f.draft_length) < f.draft_length,
        _length_message,
        _length_advice,
        ("speedup", "draft_length", "best_length", "best_speedup"),
        _length_change,
    ),
    Rule(
        "draft-too-short",
        Group.THE_BET,
        lambda f: f.judged and not f.wins and (f.better_length or f.draft_length) > f.draft_length,
        lambda f: f"{f.draft_length} drafted tokens leave speed on the table",
        _length_advice,
        ("speedup", "draft_length", "best_length", "best_speedup"),
        _length_change,
    ),
    Rule(
        "off-is-best",
        Group.THE_BET,
        lambda f: (
            f.judged and not f.wins and f.better_length is None and (f.speedup_high or 9.0) < WINNING_FROM
        ),
        lambda f: f"a pass yields {f.tokens_per_pass or 0.0:.2f} tokens and costs {_cost(f):.2f} plain steps",
        lambda _: "off: no draft length is predicted to win here",
        ("speedup", "tokens_per_pass", "best_length", "best_speedup"),
        lambda _: Change(mode="off"),
    ),
    Rule(
        "wrong-pair",
        Group.TO_KNOW,
        lambda f: (
            f.drafted >= _WRONG_PAIR_DRAFTS
            and f.accepted < _WRONG_PAIR_RATIO * f.drafted
            and not f.mode.startswith("ngram-")
        ),
        lambda f: (
            f"{f.accepted} of {f.drafted} drafted tokens were accepted: this draft does not fit this target"
        ),
        lambda _: "try another draft model (d)",
        ("drafted", "accepted"),
    ),
    Rule(
        "old-two-pass-server",
        Group.TO_KNOW,
        lambda f: f.two_pass_server,
        lambda _: "this build runs two target passes per cycle",
        lambda _: "a build from b7323 on needs one",
    ),
)

LAUNCH_ADVICE: Final[Mapping[str, tuple[Group, str]]] = MappingProxyType(
    {
        "flag-removed": (Group.CANNOT_START, "use the flag that the message names"),
        "flag-unknown": (Group.CANNOT_START, "remove the flag, or use a binary that has it"),
        "flag-value": (Group.CANNOT_START, "correct the value"),
        "type-renamed": (Group.CANNOT_START, "choose one of the modes that this binary offers (n)"),
        "draft-type-missing": (Group.CANNOT_START, "give the speculation type as well"),
        "draft-model-missing": (Group.CANNOT_START, "choose a draft model (d)"),
        "n-max-zero": (Group.CANNOT_START, "turn speculation off by mode, not by length 0"),
        "n-min-above-n-max": (Group.CANNOT_START, "make the least length smaller than the draft length"),
        "env-stale": (Group.CANNOT_START, "unset the variable"),
        "model-missing": (Group.CANNOT_START, "correct the path of the model"),
        "model-corrupt": (Group.CANNOT_START, "download or convert the file again"),
        "arch-unknown": (Group.CANNOT_START, "use a newer llama-server for this model"),
        "vocab-mismatch": (Group.CANNOT_START, "choose a draft with the target's tokenizer (d)"),
        "port-in-use": (Group.CANNOT_START, "free the port, or leave it out of the profile"),
        "known-bad-build": (Group.CANNOT_START, "use another build"),
        "binary-missing": (Group.CANNOT_START, "install llama-server, or set SPECTUI_LLAMA_SERVER"),
        "speculation-off": (Group.NOT_SPECULATING, "the log says why; the draft only costs memory now"),
        "out-of-memory": (
            Group.FAILING,
            "use a smaller context, fewer layers on the GPU, or a smaller draft",
        ),
        "server-crashed": (
            Group.FAILING,
            "u brings back the settings that ran; the log shows its last lines",
        ),
        "server-hung": (Group.FAILING, "restart it (r)"),
        "server-error": (Group.FAILING, "restart it (r), or go back to the last settings (u)"),
        "unauthorized": (Group.FAILING, "give the API key in the variable that api_key_env names"),
        "metrics-disabled": (Group.FAILING, "start the server with --metrics"),
        "server-unreachable": (Group.FAILING, "check the address, and that the server runs"),
    }
)
"""The launch table: what a failure's code means for the reader."""


def judge(facts: Facts, failures: Sequence[Failure] = ()) -> Verdict:
    """Apply both tables; findings come ranked by group, within a group in the tables' order."""
    said = {f.code for f in failures}
    findings = [_launch_finding(f) for f in failures]
    findings += [
        Finding(
            code=rule.code,
            group=rule.group,
            message=rule.message(facts),
            advice=rule.advice(facts),
            evidence={name: getattr(facts, name) for name in rule.evidence},
            change=rule.change(facts),
        )
        for rule in MEASUREMENT_RULES
        if rule.code not in said and rule.when(facts)
    ]
    findings.sort(key=lambda f: f.group)
    outcome = _outcome(facts, findings)
    return Verdict(outcome=outcome, headline=_headline(facts, outcome, findings), findings=tuple(findings))


def _launch_finding(failure: Failure) -> Finding:
    group, advice = LAUNCH_ADVICE.get(failure.code, (Group.FAILING, "see the server's log"))
    return Finding(code=failure.code, group=group, message=failure.text, advice=advice)


def _cost(f: Facts) -> float:
    return (f.tokens_per_pass or 0.0) / (f.speedup or 1.0)


def _outcome(f: Facts, findings: Sequence[Finding]) -> Outcome:
    if findings and findings[0].group <= Group.FAILING:
        return Outcome.BROKEN
    if not f.is_on:
        return Outcome.OFF
    if not f.judged:
        return Outcome.UNKNOWN
    if f.wins:
        return Outcome.WINNING
    return Outcome.LOSING if (f.speedup_high or 9.0) < 1.0 else Outcome.EVEN


def _headline(f: Facts, outcome: Outcome, findings: Sequence[Finding]) -> str:
    if outcome is Outcome.BROKEN:
        return findings[0].message
    if outcome is Outcome.OFF:
        return "speculation is off: this is the plain speed"
    bet = next((x for x in findings if x.group == Group.THE_BET), None)
    if f.speedup is not None and f.judged:
        about = bet.message if bet else _length_message(f)
        best = f". Best here: length {f.better_length}, {f.best_speedup:.2f}x" if f.better_length else ""
        return f"{f.speedup:.2f}x: {about}{best}"
    if findings:
        return findings[0].message
    return (
        "too early to say: the first passes are on their way" if f.traffic else "no traffic yet: press space"
    )
