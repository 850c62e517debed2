from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spectui.core.bet import segment as module
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.bet.segment import DraftTiming, Segment, SpeedEstimate, drafting_since, longest_draft
from spectui.core.profile import SpeculationSettings, TrafficSettings, TuningProfile

K = 4


def profile_of(*, concurrency: int = 1, **speculation: Any) -> TuningProfile:
    chosen = {"mode": "draft-simple", "draft_length": K, **speculation}
    return TuningProfile(
        speculation=SpeculationSettings(**chosen),
        traffic=TrafficSettings(concurrency=concurrency),
    )


def request_of(
    *passes: tuple[int, int], ms: float | None = 50.0, ttft: float | None = None, completed: bool = True
) -> RequestPasses:
    """A request of passes (drafted, accepted), each taking `ms`."""
    steps = tuple(TargetPass(d, a, a + 1, ms) for d, a in passes)
    return RequestPasses(
        passes=steps,
        drafted=sum(d for d, _ in passes),
        accepted=sum(a for _, a in passes),
        predicted_n=1 + sum(s.committed for s in steps),
        predicted_ms=sum(s.ms or 0.0 for s in steps),
        ttft_ms=ttft,
        completed=completed,
    )


def random_request(rng: random.Random) -> RequestPasses:
    alpha, passes = rng.uniform(0.4, 0.9), []
    for _ in range(rng.randint(5, 25)):
        accepted = 0
        while accepted < K and rng.random() < alpha:
            accepted += 1
        passes.append((K, accepted))
    return request_of(*passes, ms=rng.uniform(40, 60))


def filled(profile: TuningProfile, *requests: RequestPasses, fixed_length: bool | None = None) -> Segment:
    segment = Segment(profile, fixed_length=fixed_length)
    for request in requests:
        segment.add(request)
    return segment


def plain(speed: float, *, error: float | None = 0.01, streams: float = 1.0) -> SpeedEstimate:
    return SpeedEstimate(per_stream=Estimate(value=speed), streams=streams, relative_error=error)


def test_speed_is_committed_tokens_over_decode_time() -> None:
    segment = filled(profile_of(), request_of((4, 4), (4, 0)), request_of((4, 2), (4, 1), ms=None))
    speed = segment.speed()
    assert speed is not None
    assert speed.per_stream.value == pytest.approx((5 + 1) / 0.1)
    assert speed.streams == 1.0
    bet = segment.bet()
    assert bet.tokens_per_second == pytest.approx(60.0)
    assert bet.tokens == 11
    assert bet.pass_ms == pytest.approx(1000 * (11 / 4) / 60)


def test_several_streams_add_up_and_idle_time_does_not_count() -> None:
    """Three streams for 2 s, one for 2 s, and nothing in a pause of any length: 2 streams in the mean."""
    segment = filled(profile_of(concurrency=3), *[request_of(*[(4, 1)] * 20)] * 4)
    segment.add_busy(stream_seconds=6.0, busy_seconds=2.0)
    segment.add_busy(stream_seconds=0.0, busy_seconds=0.0)
    segment.add_busy(stream_seconds=2.0, busy_seconds=2.0)
    speed = segment.speed()
    assert speed is not None
    assert speed.streams == pytest.approx(2.0)
    assert speed.per_stream.value == pytest.approx(2 / 0.05)
    assert speed.aggregate.value == pytest.approx(80.0)
    assert speed.per_stream.low is not None
    assert speed.aggregate.low == pytest.approx(2 * speed.per_stream.low)
    assert speed.aggregate.high == pytest.approx(2 * (speed.per_stream.high or 0.0))
    assert segment.bet().tokens_per_second == pytest.approx(80.0)


@pytest.mark.parametrize(("concurrency", "stream_seconds"), [(1, 30.0), (4, 3.0), (4, 0.0)])
def test_streams_are_never_fewer_than_one_and_one_where_one_is_sent(
    concurrency: int, stream_seconds: float
) -> None:
    segment = filled(profile_of(concurrency=concurrency), request_of((4, 1), (4, 1)))
    segment.add_busy(stream_seconds=stream_seconds, busy_seconds=10.0)
    speed = segment.speed()
    assert speed is not None
    assert speed.streams == 1.0


def test_nothing_measured_gives_no_number() -> None:
    segment = filled(profile_of(), request_of(), request_of((4, 2), ms=None))
    assert segment.speed() is None
    bet = segment.bet(baseline=plain(20.0))
    assert bet.passes == 1
    assert bet.tokens_per_second is None
    assert bet.pass_ms is None
    assert bet.speedup_actual is None
    assert bet.pass_cost is None
    empty = Segment(profile_of()).bet()
    assert (empty.requests, empty.passes, empty.alpha, empty.tokens_per_pass) == (0, 0, None, None)
    assert empty.acceptance_ratio is None
    assert empty.drafted_per_pass is None
    assert empty.tokens_per_request is None
    assert empty.survival == ()


def test_the_bet_of_a_hand_made_segment() -> None:
    segment = filled(
        profile_of(), request_of((4, 4), (4, 0), ttft=30.0), request_of((4, 2), (1, 1), ttft=50.0)
    )
    bet = segment.bet(baseline=plain(40.0), baseline_source="measured")
    assert (bet.requests, bet.passes, bet.tokens, bet.drafted, bet.accepted) == (2, 4, 11, 13, 7)
    assert bet.alpha is not None
    assert bet.alpha.value == pytest.approx(7 / 9)
    assert bet.acceptance_ratio == pytest.approx(7 / 13)
    assert bet.tokens_per_pass is not None
    assert bet.tokens_per_pass.value == pytest.approx(11 / 4)
    assert bet.drafted_per_pass == pytest.approx(13 / 4)
    assert [row.survival for row in bet.survival] == pytest.approx([3 / 4, 3 / 4, 3 / 8, 3 / 8])
    assert bet.speedup_actual is not None
    assert bet.speedup_actual.value == pytest.approx(55 / 40)
    assert bet.pass_cost == pytest.approx(11 / 4 / (55 / 40))
    assert bet.t1_ms == pytest.approx(25.0)
    assert bet.tokens_per_request == pytest.approx(5.5)
    assert bet.time_to_first_token_ms == 40.0
    assert bet.baseline == Estimate(value=40.0)
    assert bet.baseline_source == "measured"


def test_cancelled_requests_count_their_passes_and_no_request() -> None:
    segment = filled(profile_of(), request_of((4, 1), (4, 1)), request_of((4, 3), completed=False))
    bet = segment.bet()
    assert (bet.requests, bet.passes, bet.tokens) == (1, 3, 8)
    assert bet.tokens_per_request == 4.0


def test_requests_in_flight_are_read_and_not_kept() -> None:
    segment = filled(profile_of(), request_of((4, 1), ttft=10.0))
    flying = (request_of((4, 3), (4, 3), ttft=30.0), request_of())
    bet = segment.bet(in_flight=flying)
    assert (bet.requests, bet.passes, bet.accepted) == (1, 3, 7)
    assert bet.time_to_first_token_ms == 20.0
    assert bet.tokens_per_second == pytest.approx(10 / 0.15)
    assert segment.bet().passes == 1


@given(st.integers(1, 10_000), st.integers(520, 900))
@settings(max_examples=8, deadline=None, phases=(Phase.reuse, Phase.generate))
def test_joined_clusters_say_the_same_as_unjoined_ones(seed: int, count: int) -> None:
    rng = random.Random(seed)
    requests = [random_request(rng) for _ in range(count)]
    joined, bounded = filled(profile_of(), *requests), module._MAX_CLUSTERS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_CLUSTERS", 10**6)
        whole = filled(profile_of(), *requests)
    assert len(joined._clusters) <= bounded
    assert len(joined._speed) == len(joined._clusters)
    assert len(whole._clusters) == count
    a, b = joined.bet(baseline=plain(20.0)), whole.bet(baseline=plain(20.0))
    for name in ("requests", "passes", "tokens", "drafted", "accepted", "tokens_per_request"):
        assert getattr(a, name) == getattr(b, name)
    for name in ("tokens_per_second", "pass_ms", "pass_cost", "acceptance_ratio", "drafted_per_pass"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-9)
    for name in ("alpha", "tokens_per_pass", "speedup_actual"):
        one, other = getattr(a, name), getattr(b, name)
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.high - one.low == pytest.approx(other.high - other.low, rel=0.35)
    assert [r.at_risk for r in a.survival] == [r.at_risk for r in b.survival]
    assert [r.survival for r in a.survival] == pytest.approx([r.survival for r in b.survival])


def test_memory_stays_bounded_over_many_requests() -> None:
    segment = Segment(profile_of())
    request = request_of((4, 2), (4, 4), ttft=12.0)
    for _ in range(3000):
        segment.add(request)
    assert len(segment._clusters) == len(segment._speed) <= module._MAX_CLUSTERS
    assert len(segment._first_token_ms) == 500
    bet = segment.bet()
    assert (bet.requests, bet.passes, bet.accepted) == (3000, 6000, 18000)
    assert bet.time_to_first_token_ms == 12.0


@pytest.mark.parametrize(("fixed", "drafts"), [(None, 4.0), (True, 4.0), (False, 8 / 3)])
def test_textbook_takes_k_where_drafts_have_one_length_and_the_mean_else(
    fixed: bool | None, drafts: float
) -> None:
    request = request_of((4, 4), (3, 0), (1, 1))
    segment = filled(profile_of(), request, fixed_length=fixed)
    bet = segment.bet(baseline=plain(20.0), drafting=DraftTiming(draft_ms=80.0, drafted=8))
    assert bet.draft_ms == 10.0
    assert bet.c == pytest.approx(0.2)
    assert bet.drafted_per_pass == pytest.approx(8 / 3)
    assert bet.speedup_textbook == pytest.approx((8 / 3) / (1 + drafts * 0.2))


@pytest.mark.parametrize("speculation", [{"p_min": 0.5}, {"mode": "ngram-simple"}])
def test_settings_that_cut_drafts_have_no_fixed_length(speculation: dict[str, Any]) -> None:
    assert Segment(profile_of(**speculation)).fixed_length is False
    assert Segment(profile_of(**speculation)).bet().fixed_length is False
    assert Segment(profile_of()).fixed_length is True


def test_draft_time_has_no_price_per_token_with_p_min() -> None:
    segment = filled(profile_of(p_min=0.5), request_of((4, 1)))
    bet = segment.bet(baseline=plain(20.0), drafting=DraftTiming(draft_ms=80.0, drafted=8))
    assert (bet.draft_ms, bet.c, bet.speedup_textbook) == (None, None, None)


def test_a_drafting_step_of_several_streams_is_that_of_all() -> None:
    segment = filled(profile_of(concurrency=2), request_of((4, 1)))
    segment.add_busy(stream_seconds=6.0, busy_seconds=4.0)
    bet = segment.bet(baseline=plain(20.0, streams=1.5), drafting=DraftTiming(draft_ms=80.0, drafted=8))
    assert bet.streams == pytest.approx(1.5)
    assert bet.draft_ms == pytest.approx(15.0)
    assert bet.c == pytest.approx(15.0 / 50.0)


def test_a_pass_that_stalled_is_left_out_of_the_speed() -> None:
    calm = filled(profile_of(), request_of(*[(4, 2)] * 20)).speed()
    passes = request_of(*[(4, 2)] * 20)
    held = replace(
        passes, passes=(*passes.passes[:7], replace(passes.passes[7], ms=9000.0), *passes.passes[8:])
    )
    segment = filled(profile_of(), held)
    speed = segment.speed()
    assert calm is not None
    assert speed is not None
    assert speed.per_stream.value == pytest.approx(calm.per_stream.value)
    assert segment.bet().stalled == 1


def test_long_drafts_among_short_ones_do_not_stall() -> None:
    """An n-gram lookup that finds something makes one pass of many rows among plain ones."""
    request = request_of(*[(0, 0)] * 20, (48, 48))
    dear = replace(request, passes=(*request.passes[:-1], replace(request.passes[-1], ms=50.0 * 15)))
    segment = filled(profile_of(mode="ngram-simple"), dear)
    assert segment.bet().stalled == 0


@pytest.mark.parametrize("drafting", [None, DraftTiming(draft_ms=0.0, drafted=0)])
def test_no_draft_time_gives_no_c(drafting: DraftTiming | None) -> None:
    bet = filled(profile_of(), request_of((4, 1))).bet(baseline=plain(20.0), drafting=drafting)
    assert (bet.draft_ms, bet.c, bet.speedup_textbook) == (None, None, None)


def test_draft_time_without_a_baseline_has_no_c() -> None:
    timing = DraftTiming(draft_ms=80.0, drafted=8)
    bet = filled(profile_of(), request_of((4, 1))).bet(drafting=timing)
    assert (bet.draft_ms, bet.c, bet.t1_ms) == (10.0, None, None)


@pytest.mark.parametrize(
    ("concurrency", "error", "t1"), [(1, None, 25.0), (1, 0.01, 25.0), (2, 0.01, 25.0), (2, None, None)]
)
def test_a_stated_speed_over_several_streams_tells_no_step(
    concurrency: int, error: float | None, t1: float | None
) -> None:
    segment = filled(profile_of(concurrency=concurrency), request_of((4, 1)))
    assert segment.bet(baseline=plain(40.0, error=error)).t1_ms == t1


def test_both_errors_enter_the_speedup_on_a_logarithmic_scale() -> None:
    requests = [request_of((4, 1), (4, 3), ms=ms) for ms in (40.0, 50.0, 60.0, 45.0, 55.0, 50.0)]
    segment = filled(profile_of(), *requests)
    speed = segment.speed()
    assert speed is not None
    assert speed.relative_error is not None
    exact = segment.bet(baseline=plain(30.0, error=None)).speedup_actual
    noisy = segment.bet(baseline=plain(30.0, error=0.2)).speedup_actual
    assert exact is not None
    assert noisy is not None
    assert noisy.value == pytest.approx(exact.value) == pytest.approx(speed.per_stream.value / 30)
    assert exact.high == pytest.approx(exact.value * math.exp(1.96 * speed.relative_error))
    spread = math.exp(1.96 * math.hypot(0.2, speed.relative_error))
    assert (noisy.low, noisy.high) == pytest.approx((noisy.value / spread, noisy.value * spread))


def test_one_pass_has_a_speedup_without_an_interval() -> None:
    actual = filled(profile_of(), request_of((4, 1))).bet(baseline=plain(20.0)).speedup_actual
    assert actual == Estimate(value=2.0)


def test_aggregate_speeds_are_compared() -> None:
    segment = filled(profile_of(concurrency=2), *[request_of((4, 1), (4, 1))] * 2)
    segment.add_busy(stream_seconds=4.0, busy_seconds=2.0)
    actual = segment.bet(baseline=plain(25.0, streams=1.6)).speedup_actual
    assert actual is not None
    assert actual.value == pytest.approx(80 / 40)


def test_without_speculation_there_is_no_bet() -> None:
    segment = filled(profile_of(mode="off"), request_of((0, 0), (0, 0), ms=25.0))
    bet = segment.bet(baseline=plain(40.0))
    assert bet.tokens_per_second == pytest.approx(40.0)
    assert (bet.speedup_actual, bet.pass_cost, bet.alpha, bet.survival) == (None, None, None, ())


def test_replicates_draw_requests_again() -> None:
    rng = random.Random(3)
    segment = filled(profile_of(), *(random_request(rng) for _ in range(30)))
    replicates = segment.survival_replicates(200, random.Random(1))
    assert len(replicates) == 200
    assert replicates == segment.survival_replicates(200, random.Random(1))
    shares = [row.survival for row in segment.bet().survival]
    for position, share in enumerate(shares):
        drawn = [r[position] for r in replicates]
        assert all(0 <= d <= 1 for d in drawn)
        assert sum(drawn) / len(drawn) == pytest.approx(share, abs=0.02)
        assert 0.01 < max(drawn) - min(drawn) < 0.4


def test_replicates_need_three_requests_and_repeat_equal_ones() -> None:
    request = request_of((4, 2), (4, 4), (4, 0))
    assert filled(profile_of(), request, request).survival_replicates(5, random.Random(1)) == ()
    replicates = filled(profile_of(), *[request] * 3).survival_replicates(5, random.Random(1))
    assert len(replicates) == 5
    for shares in replicates:
        assert shares == pytest.approx((2 / 3, 2 / 3, 1 / 3, 1 / 3))


@pytest.mark.parametrize(
    ("before", "now", "since"),
    [
        (None, None, None),
        (DraftTiming(draft_ms=5, drafted=2), None, None),
        (None, DraftTiming(draft_ms=5, drafted=2), DraftTiming(draft_ms=5, drafted=2)),
        (
            DraftTiming(draft_ms=50, drafted=20),
            DraftTiming(draft_ms=80, drafted=30),
            DraftTiming(draft_ms=30, drafted=10),
        ),
        (
            DraftTiming(draft_ms=50, drafted=20),
            DraftTiming(draft_ms=9, drafted=3),
            DraftTiming(draft_ms=9, drafted=3),
        ),
    ],
)
def test_draft_time_since_a_moment(
    before: DraftTiming | None, now: DraftTiming | None, since: DraftTiming | None
) -> None:
    assert drafting_since(before, now) == since


@pytest.mark.parametrize(
    ("speculation", "longest"),
    [
        ({}, 4),
        ({"mode": "draft-mtp", "draft_length": 9}, 9),
        ({"mode": "ngram-simple"}, 64),
        ({"mode": "ngram-simple", "ngram_length": 8}, 8),
        ({"mode": "ngram-simple", "ngram_length": 500}, 64),
    ],
)
def test_positions_of_a_draft(speculation: dict[str, Any], longest: int) -> None:
    assert longest_draft(profile_of(**speculation)) == longest


def test_stalls_that_return_are_what_the_machine_does() -> None:
    """Every tenth pass pages: that is a loss of the bet and stays in its speed."""
    steps = [TargetPass(4, 2, 3, 400.0 if i % 10 == 9 else 30.0) for i in range(60)]
    request = replace(request_of(*[(4, 2)] * 60), passes=tuple(steps))
    segment = filled(profile_of(), request)
    speed = segment.speed()
    assert speed is not None
    assert speed.per_stream.value == pytest.approx(180 / (54 * 0.03 + 6 * 0.4))
    assert segment.bet().stalled == 0


def test_agreements_need_drafts_that_only_a_refusal_ends() -> None:
    request = request_of((4, 4), (4, 1))
    found = filled(profile_of(), request).agreements(random.Random(1))
    assert found is not None
    assert found.at(4, lambda _d: 1.0) is not None
    assert Segment(profile_of()).agreements(random.Random(1)) is None
    for other in ({"p_min": 0.5}, {"mode": "ngram-simple"}, {"mode": "draft-mtp"}, {"mode": "off"}):
        assert filled(profile_of(**other), request).agreements(random.Random(1)) is None


def test_cancelled_answers_end_no_draft_and_are_not_walked() -> None:
    cancelled = request_of((4, 4), (4, 1), completed=False)
    assert filled(profile_of(), cancelled).agreements(random.Random(1)) is None


def test_agreements_are_drawn_anew_as_answers_come() -> None:
    rng = random.Random(4)
    segment = filled(profile_of(), *(random_request(rng) for _ in range(10)))
    first = segment.agreements(random.Random(1))
    assert segment.agreements(random.Random(1)) is first
    segment.add(random_request(rng))
    second = segment.agreements(random.Random(1))
    assert second is not first
    segment.add(random_request(rng))
    assert segment.agreements(random.Random(1)) is second
