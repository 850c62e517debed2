from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.curves import cost_model, predicted_curve, predicted_lookup, textbook_curve, with_costs
from spectui.core.bet.estimates import BetReading, CurvePoint, Estimate, PositionRow, Source
from spectui.core.bet.ngram_replay import UNKNOWN_SURPLUS, Replay
from spectui.core.profile import SpeculationSettings, TuningProfile
from spectui.core.verdict.verdict import Failure, Outcome
from spectui.core.views.snapshot import ServerState
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.servers.server import LaunchedServer
from tests.unlaunched import CAPS, plan_for

PROFILE = TuningProfile(
    speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4)
)
SHARES = (0.7, 0.49, 0.34, 0.24)
E = 1 + sum(SHARES)
V = {2: 1.1, 3: 1.2, 5: 1.5, 9: 2.2, 17: 4.0}
C = 0.15
DRAFTED = 4.0
R = 1.5 + 5 * C + 0.1
"""What a pass costs that drafts 4 tokens: V(5) + 5 c + u."""
BET = BetReading(
    requests=20,
    passes=400,
    tokens=int(400 * E),
    drafted=1600,
    accepted=int(400 * (E - 1)),
    tokens_per_pass=Estimate(value=E, low=E - 0.1, high=E + 0.1),
    drafted_per_pass=DRAFTED,
    t1_ms=25.0,
    draft_ms=C * 25,
    c=C,
    pass_cost=R,
    baseline=Estimate(value=40.0),
    speedup_actual=Estimate(value=E / R, low=E / R - 0.05, high=E / R + 0.05),
    survival=tuple(PositionRow(position=j + 1, survival=s, at_risk=400) for j, s in enumerate(SHARES)),
    tokens_per_request=200.0,
)


def at(curve: Sequence[CurvePoint], k: int) -> float:
    return next(p.speedup for p in curve if p.draft_length == k)


@pytest.mark.parametrize(
    ("changes", "v"), [({}, {}), ({}, {1: 1.0}), ({"t1_ms": None}, V), ({"c": None, "draft_ms": None}, {})]
)
def test_costs_need_a_probe_and_a_plain_step(changes: dict[str, Any], v: dict[int, float]) -> None:
    bet = replace(BET, **changes)
    assert cost_model(bet, v) is None
    costed = with_costs(bet, v)
    assert (costed.speedup_predicted, costed.loss) == (None, None)


def test_a_server_that_does_not_time_its_drafting_has_it_fitted() -> None:
    costed = with_costs(replace(BET, c=None, draft_ms=None), V)
    assert costed.costs.c is not None
    assert costed.costs.c.source is Source.FITTED
    assert costed.costs.c.value == pytest.approx(C)
    assert costed.loss is not None
    assert costed.loss.drafting == pytest.approx(5 * C)
    # What was fitted to this very run predicts nothing about it, but other lengths follow from it.
    assert costed.speedup_predicted is None
    assert at(predicted_curve(costed, PROFILE, V), 1) == pytest.approx(1.7 / (1.1 + 2 * C + 0.1), rel=0.02)


def test_old_builds_draft_no_more_than_they_propose() -> None:
    model = cost_model(replace(BET, rereads=False), V)
    assert model is not None
    assert model.drafting(4) == pytest.approx(4 * C)


def test_several_streams_verify_together() -> None:
    model = cost_model(replace(BET, streams=2.0), {2: 1.2, 5: 1.5, 10: 3.0})
    assert model is not None
    assert model.verification(4) == pytest.approx(3.0 / 1.2)


def test_costs_of_a_probed_run() -> None:
    model = cost_model(BET, V)
    assert model is not None
    assert model.pass_cost(4) == pytest.approx(1.5 + 5 * C + 0.1)
    costed = with_costs(BET, V)
    assert costed.speedup_predicted == pytest.approx(E / R)
    loss = costed.loss
    assert loss is not None
    assert loss.tokens == pytest.approx(E)
    assert loss.drafting == pytest.approx(5 * C)
    assert loss.verification == pytest.approx(0.5)
    assert loss.overhead == pytest.approx(0.1)
    assert loss.unexplained == pytest.approx(0.0)


def test_what_a_pass_costs_beyond_the_model_is_unexplained() -> None:
    loss = with_costs(replace(BET, pass_cost=R + 0.6), V).loss
    assert loss is not None
    assert (loss.overhead, loss.unexplained) == pytest.approx((0.1, 0.6))


@pytest.mark.parametrize("missing", ["tokens_per_pass", "drafted_per_pass", "pass_cost"])
def test_nothing_is_split_while_a_measure_is_missing(missing: str) -> None:
    unknown: dict[str, Any] = {missing: None}
    bet = replace(BET, **unknown)
    costed = with_costs(bet, V)
    assert (costed.speedup_predicted, costed.loss) == (None, None)


def test_with_a_probe_the_curve_meets_what_was_measured() -> None:
    curve = predicted_curve(BET, PROFILE, V)
    # A request of 200 tokens feels its end a little: its last drafts are cut.
    assert at(curve, 4) == pytest.approx(E / R, rel=0.02)
    assert at(curve, 1) == pytest.approx(1.7 / (1.1 + 2 * C + 0.1), rel=0.02)
    assert at(curve, 16) < at(curve, 4)
    assert all(p.low is None and p.high is None for p in curve)


def test_a_dearer_run_lowers_the_whole_curve() -> None:
    cheap, dear = (predicted_curve(replace(BET, pass_cost=cost), PROFILE, V) for cost in (R, R + 0.8))
    assert at(dear, 4) == pytest.approx(E / (R + 0.8), rel=0.02)
    assert all(a.speedup > b.speedup for a, b in zip(cheap, dear, strict=True))


def test_the_interval_holds_both_the_requests_and_the_speeds() -> None:
    replicates = [tuple(s * f for s in SHARES) for f in (0.9, 0.95, 1.0, 1.05, 1.1)]
    alone = predicted_curve(
        replace(BET, speedup_actual=Estimate(value=E / R)), PROFILE, V, replicates=replicates
    )
    both = predicted_curve(BET, PROFILE, V, replicates=replicates)
    plain = predicted_curve(BET, PROFILE, V)
    for one, two, bare in zip(alone, both, plain, strict=True):
        assert one.speedup == two.speedup == bare.speedup
        assert one.low is not None
        assert one.high is not None
        assert two.low is not None
        assert two.high is not None
        assert two.low < one.low < one.speedup < one.high < two.high
        if one.draft_length == 4:
            assert one.high / one.speedup == pytest.approx(1.1041, abs=0.0005)
            assert two.high / two.speedup == pytest.approx(1.1137, abs=0.0005)
            assert two.speedup / two.low == pytest.approx(1.1137, abs=0.0005)


def test_without_a_probe_shorter_drafts_lie_between_both_forms() -> None:
    curve, textbook = predicted_curve(BET, PROFILE), textbook_curve(BET)
    assert [at(textbook, k) for k in (1, 2)] == pytest.approx([1.4783, 1.6846], abs=0.0005)
    assert [at(curve, k) for k in (1, 2, 4)] == pytest.approx([1.3707, 1.4841, 1.1787], abs=0.0005)
    assert at(curve, 8) < at(textbook, 8)


def test_without_probe_and_draft_time_the_cost_is_spread_evenly() -> None:
    bet = replace(BET, c=None)
    assert textbook_curve(bet) == ()
    curve = predicted_curve(bet, PROFILE, V)
    assert at(curve, 1) == pytest.approx(1.7 / (1 + (R - 1) / DRAFTED))
    assert at(curve, 4) == pytest.approx(E / R)


@pytest.mark.parametrize(
    "changes",
    [{"fixed_length": False}, {"survival": ()}, {"pass_cost": None}, {"drafted_per_pass": None}],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("v", [{}, V], ids=["unprobed", "probed"])
def test_no_curve_where_other_lengths_cannot_be_told(changes: dict[str, Any], v: dict[int, float]) -> None:
    bet = replace(BET, **changes)
    assert predicted_curve(bet, PROFILE, v) == ()
    if "fixed_length" in changes or "survival" in changes:
        assert textbook_curve(bet) == ()


def test_the_best_of_the_curve_is_advised() -> None:
    losing = replace(
        BET, pass_cost=E / 0.8, speedup_actual=Estimate(value=0.8, low=0.78, high=0.82), survival=BET.survival
    )
    profile = PROFILE.with_speculation(draft_length=4)
    curve = predicted_curve(losing, profile)
    best = max(curve, key=lambda p: p.speedup)
    verdict = verdict_of(losing, profile, None, best=best)
    assert verdict.outcome is Outcome.LOSING
    if best.speedup >= 1.05:
        assert verdict.change is not None
        assert verdict.change.draft_length == best.draft_length
    winning = verdict_of(BET, PROFILE, None)
    assert winning.outcome is Outcome.WINNING
    assert winning.findings[0].code == "winning"


def test_failures_come_first_and_once() -> None:
    failure = Failure(code="server-crashed", text="the server ended by itself (SIGKILL)")
    verdict = verdict_of(BET, PROFILE, None, failures=(failure,))
    assert verdict.outcome is Outcome.BROKEN
    assert [f.code for f in verdict.findings].count("server-crashed") == 1
    assert verdict.headline == verdict.findings[0].message


def test_no_speculation_is_no_bet() -> None:
    verdict = verdict_of(BetReading(), PROFILE.without_speculation(), None)
    assert verdict.outcome is Outcome.OFF
    assert not verdict.findings


def test_a_baseline_that_could_not_be_measured_says_why() -> None:
    bet = replace(BET, speedup_actual=None, baseline=None, pass_cost=None)
    verdict = verdict_of(bet, PROFILE, None, baseline_problem="the server speculates even without a mode")
    missing = next(f for f in verdict.findings if f.code == "baseline-missing")
    assert "speculates even without a mode" in missing.message
    assert missing.advice == "measure it on the same prompts: spectui measure --baseline"


def test_a_missing_baseline_of_a_foreign_server_is_given_and_not_measured() -> None:
    bet = replace(BET, baseline=None, speedup_actual=None, pass_cost=None)
    advice = {}
    for name, profile in (("ours", PROFILE), ("foreign", PROFILE.with_server(url="http://h:1"))):
        findings = {f.code: f.advice for f in verdict_of(bet, profile, None).findings}
        advice[name] = findings["baseline-missing"]
    assert "measure --baseline" in advice["ours"]
    assert advice["foreign"] == "give one with --baseline"


REPLAY = Replay(2, 16, 1000, 200, 300, 1000, 0.05)
PLAIN = Baseline(given(40.0).speed, "measured", V, {}, (REPLAY,))


def lookup_of(bet: BetReading, profile: TuningProfile = PROFILE) -> tuple[float, float | None, float | None]:
    found = predicted_lookup(bet, profile, PLAIN)
    assert found is not None
    assert (found.lookup, found.length) == (2, 16)
    return found.speedup.value, found.speedup.low, found.speedup.high


LIVES = math.exp(1.96 * math.hypot(0.015, 0.015, 0.015))
"""What the servers add to the interval of a replay."""


def test_what_a_row_costs_is_taken_from_the_draft_that_runs() -> None:
    # 4 rows that cost 0.1 each beyond V, or 0.15 of it is the fixed rest.
    bet = replace(BET, pass_cost=1.5 + 5 * C + 0.4)
    value, low, high = lookup_of(bet)
    least, most = 0.25 / 4, 0.4 / 4
    assert value == pytest.approx(REPLAY.speedup((least + most) / 2).value)
    assert low == pytest.approx((REPLAY.speedup(most).low or 0.0) / LIVES)
    assert high == pytest.approx((REPLAY.speedup(least).high or 0.0) * LIVES)


@pytest.mark.parametrize("bet", [replace(BET, c=None), replace(BET, pass_cost=None), BetReading()])
def test_a_row_whose_cost_nothing_tells_may_cost_the_usual_most(bet: BetReading) -> None:
    value, low, high = lookup_of(bet)
    assert value == pytest.approx(REPLAY.speedup(sum(UNKNOWN_SURPLUS) / 2).value)
    assert low == pytest.approx((REPLAY.speedup(UNKNOWN_SURPLUS[1]).low or 0.0) / LIVES)
    assert high == pytest.approx((REPLAY.speedup(UNKNOWN_SURPLUS[0]).high or 0.0) * LIVES)


def test_a_lookup_that_runs_tells_what_its_rows_and_answers_make_of_others() -> None:
    profile = PROFILE.with_speculation(mode="ngram-simple", ngram_lookup=2, ngram_length=16)
    plain = replace(PLAIN, replayed=(REPLAY, Replay(2, 8, 1000, 300, 350, 500, 0.05)))
    # V takes 0.1 of a step per row, and it really was 0.15; these answers repeat less than those of the baseline.
    bet = replace(
        BET, c=None, drafted_per_pass=6.0, pass_cost=1 + 6 * 0.15, speedup_actual=Estimate(value=1.4)
    )
    found = predicted_lookup(bet, profile, plain)
    assert found is not None
    assert (found.lookup, found.length) == (2, 8)
    off = 1.4 / REPLAY.speedup(0.05).value
    assert found.speedup.value == pytest.approx(off * 1000 / (350 + 0.05 * 500))
    # What runs is not predicted, the server's defaults included.
    assert predicted_lookup(bet, profile, PLAIN) is None
    usual = replace(PLAIN, replayed=(replace(REPLAY, lookup=12, length=48),))
    assert predicted_lookup(bet, PROFILE.with_speculation(mode="ngram-simple"), usual) is None


def test_drafts_that_vary_in_length_predict_nothing_by_their_mean() -> None:
    assert with_costs(BET, V).speedup_predicted is not None
    varied = with_costs(replace(BET, fixed_length=False), V)
    assert varied.speedup_predicted is None
    assert varied.loss is not None


def test_drafts_that_vary_in_length_tell_no_cost() -> None:
    assert lookup_of(replace(BET, fixed_length=False)) == lookup_of(replace(BET, c=None))


def test_a_baseline_that_was_not_read_back_predicts_nothing() -> None:
    assert predicted_lookup(BET, PROFILE, Baseline(given(40.0).speed, "measured", V)) is None


def test_a_lookup_is_advised_to_servers_of_ours_that_offer_it() -> None:
    lookup = predicted_lookup(BET, PROFILE, PLAIN)
    losing = replace(BET, speedup_actual=Estimate(value=0.8, low=0.78, high=0.82))
    ours = LaunchedServer(plan_for(PROFILE))
    old = LaunchedServer(replace(plan_for(PROFILE), capabilities=replace(CAPS, flags=())))
    dead = LaunchedServer(plan_for(PROFILE))
    ours.state = old.state = ServerState.RUNNING
    assert verdict_of(losing, PROFILE, ours, lookup=lookup).findings[0].code == "ngram-better"
    for server in (None, old, dead):
        assert "ngram-better" not in [
            f.code for f in verdict_of(losing, PROFILE, server, lookup=lookup).findings
        ]
