"""The measurement table: what can be the case with a bet, ranked, each with its condition and its words.

A row is a code, the group that ranks it, when it holds, and what it says. The codes are part of the headless
contract and stay stable. Apart from `verdict`, which applies it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.text import counted
from spectui.core.verdict.facts import (
    ENOUGH_PASSES,
    ENOUGH_REQUESTS,
    MIN_LIVE_PASSES,
    RESTORED_OFTEN,
    WINNING_FROM,
    Facts,
)
from spectui.core.verdict.findings import Change, Group

_WRONG_PAIR_DRAFTS: Final = 50
_WRONG_PAIR_RATIO: Final = 0.02
_OFTEN_REPEATED: Final = 0.5
_FEW_REPEATS: Final = 3


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


def length_message(f: Facts) -> str:
    """What a pass drafts and what that buys."""
    if f.tokens_per_pass is None:
        return f"draft length {f.draft_length}"
    return f"{f.drafted_per_pass or 0.0:.0f} drafted tokens buy {f.tokens_per_pass - 1:.2f}"


def _best(f: Facts) -> str:
    """The best length's speedup with its interval, which is called a loss where it includes one."""
    value, low, high = f.best_speedup, f.best_low, f.best_high
    if value is None:
        return ""
    word = "measured" if f.best_measured else "predicted"
    if low is None or high is None:
        return f"{word} {value:.2f}x"
    loss = "; that includes a loss" if low < 1 <= high else ""
    return f"{word} {value:.2f}x ({low:.2f} to {high:.2f}{loss})"


def _lookup_advice(f: Facts) -> str:
    value, low, high = f.best_lookup_speedup, f.best_lookup_low, f.best_lookup_high
    return (
        f"{NGRAM_SIMPLE}, lookup {f.best_lookup}, length {f.best_lookup_length}: "
        f"predicted {value or 0.0:.2f}x ({low or 0.0:.2f} to {high or 0.0:.2f})"
    )


def _length_advice(f: Facts) -> str:
    what = "n-gram length" if f.ngram else "draft length"
    return f"{what} {f.draft_length} -> {f.better_length}: {_best(f)}"


def _length_change(f: Facts) -> Change | None:
    if f.better_length is None:
        return None
    return Change(ngram_length=f.better_length) if f.ngram else Change(draft_length=f.better_length)


def _yield_message(f: Facts) -> str:
    if f.tokens_per_pass is None or f.pass_cost is None:
        return f"the answer comes at {f.speedup or 0.0:.2f} times the plain speed"
    return f"each pass yields {f.tokens_per_pass:.2f} tokens for {f.pass_cost:.2f} plain steps"


def _off_advice(f: Facts) -> str:
    if f.best_length is None:
        return "off: this setting loses, and what others would do cannot be told from it; sweep them"
    if f.best_speedup is None:
        return "off: no draft length is predicted to win here"
    return f"off: the best draft length, {f.best_length}, is {_best(f)}"


def _no_baseline_message(f: Facts) -> str:
    if f.baseline_problem:
        return f"the baseline could not be measured: {f.baseline_problem}"
    missing = "no measured speed to set against the baseline" if f.baseline_known else "no baseline"
    return f"{missing}: whether the bet wins is unknown"


def _no_baseline_advice(f: Facts) -> str:
    if f.baseline_expected:
        return "measure it on the same prompts: spectui measure --baseline"
    return "give it with --measured" if f.baseline_known else "give one with --baseline"


def _few_requests(f: Facts) -> bool:
    return f.requests is not None and f.requests < ENOUGH_REQUESTS


def _short_message(f: Facts) -> str:
    requests = "" if f.requests is None else f" in {counted(f.requests, 'finished request')}"
    return f"only {counted(f.passes, 'pass')}{requests} so far"


def _drafts_nothing(f: Facts) -> bool:
    return f.is_on and f.speculating is not False and f.drafted == 0 and f.passes >= 3 * MIN_LIVE_PASSES


def _loses_to(f: Facts, better: float | None) -> bool:
    return f.judged and not f.wins and better is not None


def _steps(value: float | None) -> str:
    return "an unknown number of" if value is None else f"{value:.2f}"


LENGTH_EVIDENCE: Final = ("speedup", "draft_length", "best_length", "best_speedup", "best_low", "best_high")

JUDGING_RULES: Final[tuple[Rule, ...]] = (
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
        lambda f: _drafts_nothing(f) and not f.ngram,
        lambda f: f"speculation is on, and {f.passes} passes drafted nothing",
        lambda f: f"lower p_min ({f.p_min:g}) or the least draft length",
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
        lambda f: f.is_on and f.speedup is None and (f.passes > 0 or not f.counted),
        _no_baseline_message,
        _no_baseline_advice,
    ),
    Rule(
        "p-min-hides-acceptance",
        Group.CANNOT_JUDGE,
        lambda f: f.is_on and f.ratio_hides,
        lambda f: (
            f"with p_min {f.p_min:g} drafts vary in length: the ratio alone tells neither alpha nor tokens"
        ),
        lambda _: "count as well: drafted, accepted and predicted tokens",
        ("p_min",),
    ),
    Rule(
        "prompts-repeated",
        Group.CANNOT_JUDGE,
        lambda f: (
            f.repeated_prompts >= _FEW_REPEATS
            and f.repeated_prompts >= _OFTEN_REPEATED * max(1, f.requests or 0)
        ),
        lambda f: f"{f.repeated_prompts} of {f.requests} requests repeat an earlier prompt",
        lambda _: "measure on distinct prompts: caches make repeated ones look far too good",
        ("repeated_prompts", "requests"),
    ),
    Rule(
        "run-too-short",
        Group.CANNOT_JUDGE,
        lambda f: f.is_on and f.counted and f.passes > 0 and (f.passes < ENOUGH_PASSES or _few_requests(f)),
        _short_message,
        lambda _: f"trust the numbers from {ENOUGH_PASSES} passes and {ENOUGH_REQUESTS} requests on",
        ("passes", "requests"),
    ),
    Rule(
        "ngram-better",
        Group.THE_BET,
        lambda f: f.better_lookup,
        lambda f: (
            "the answers repeat what stands before them in another measure than this lookup is made for"
            if f.ngram
            else "the answers repeat what stands before them, and looking that up drafts it without a model"
        ),
        _lookup_advice,
        (
            "speedup",
            "best_lookup",
            "best_lookup_length",
            "best_lookup_speedup",
            "best_lookup_low",
            "best_lookup_high",
        ),
        lambda f: Change(mode=NGRAM_SIMPLE, ngram_lookup=f.best_lookup, ngram_length=f.best_lookup_length),
    ),
    Rule(
        "winning",
        Group.THE_BET,
        lambda f: f.wins,
        _yield_message,
        lambda f: _length_advice(f) if f.better_length else "",
        ("speedup", "speedup_low", "speedup_high", "tokens_per_pass"),
        _length_change,
    ),
    Rule(
        "ngram-too-long",
        Group.THE_BET,
        lambda f: f.ngram and _loses_to(f, f.better_length) and (f.better_length or 0) < f.draft_length,
        length_message,
        _length_advice,
        LENGTH_EVIDENCE,
        _length_change,
    ),
    Rule(
        "draft-too-long",
        Group.THE_BET,
        lambda f: not f.ngram and _loses_to(f, f.better_length) and (f.better_length or 0) < f.draft_length,
        length_message,
        _length_advice,
        LENGTH_EVIDENCE,
        _length_change,
    ),
    Rule(
        "draft-too-short",
        Group.THE_BET,
        lambda f: _loses_to(f, f.better_length) and (f.better_length or 0) > f.draft_length,
        lambda f: f"{f.draft_length} drafted tokens leave speed on the table",
        _length_advice,
        LENGTH_EVIDENCE,
        _length_change,
    ),
    Rule(
        "p-min-too-high",
        Group.THE_BET,
        lambda f: _loses_to(f, f.better_p_min),
        lambda f: f"p_min {f.p_min:g} leaves {f.drafted_per_pass or 0.0:.2f} drafted tokens per pass",
        lambda f: (
            f"p_min {f.p_min:g} -> {f.better_p_min or 0.0:g}: measured {f.best_p_min_speedup or 0.0:.2f}x"
        ),
        ("speedup", "p_min", "best_p_min", "best_p_min_speedup", "drafted_per_pass"),
        lambda f: Change(p_min=f.better_p_min),
    ),
    Rule(
        "no-drafts",
        Group.THE_BET,
        lambda f: _drafts_nothing(f) and f.ngram,
        lambda f: f"the lookup found nothing to draft in {f.passes} passes",
        lambda _: "this workload repeats nothing: use a draft model, or a shorter lookup",
        ("passes", "drafted"),
    ),
    Rule(
        "off-is-best",
        Group.THE_BET,
        lambda f: (
            f.judged
            and not f.wins
            and f.better_length is None
            and f.better_p_min is None
            and not f.better_lookup
            and f.at_most is not None
            and f.at_most < WINNING_FROM
        ),
        _yield_message,
        _off_advice,
        ("speedup", "tokens_per_pass", "best_length", "best_speedup"),
        lambda _: Change(mode="off"),
    ),
)

CAUSE_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "acceptance-low",
        Group.THE_BET,
        lambda f: f.cause == "acceptance-low",
        lambda f: (
            f"of {f.drafted_per_pass or 0.0:.1f} drafted tokens a pass keeps {(f.tokens_per_pass or 1.0) - 1:.2f}"
        ),
        lambda _: "a draft closer to the target, or a more predictable workload, is kept more often",
        ("tokens_per_pass", "drafted_per_pass"),
    ),
    Rule(
        "draft-too-slow",
        Group.THE_BET,
        lambda f: f.cause == "draft-too-slow",
        lambda f: f"drafting takes {_steps(f.draft_steps)} of {_steps(f.pass_cost)} plain steps per pass",
        lambda _: "a smaller or more quantised draft costs less",
        ("c", "draft_steps", "pass_cost"),
    ),
    Rule(
        "verification-expensive",
        Group.THE_BET,
        lambda f: f.cause == "verification-expensive",
        lambda f: (
            f"verifying takes {f.verification_steps:.2f} plain steps beyond a plain pass"
            if f.verification_steps is not None
            else f"a drafted token costs {_steps(f.implied_c)} plain steps: no draft is that slow, verifying is"
        ),
        lambda f: (
            "it lies in the model and the backend: a shorter draft has fewer tokens to verify"
            if f.verification_steps is not None
            else "it lies in the model and the backend: measure V(n) with spectui probe"
        ),
        ("implied_c", "verification_steps", "pass_cost"),
    ),
    Rule(
        "concurrency-saturated",
        Group.THE_BET,
        lambda f: f.cause == "concurrency-saturated",
        lambda f: f"with {f.slots} busy slots the drafts of all are verified, and rows are no longer free",
        lambda _: "fewer requests at once, or no speculation while so many run",
        ("slots", "implied_c", "verification_steps", "pass_cost"),
    ),
    Rule(
        "state-rollback",
        Group.THE_BET,
        lambda f: f.is_on and (f.restored_share or 0.0) >= RESTORED_OFTEN,
        lambda f: (
            f"the server restored its state after {100 * (f.restored_share or 0.0):.0f} % of the drafts"
        ),
        lambda _: "recurrent and hybrid targets pay so for each rejected draft; their own MTP layers do not",
        ("restored_share",),
    ),
    Rule(
        "memory-pressure",
        Group.THE_BET,
        lambda f: f.cause == "memory-pressure",
        lambda f: f"only {f.gpu_free_gib or 0.0:.2f} GiB of GPU memory are free: drivers page at that",
        lambda _: "a smaller context or a smaller draft frees memory",
        ("gpu_free_gib", "pass_cost"),
    ),
    Rule(
        "overhead-unexplained",
        Group.THE_BET,
        lambda f: f.cause == "overhead-unexplained",
        lambda f: (
            f"a pass costs {_steps(f.pass_cost)} plain steps for {f.drafted_per_pass or 0.0:.1f} drafted tokens: "
            "neither drafting nor verifying explains that"
        ),
        lambda _: "look for paging: GPU memory that is full, layers on the CPU, another process",
        ("pass_cost", "drafted_per_pass", "implied_c", "rest_steps"),
    ),
)

TO_KNOW_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "wrong-pair",
        Group.TO_KNOW,
        lambda f: (
            f.drafted >= _WRONG_PAIR_DRAFTS and f.accepted < _WRONG_PAIR_RATIO * f.drafted and not f.ngram
        ),
        lambda f: (
            f"{f.accepted} of {f.drafted} drafted tokens were accepted: this draft does not fit this target"
        ),
        lambda _: "try another draft model",
        ("drafted", "accepted"),
    ),
    Rule(
        "gpu-unused",
        Group.TO_KNOW,
        lambda f: f.gpu_unused,
        lambda _: "gpu_layers asks for a GPU, and this llama-server uses none: all layers are on the CPU",
        lambda _: "bring a llama-server that was built for your GPU (--list-devices names what it sees)",
    ),
    Rule(
        "old-two-pass-server",
        Group.TO_KNOW,
        lambda f: f.two_pass_server,
        lambda _: "this build runs two target passes per cycle",
        lambda _: "a build from b7323 on needs one",
    ),
    Rule(
        "default-changed",
        Group.TO_KNOW,
        lambda f: bool(f.default_changed),
        lambda f: f.default_changed,
        lambda _: "write draft length and p_min on the command line: defaults changed in b4742 and b9235",
        ("draft_length", "p_min"),
    ),
    Rule(
        "baseline-stale",
        Group.TO_KNOW,
        lambda f: bool(f.baseline_stale),
        lambda f: f.baseline_stale,
        lambda _: "measure it again",
    ),
)

MEASUREMENT_RULES: Final = (*JUDGING_RULES, *CAUSE_RULES, *TO_KNOW_RULES)
