"""The measurement table: what can be the case with a bet, ranked, each with its condition and its words.

A row is a code, the group that ranks it, when it holds, what it says, and what it means in general, for the guide.
What takes more than a line to say stands in `wording`. The codes are part of the headless contract and stay stable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from spectui.core.verdict.facts import ENOUGH_PASSES, ENOUGH_REQUESTS, RESTORED_OFTEN, Facts
from spectui.core.verdict.findings import Change, Finding, Group
from spectui.core.verdict.wording import (
    acceptance_message,
    caused_by,
    drafts_nothing,
    length_advice,
    length_change,
    length_message,
    lookup_advice,
    lookup_change,
    lookup_message,
    loses_to,
    no_baseline_advice,
    no_baseline_message,
    nothing_wins,
    off_advice,
    p_min_advice,
    repeats,
    short_message,
    steps,
    too_long,
    too_short_a_run,
    unexplained_message,
    verification_advice,
    verification_message,
    wrong_pair,
    yield_message,
)

Text: TypeAlias = str | Callable[[Facts], str]
"""A text, or how the facts make one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the measurement table."""

    code: str
    group: Group
    when: Callable[[Facts], bool]
    message: Text
    advice: Text = ""
    evidence: tuple[str, ...] = ()
    change: Callable[[Facts], Change | None] = lambda _: None
    meaning: str = ""
    """What it means in general, where the message depends on the facts."""
    remedy: str = ""
    """What to do about it in general, where the advice depends on the facts."""

    def finding(self, facts: Facts) -> Finding:
        """What the row says about these facts."""
        return Finding(
            code=self.code,
            group=self.group,
            message=_said(self.message, facts),
            advice=_said(self.advice, facts),
            evidence={name: facts.evidence(name) for name in self.evidence},
            change=self.change(facts),
        )

    def in_general(self) -> tuple[str, str]:
        """What it means and what to do, whatever the facts are."""
        message, advice = (text if isinstance(text, str) else "" for text in (self.message, self.advice))
        return self.meaning or message, self.remedy or advice


def _said(text: Text, facts: Facts) -> str:
    return text if isinstance(text, str) else text(facts)


LENGTH_EVIDENCE: Final = ("speedup", "draft_length", "best_length", "best_speedup", "best_low", "best_high")

JUDGING_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="speculation-off",
        group=Group.NOT_SPECULATING,
        when=lambda f: f.is_on and f.speculating is False,
        message=lambda f: f"{f.mode} was asked for and nothing speculates: the server says so itself",
        advice="see the server's log for the reason; the draft only costs memory now",
        meaning="a mode was asked for, and the server speculates in none",
        evidence=("mode", "speculating"),
    ),
    Rule(
        code="no-drafts",
        group=Group.NOT_SPECULATING,
        when=lambda f: drafts_nothing(f) and not f.ngram,
        message=lambda f: f"speculation is on, and {f.bet.passes} passes drafted nothing",
        advice=lambda f: f"lower p_min ({f.p_min:g}) or the least draft length",
        meaning="speculation is on, and the draft proposes nothing: it is never sure enough",
        remedy="lower p_min, or the least draft length (draft_min)",
        evidence=("passes", "drafted", "p_min"),
    ),
    Rule(
        code="draft-on-cpu",
        group=Group.NOT_SPECULATING,
        when=lambda f: f.is_on and f.draft_on_cpu_beside_gpu,
        message="the target runs on the GPU and the draft on the CPU",
        advice="put the draft on the GPU: draft_gpu_layers = 99",
    ),
    Rule(
        code="baseline-missing",
        group=Group.CANNOT_JUDGE,
        when=lambda f: f.is_on and f.speedup is None and (f.bet.passes > 0 or not f.counted),
        message=no_baseline_message,
        advice=no_baseline_advice,
        meaning="the speed without speculation is not known, so nothing says whether the bet wins",
        remedy="measure it on the same prompts (b, or spectui measure --baseline), or give it with --baseline",
    ),
    Rule(
        code="p-min-hides-acceptance",
        group=Group.CANNOT_JUDGE,
        when=lambda f: f.is_on and f.ratio_hides,
        message=lambda f: (
            f"with p_min {f.p_min:g} drafts vary in length: the ratio alone tells neither alpha nor tokens"
        ),
        advice="count as well: drafted, accepted and predicted tokens",
        meaning="with p_min drafts vary in length: the ratio alone tells neither alpha nor tokens",
        evidence=("p_min",),
    ),
    Rule(
        code="prompts-repeated",
        group=Group.CANNOT_JUDGE,
        when=repeats,
        message=lambda f: f"{f.repeated_prompts} of {f.requests} requests repeat an earlier prompt",
        advice="measure on distinct prompts: caches make repeated ones look far too good",
        meaning="many requests repeat an earlier prompt",
        evidence=("repeated_prompts", "requests"),
    ),
    Rule(
        code="run-too-short",
        group=Group.CANNOT_JUDGE,
        when=too_short_a_run,
        message=short_message,
        advice=f"trust the numbers from {ENOUGH_PASSES} passes and {ENOUGH_REQUESTS} requests on",
        meaning="there are too few passes or finished requests yet",
        evidence=("passes", "requests"),
    ),
    Rule(
        code="ngram-better",
        group=Group.THE_BET,
        when=lambda f: f.better_lookup,
        message=lookup_message,
        advice=lookup_advice,
        meaning="the answers repeat what stands before them, and looking that up is predicted to be the best",
        remedy="use ngram-simple with the lookup and the length that the advice names",
        evidence=(
            "speedup",
            "best_lookup",
            "best_lookup_length",
            "best_lookup_speedup",
            "best_lookup_low",
            "best_lookup_high",
        ),
        change=lookup_change,
    ),
    Rule(
        code="winning",
        group=Group.THE_BET,
        when=lambda f: f.wins,
        message=yield_message,
        advice=lambda f: length_advice(f) if f.better_length else "",
        meaning="a pass yields more than it costs",
        remedy="nothing, or take the draft length that is predicted to be better still",
        evidence=("speedup", "speedup_low", "speedup_high", "tokens_per_pass"),
        change=length_change,
    ),
    Rule(
        code="ngram-too-long",
        group=Group.THE_BET,
        when=partial(too_long, ngram=True),
        message=length_message,
        advice=length_advice,
        meaning="the lookup drafts more tokens than are kept",
        remedy="take the shorter length that the advice names",
        evidence=LENGTH_EVIDENCE,
        change=length_change,
    ),
    Rule(
        code="draft-too-long",
        group=Group.THE_BET,
        when=partial(too_long, ngram=False),
        message=length_message,
        advice=length_advice,
        meaning="more tokens are drafted than are kept, and each costs",
        remedy="take the shorter draft length that the advice names",
        evidence=LENGTH_EVIDENCE,
        change=length_change,
    ),
    Rule(
        code="draft-too-short",
        group=Group.THE_BET,
        when=lambda f: loses_to(f, f.better_length) and (f.better_length or 0) > f.draft_length,
        message=lambda f: f"{f.draft_length} drafted tokens leave speed on the table",
        advice=length_advice,
        meaning="most drafts are kept whole, so longer ones would be as well",
        remedy="take the longer draft length that the advice names",
        evidence=LENGTH_EVIDENCE,
        change=length_change,
    ),
    Rule(
        code="p-min-too-high",
        group=Group.THE_BET,
        when=lambda f: loses_to(f, f.better_p_min),
        message=lambda f: (
            f"p_min {f.p_min:g} leaves {f.bet.drafted_per_pass or 0.0:.2f} drafted tokens per pass"
        ),
        advice=p_min_advice,
        meaning="the draft stops too early, before tokens that would have been kept",
        remedy="take the lower p_min that the advice names",
        evidence=("speedup", "p_min", "best_p_min", "best_p_min_speedup", "drafted_per_pass"),
        change=lambda f: Change(p_min=f.better_p_min),
    ),
    Rule(
        code="no-drafts",
        group=Group.THE_BET,
        when=lambda f: drafts_nothing(f) and f.ngram,
        message=lambda f: f"the lookup found nothing to draft in {f.bet.passes} passes",
        advice="this workload repeats nothing: use a draft model, or a shorter lookup",
        meaning="the lookup found nothing to draft",
        evidence=("passes", "drafted"),
    ),
    Rule(
        code="off-is-best",
        group=Group.THE_BET,
        when=nothing_wins,
        message=yield_message,
        advice=off_advice,
        meaning="a pass costs more than it yields, and no setting that can be predicted is better",
        remedy="turn speculation off, or sweep the settings that cannot be predicted",
        evidence=("speedup", "tokens_per_pass", "best_length", "best_speedup"),
        change=lambda _: Change(mode="off"),
    ),
)

CAUSE_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="acceptance-low",
        group=Group.THE_BET,
        when=partial(caused_by, "acceptance-low"),
        message=acceptance_message,
        advice="a draft closer to the target, or a more predictable workload, is kept more often",
        meaning="few of the drafted tokens are kept",
        evidence=("tokens_per_pass", "drafted_per_pass"),
    ),
    Rule(
        code="draft-too-slow",
        group=Group.THE_BET,
        when=partial(caused_by, "draft-too-slow"),
        message=lambda f: (
            f"drafting takes {steps(f.draft_steps)} of {steps(f.bet.pass_cost)} plain steps per pass"
        ),
        advice="a smaller or more quantised draft costs less",
        meaning="drafting takes most of what a pass costs",
        evidence=("c", "draft_steps", "pass_cost"),
    ),
    Rule(
        code="verification-expensive",
        group=Group.THE_BET,
        when=partial(caused_by, "verification-expensive"),
        message=verification_message,
        advice=verification_advice,
        meaning="checking the drafted tokens costs much more than a plain pass",
        remedy="it lies in the model and the backend: draft fewer tokens, and measure V(n) with spectui probe",
        evidence=("implied_c", "verification_steps", "pass_cost"),
    ),
    Rule(
        code="concurrency-saturated",
        group=Group.THE_BET,
        when=partial(caused_by, "concurrency-saturated"),
        message=lambda f: (
            f"with {f.slots} busy slots the drafts of all are verified, and rows are no longer free"
        ),
        advice="fewer requests at once, or no speculation while so many run",
        meaning="many slots are busy, the drafts of all are verified, and rows are no longer free",
        evidence=("slots", "implied_c", "verification_steps", "pass_cost"),
    ),
    Rule(
        code="state-rollback",
        group=Group.THE_BET,
        when=lambda f: f.is_on and (f.restored_share or 0.0) >= RESTORED_OFTEN,
        message=lambda f: (
            f"the server restored its state after {100 * (f.restored_share or 0.0):.0f} % of the drafts"
        ),
        advice="recurrent and hybrid targets pay so for each rejected draft; their own MTP layers do not",
        meaning="the server restores its state after many of the drafts, and that costs time",
        evidence=("restored_share",),
    ),
    Rule(
        code="memory-pressure",
        group=Group.THE_BET,
        when=partial(caused_by, "memory-pressure"),
        message=lambda f: (
            f"only {f.gpu_free_gib or 0.0:.2f} GiB of GPU memory are free: drivers page at that"
        ),
        advice="a smaller context or a smaller draft frees memory",
        meaning="hardly any GPU memory is free, and drivers page at that",
        evidence=("gpu_free_gib", "pass_cost"),
    ),
    Rule(
        code="overhead-unexplained",
        group=Group.THE_BET,
        when=partial(caused_by, "overhead-unexplained"),
        message=unexplained_message,
        advice="look for paging: GPU memory that is full, layers on the CPU, another process",
        meaning="a pass costs more than drafting and verifying explain",
        evidence=("pass_cost", "drafted_per_pass", "implied_c", "rest_steps"),
    ),
)

TO_KNOW_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="wrong-pair",
        group=Group.TO_KNOW,
        when=wrong_pair,
        message=lambda f: (
            f"{f.bet.accepted} of {f.bet.drafted} drafted tokens were accepted: this draft does not fit this target"
        ),
        advice="try another draft model",
        meaning="next to no drafted token is accepted: this draft does not fit this target",
        evidence=("drafted", "accepted"),
    ),
    Rule(
        code="gpu-unused",
        group=Group.TO_KNOW,
        when=lambda f: f.gpu_unused,
        message="gpu_layers asks for a GPU, and this llama-server uses none: all layers are on the CPU",
        advice="bring a llama-server that was built for your GPU (--list-devices names what it sees)",
    ),
    Rule(
        code="old-two-pass-server",
        group=Group.TO_KNOW,
        when=lambda f: f.bet.two_pass,
        message="this build runs two target passes per cycle",
        advice="a build from b7323 on needs one",
    ),
    Rule(
        code="default-changed",
        group=Group.TO_KNOW,
        when=lambda f: bool(f.default_changed),
        message=lambda f: f.default_changed,
        advice="write draft length and p_min on the command line: defaults changed in b4742 and b9235",
        meaning="the log shows the defaults of newer builds, and other values were expected",
        evidence=("draft_length", "p_min"),
    ),
    Rule(
        code="baseline-stale",
        group=Group.TO_KNOW,
        when=lambda f: bool(f.baseline_stale),
        message=lambda f: f.baseline_stale,
        advice="measure it again",
        meaning="the baseline was measured with another build, file or setting",
    ),
)

MEASUREMENT_RULES: Final = (*JUDGING_RULES, *CAUSE_RULES, *TO_KNOW_RULES)
