from __future__ import annotations

import math
import random
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.verdict.explain import Observed, explain
from spectui.core.verdict.verdict import judge
from tests.core.verdict.flat_facts import changed, facts

KOBOLD = Observed(baseline=36.0, measured=30.89, draft_length=8, ratio=0.11)
"""koboldcpp #2262: the single bad point from which the better lengths can be told."""


def codes(seen: Observed, **extra: Any) -> list[str]:
    return [f.code for f in judge(changed(explain(seen).facts, **extra)).findings]


def drafted_passes(count: int, k: int, alpha: float, ms: float = 50.0, seed: int = 1) -> RequestPasses:
    rng = random.Random(seed)
    steps = []
    for _ in range(count):
        kept = next((j for j in range(k) if rng.random() >= alpha), k)
        steps.append(TargetPass(k, kept, kept + 1, ms))
    return RequestPasses(
        passes=tuple(steps),
        drafted=count * k,
        accepted=sum(p.accepted for p in steps),
        predicted_n=1 + sum(p.committed for p in steps),
        predicted_ms=count * ms,
    )


def test_a_ratio_at_fixed_length_gives_alpha_and_predicts_what_was_measured() -> None:
    values = explain(KOBOLD)
    assert values.facts.bet.alpha is not None
    assert values.facts.bet.alpha.value == pytest.approx(0.47, abs=0.01)
    assert values.facts.tokens_per_pass == pytest.approx(1.88)
    assert values.facts.implied_c == pytest.approx(0.149, abs=0.001)
    assert values.facts.bet.speedup_textbook is None
    assert values.facts.bet.speedup_predicted is None
    predicted = {p.draft_length: p.speedup for p in values.predictions}
    for length, measured in {1: 1.33, 2: 1.26, 3: 1.23, 4: 1.16}.items():
        assert predicted[length] == pytest.approx(measured, rel=0.05)
    assert predicted[8] == pytest.approx(30.89 / 36.0)
    assert max(predicted) == 16, "without V a curve reaches twice the length that ran"


def test_counts_give_tokens_per_pass_without_any_length() -> None:
    values = explain(Observed(drafted=171, accepted=51, predicted=64, p_min=0.75))
    assert values.facts.tokens_per_pass == pytest.approx(63 / 12)
    assert values.facts.bet.drafted_per_pass == pytest.approx(171 / 12)
    assert values.facts.bet.alpha is None
    assert values.predictions == ()


@pytest.mark.parametrize("mode", ["ngram-simple", "ngram-mod"])
def test_totals_of_a_lookup_give_no_alpha(mode: str) -> None:
    values = explain(Observed(mode=mode, draft_length=8, drafted=100, accepted=60, predicted=141))
    assert values.facts.tokens_per_pass == pytest.approx(140 / 80)
    assert values.facts.bet.alpha is None


def test_p_min_makes_a_ratio_say_nothing() -> None:
    seen = Observed(baseline=61.4, measured=96.1, draft_length=4, ratio=0.89, p_min=0.85)
    values = explain(seen)
    assert (
        values.facts.bet.alpha,
        values.facts.tokens_per_pass,
        values.facts.implied_c,
        values.facts.best,
    ) == (None, None, None, None)
    assert values.facts.speedup == pytest.approx(1.565, abs=0.001)
    assert codes(seen) == ["p-min-hides-acceptance", "winning"]


def test_an_old_server_pays_two_target_passes_per_cycle() -> None:
    # FORMATS 4: alpha .9, k 16, c .05 give 3.33x on such a server and 4.63x on one with a single pass.
    tokens = (1 - 0.9**17) / (1 - 0.9)
    mean = (tokens - 1) / 16
    one = explain(Observed(draft_length=16, ratio=mean, c=0.05))
    two = explain(Observed(draft_length=16, ratio=mean, c=0.05, two_pass=True))
    assert one.facts.bet.speedup_textbook == pytest.approx(4.63, abs=0.01)
    assert two.facts.bet.speedup_textbook == pytest.approx(3.33, abs=0.01)
    assert {p.draft_length: p.speedup for p in two.predictions}[16] == pytest.approx(3.33, abs=0.01)


def test_counts_of_an_old_server_are_read_per_cycle() -> None:
    # llama.cpp #12968: 261 tokens, 159 drafted at k 3: 53 cycles of two passes.
    seen = Observed(
        draft_length=3,
        drafted=159,
        accepted=154,
        predicted=261,
        p_min=None,
        two_pass=True,
        baseline=20.0,
        measured=32.58,
    )
    values = explain(seen)
    assert values.facts.tokens_per_pass == pytest.approx(260 / 106)
    assert values.facts.bet.alpha is not None
    assert values.facts.bet.alpha.value == pytest.approx(0.984, abs=0.002)
    cycle_cost = 2 * (260 / 106) / (32.58 / 20.0)
    assert values.facts.implied_c == pytest.approx((cycle_cost - 2) / 3)
    predicted = {p.draft_length: p.speedup for p in values.predictions}
    assert predicted[3] == pytest.approx(32.58 / 20.0, rel=0.01)
    assert "old-two-pass-server" in codes(seen)


def test_with_v_and_c_the_prediction_is_independent_of_the_speed() -> None:
    # The check of the model on a real server: R = 2.33 at k 4 where 2.35 was taken.
    v = {2: 1.11, 3: 1.33, 4: 1.45, 5: 1.53, 17: 4.46}
    seen = Observed(draft_length=4, ratio=0.35, c=0.15, v=v, baseline=20.0, measured=20.0)
    values = explain(seen)
    assert values.facts.bet.speedup_predicted == pytest.approx(2.4 / (1.53 + 5 * 0.15 + 0.1))
    loss = values.facts.bet.loss
    assert loss is not None
    assert loss.verification == pytest.approx(0.53)
    assert loss.drafting == pytest.approx(0.75)
    assert loss.overhead + loss.unexplained == pytest.approx(2.4 - 1 - 0.53 - 0.75)
    here = {p.draft_length: p.speedup for p in values.predictions}[4]
    assert here == pytest.approx(1.0), "the curve passes through what was measured"
    assert max(p.draft_length for p in values.predictions) == 64


def test_busy_slots_share_the_rows_of_a_pass() -> None:
    v = {1: 1.0, 2: 1.2, 4: 2.0, 8: 4.0}
    alone = explain(Observed(draft_length=1, ratio=0.8, c=0.0, v=v))
    four = explain(Observed(draft_length=1, ratio=0.8, c=0.0, v=v, slots=4))
    assert alone.predictions[0].speedup == pytest.approx(1.8 / 1.2)
    assert four.predictions[0].speedup == pytest.approx(1.8 / (4.0 / 2.0))


def test_passes_give_alpha_survival_and_predictions_with_intervals() -> None:
    request = drafted_passes(600, 4, 0.7)
    values = explain(Observed(baseline=20.0, measured=30.0, draft_length=4, passes=(request,)))
    assert values.facts.bet.alpha is not None
    assert values.facts.bet.alpha.low is not None
    assert values.facts.bet.alpha.high is not None
    assert values.facts.bet.alpha.low < 0.7 < values.facts.bet.alpha.high
    assert values.facts.tokens_per_pass == pytest.approx(request.committed / 600)
    for point in values.predictions:
        assert point.low is not None
        assert point.high is not None
        assert point.low < point.speedup < point.high
    shortest = values.predictions[0]
    assert shortest.high is not None
    assert shortest.high / shortest.speedup - 1 < 0.06


def test_cut_drafts_predict_shorter_lengths_only() -> None:
    steps = [TargetPass(d, d, d + 1, 40.0) for d in (0, 1, 4, 2)] * 20
    request = RequestPasses(
        passes=tuple(steps),
        drafted=140,
        accepted=140,
        predicted_n=221,
        predicted_ms=3200.0,
    )
    values = explain(Observed(baseline=30.0, measured=60.0, draft_length=4, p_min=0.5, passes=(request,)))
    assert [p.draft_length for p in values.predictions] == [1, 2, 3, 4]
    by_length = {p.draft_length: p.speedup for p in values.predictions}
    assert by_length[4] == pytest.approx(2.0)
    assert values.facts.implied_c is not None
    assert by_length[1] == pytest.approx((1 + 0.75) / (1 + 0.75 * values.facts.implied_c))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (KOBOLD, ["draft-too-long", "acceptance-low"]),
        (
            Observed(baseline=22.8, measured=24.2, draft_length=2, ratio=0.798),
            ["winning", "verification-expensive"],
        ),
        (
            Observed(baseline=45.4, measured=24.7, draft_length=2, ratio=0.73),
            ["off-is-best", "overhead-unexplained"],
        ),
        (
            Observed(baseline=33.0, measured=22.0, draft_length=2, ratio=0.7, slots=4),
            ["off-is-best", "concurrency-saturated"],
        ),
        (
            Observed(baseline=30.0, measured=22.0, draft_length=4, ratio=0.8, c=0.7),
            ["off-is-best", "draft-too-slow"],
        ),
        (
            Observed(baseline=30.0, measured=20.0, draft_length=3, ratio=0.9, c=0.05, v={4: 4.5}),
            ["off-is-best", "verification-expensive"],
        ),
        (Observed(baseline=30.0, draft_length=3, ratio=0.9), ["baseline-missing"]),
        (Observed(baseline=30.0, measured=31.0, draft_length=1, ratio=0.5), ["off-is-best"]),
    ],
)
def test_the_verdict_names_the_setting_and_then_the_largest_loss(seen: Observed, expected: list[str]) -> None:
    assert codes(seen) == expected


def test_what_only_a_log_knows_is_judged_as_well() -> None:
    assert "state-rollback" in codes(KOBOLD, restored_share=0.6)
    assert "state-rollback" not in codes(KOBOLD, restored_share=0.01)
    assert "memory-pressure" in codes(KOBOLD, gpu_free_gib=0.1)
    assert "default-changed" in codes(KOBOLD, default_changed="other defaults")
    assert "baseline-stale" in codes(KOBOLD, baseline_stale="measured on b10434, this is b10600")
    assert "prompts-repeated" in codes(KOBOLD, repeated_prompts=8, requests=10)
    assert "prompts-repeated" not in codes(KOBOLD, repeated_prompts=3, requests=10)


def test_p_min_too_high_and_a_long_lookup_need_a_number_to_be_advised() -> None:
    losing = facts(
        mode="draft-simple",
        draft_length=4,
        p_min=0.8,
        passes=900,
        requests=20,
        drafted=900,
        accepted=800,
        speedup=0.8,
        speedup_high=0.9,
    )
    assert [f.code for f in judge(losing).findings] == ["off-is-best"]
    better = changed(losing, best_p_min=0.3, best_p_min_speedup=1.3)
    finding = judge(better).findings[0]
    assert finding.code == "p-min-too-high"
    assert finding.advice == "p_min 0.8 -> 0.3: measured 1.30x"
    lookup = changed(losing, mode="ngram-simple", draft_length=48, p_min=0.0, best_length=8, best_speedup=2.2)
    finding = judge(lookup).findings[0]
    assert finding.code == "ngram-too-long"
    assert finding.change is not None
    assert finding.change.ngram_length == 8


def test_a_length_whose_interval_includes_a_loss_is_not_advised_but_named() -> None:
    facts = changed(explain(KOBOLD).facts, best_low=0.9, best_high=1.7)
    finding = judge(facts).findings[0]
    assert finding.code == "off-is-best"
    assert finding.advice == (
        "off: the best draft length, 2, is predicted 1.30x (0.90 to 1.70; that includes a loss)"
    )
    assert finding.change is not None
    assert finding.change.mode == "off"
    sure = judge(changed(facts, best_low=1.01)).findings[0]
    assert (sure.code, sure.advice) == (
        "draft-too-long",
        "draft length 8 -> 2: predicted 1.30x (1.01 to 1.70)",
    )


def test_a_length_that_was_measured_is_not_called_predicted() -> None:
    facts = changed(explain(KOBOLD).facts, best_measured=True)
    assert judge(facts).findings[0].advice == "draft length 8 -> 2: measured 1.30x"


shares = st.floats(0, 1, allow_nan=False)
speeds = st.none() | st.floats(1e-3, 1e7, allow_nan=False)


@given(
    ratio=st.none() | shares,
    p_min=st.none() | shares,
    k=st.none() | st.integers(1, 1024),
    baseline=speeds,
    measured=speeds,
    c=st.none() | st.floats(0, 1000, allow_nan=False),
    counts=st.none() | st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
    v=st.dictionaries(st.integers(1, 64), st.floats(1e-3, 1e3), max_size=3),
    slots=st.integers(1, 64),
    two_pass=st.booleans(),
)
def test_whatever_is_stated_gives_numbers_or_none(**stated: Any) -> None:
    counts = stated.pop("counts")
    k = stated.pop("k")
    if counts is not None:
        drafted, accepted, extra = counts
        drafted, accepted = max(drafted, accepted), min(drafted, accepted)
        stated |= {"drafted": drafted, "accepted": accepted, "predicted": accepted + 2 + extra}
    values = explain(Observed(draft_length=k, **stated))
    judge(values.facts)
    numbers = [v for v in asdict(values).values() if isinstance(v, float)]
    numbers += [p.speedup for p in values.predictions]
    assert all(math.isfinite(n) for n in numbers)
