from __future__ import annotations

import re

import pytest

from spectui.core.verdict.rules import MEASUREMENT_RULES, Rule
from spectui.core.verdict.verdict import LAUNCH_ADVICE, Change, Facts, Failure, Group, Outcome, judge
from tests.core.verdict.flat_facts import changed, facts

LOSING = facts(
    mode="draft-simple",
    draft_length=16,
    speculating=True,
    requests=20,
    passes=900,
    drafted=14000,
    accepted=430,
    tokens_per_pass=1.47,
    drafted_per_pass=15.8,
    speedup=0.53,
    speedup_low=0.51,
    speedup_high=0.55,
    best_length=1,
    best_speedup=1.18,
)


def codes(facts: Facts, *failures: Failure) -> list[str]:
    return [f.code for f in judge(facts, failures).findings]


def test_too_long_a_draft_is_named_with_the_better_length() -> None:
    verdict = judge(LOSING)
    assert verdict.outcome is Outcome.LOSING
    assert verdict.findings[0].code == "draft-too-long"
    assert verdict.findings[0].advice == "draft length 16 -> 1: predicted 1.18x"
    assert verdict.change == Change(draft_length=1)
    assert verdict.headline == "0.53x: 16 drafted tokens buy 0.47. Best here: length 1, 1.18x"


PREDICTED = {
    "best_lookup": 2,
    "best_lookup_length": 16,
    "best_lookup_speedup": 2.9,
    "best_lookup_low": 2.0,
    "best_lookup_high": 4.1,
}


def test_a_lookup_that_is_predicted_to_beat_every_length_is_advised() -> None:
    facts = changed(LOSING, **PREDICTED)
    verdict = judge(facts)
    assert verdict.outcome is Outcome.LOSING
    assert verdict.findings[0].code == "ngram-better"
    assert verdict.findings[0].advice == "ngram-simple, lookup 2, length 16: predicted 2.90x (2.00 to 4.10)"
    assert verdict.change == Change(mode="ngram-simple", ngram_lookup=2, ngram_length=16)
    assert verdict.headline == (
        "0.53x: 16 drafted tokens buy 0.47. Best here: ngram-simple, lookup 2, length 16, 2.90x"
    )
    assert "off-is-best" not in codes(changed(facts, best_speedup=0.9))


@pytest.mark.parametrize(
    "changes",
    [
        {"best_lookup_low": 0.9},
        {"best_lookup_low": None},
        {"best_lookup_speedup": 1.04, "best_lookup_low": 1.01},
        {"best_speedup": 2.85},
        {"passes": 10},
        {"measuring_baseline": True},
        {"speedup": 2.5, "speedup_low": 2.4, "speedup_high": 2.6, "best_length": None},
    ],
)
def test_a_lookup_that_may_lose_or_gains_little_is_not_advised(changes: dict[str, float | None]) -> None:
    assert "ngram-better" not in codes(changed(LOSING, **{**PREDICTED, **changes}))


def test_without_speculation_a_lookup_can_be_advised() -> None:
    assert codes(changed(facts(mode="off", draft_length=1), **PREDICTED)) == []
    verdict = judge(changed(facts(mode="off", draft_length=1, passes=100), **PREDICTED))
    assert verdict.outcome is Outcome.OFF
    assert verdict.headline == "speculation is off: this is the plain speed"
    assert [f.code for f in verdict.findings] == ["ngram-better"]


def test_winning_needs_the_interval_above_one() -> None:
    won = changed(LOSING, speedup=1.3, speedup_low=1.2, speedup_high=1.4, best_length=16)
    assert judge(won).outcome is Outcome.WINNING
    assert codes(won)[0] == "winning"
    unsure = changed(won, speedup_low=0.9)
    assert judge(unsure).outcome is Outcome.EVEN
    assert "winning" not in codes(unsure)


def test_a_bet_that_keeps_no_tokens_does_not_win_by_a_machine_that_became_faster() -> None:
    won = changed(LOSING, speedup=1.5, speedup_low=1.4, speedup_high=1.6, best_length=16)
    assert judge(changed(won, tokens_per_pass=1.06)).outcome is Outcome.WINNING
    assert judge(changed(won, tokens_per_pass=1.0)).outcome is Outcome.EVEN
    # Of stated numbers nobody knows what a pass is.
    assert judge(changed(won, tokens_per_pass=1.0, counted=False)).outcome is Outcome.WINNING


def test_off_is_best_when_nothing_is_predicted_to_win() -> None:
    facts = changed(LOSING, best_length=1, best_speedup=1.01)
    assert codes(facts)[0] == "off-is-best"
    assert judge(facts).change == Change(mode="off")


def test_too_short_a_draft() -> None:
    facts = changed(LOSING, draft_length=1, speedup=1.02, speedup_low=1.0, best_length=4, best_speedup=1.3)
    assert codes(facts)[0] == "draft-too-short"


def test_speculation_that_is_off_outranks_everything_measured() -> None:
    verdict = judge(changed(LOSING, speculating=False, drafted=0, accepted=0))
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.findings[0].code == "speculation-off"


@pytest.mark.parametrize(
    ("code", "group"),
    [("flag-removed", Group.CANNOT_START), ("out-of-memory", Group.FAILING), ("never-heard", Group.FAILING)],
)
def test_failures_rank_by_their_group(code: str, group: Group) -> None:
    verdict = judge(LOSING, [Failure(code=code, text="said so")])
    assert verdict.findings[0].code == code
    assert verdict.findings[0].group is group
    assert verdict.headline == "said so"


def test_without_a_baseline_nothing_is_judged() -> None:
    facts = changed(LOSING, speedup=None, speedup_low=None, speedup_high=None)
    verdict = judge(facts)
    assert verdict.outcome is Outcome.UNKNOWN
    assert codes(facts) == ["baseline-missing"]


def test_a_short_run_says_so_and_no_bet_is_called_on_a_handful_of_passes() -> None:
    assert "run-too-short" in codes(changed(LOSING, requests=3))
    handful = changed(LOSING, passes=5, requests=0)
    assert judge(handful).outcome is Outcome.UNKNOWN
    assert not any(f.group is Group.THE_BET for f in judge(handful).findings)


def test_no_drafts_and_a_wrong_pair() -> None:
    assert "no-drafts" in codes(changed(LOSING, drafted=0, accepted=0))
    assert "wrong-pair" in codes(changed(LOSING, accepted=20))


def test_off_is_a_state_and_no_finding() -> None:
    verdict = judge(facts(mode="off", draft_length=3, passes=900, requests=20))
    assert verdict.outcome is Outcome.OFF
    assert verdict.findings == ()


KEY = re.compile(r"\bpress\b|(?<!V)\([a-zA-Z](, [a-zA-Z])*\)|^[b-zB-Z] ")
"""How a key of the dashboard would be named."""


@pytest.mark.parametrize("code", sorted(LAUNCH_ADVICE))
def test_the_advice_on_a_failure_names_no_key(code: str) -> None:
    (finding,) = judge(facts(mode="off", draft_length=1), [Failure(code=code, text="said")]).findings
    assert finding.advice
    assert not KEY.search(finding.advice)


@pytest.mark.parametrize("rule", MEASUREMENT_RULES, ids=lambda rule: rule.code)
def test_the_advice_on_a_measurement_names_no_key(rule: Rule) -> None:
    for mode in ("draft-simple", "ngram-simple"):
        for known in (LOSING, facts(mode=mode, draft_length=4)):
            assert not KEY.search(rule.finding(changed(known, mode=mode)).advice)


@pytest.mark.parametrize("rule", MEASUREMENT_RULES, ids=lambda rule: rule.code)
def test_every_rule_says_what_it_means_and_what_to_do_whatever_the_facts_are(rule: Rule) -> None:
    meaning, remedy = rule.in_general()
    assert meaning
    assert remedy
    assert "None" not in meaning + remedy


@pytest.mark.parametrize("code", sorted(LAUNCH_ADVICE))
def test_every_failure_says_what_it_means_and_what_to_do(code: str) -> None:
    assert all(LAUNCH_ADVICE[code])
