"""Facts and failures -> the verdict: ranked findings, the bet in one word, and the sentence that heads them.

Applies the launch table of `findings` and the measurement table of `rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.verdict.facts import Facts
from spectui.core.verdict.findings import (
    LAUNCH_ADVICE,
    Change,
    Failure,
    Finding,
    Group,
    Outcome,
    Verdict,
    launch_finding,
)
from spectui.core.verdict.rules import MEASUREMENT_RULES
from spectui.core.verdict.wording import length_message

__all__ = [
    "LAUNCH_ADVICE",
    "Change",
    "Facts",
    "Failure",
    "Finding",
    "Group",
    "Outcome",
    "Verdict",
    "judge",
]


_LOOKUP: Final = "ngram-better"
"""Says what to change and not why it is as it is, so that it heads nothing."""


def judge(facts: Facts, failures: Sequence[Failure] = ()) -> Verdict:
    """Apply both tables; findings come ranked by group, within a group in the tables' order."""
    said = {f.code for f in failures}
    findings = [launch_finding(f) for f in failures]
    findings += [
        rule.finding(facts) for rule in MEASUREMENT_RULES if rule.code not in said and rule.when(facts)
    ]
    findings.sort(key=lambda f: f.group)
    outcome = _outcome(facts, findings)
    return Verdict(outcome=outcome, headline=_headline(facts, outcome, findings), findings=tuple(findings))


def _outcome(f: Facts, findings: Sequence[Finding]) -> Outcome:
    if findings and findings[0].group <= Group.FAILING:
        return Outcome.BROKEN
    if f.measuring_baseline:
        return Outcome.UNKNOWN
    if not f.is_on:
        return Outcome.OFF
    if not f.judged:
        return Outcome.UNKNOWN
    if f.wins:
        return Outcome.WINNING
    return Outcome.LOSING if f.at_most is not None and f.at_most < 1.0 else Outcome.EVEN


def _headline(f: Facts, outcome: Outcome, findings: Sequence[Finding]) -> str:
    if outcome is Outcome.BROKEN:
        return findings[0].message
    if outcome is Outcome.OFF:
        return "speculation is off: this is the plain speed"
    if f.measuring_baseline:
        return "measuring the plain speed first: speculation is off for it"
    bet = next((x for x in findings if x.group == Group.THE_BET and x.code != _LOOKUP), None)
    if f.speedup is not None and f.judged:
        about = bet.message if bet else length_message(f)
        best = ""
        if f.best is not None and f.better_length:
            best = f". Best here: length {f.better_length}, {f.best.speedup:.2f}x"
        if f.lookup is not None and f.better_lookup:
            sizes = f"lookup {f.lookup.lookup}, length {f.lookup.length}"
            best = f". Best here: {NGRAM_SIMPLE}, {sizes}, {f.lookup.speedup.value:.2f}x"
        return f"{f.speedup:.2f}x: {about}{best}"
    if findings:
        return findings[0].message
    return (
        "too early to say: the first passes are on their way" if f.traffic else "no traffic yet: press space"
    )
