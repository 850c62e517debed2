from __future__ import annotations

import random

import pytest

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.bet.segment import DraftTiming
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.views.snapshot import HistoryMark, HistoryPoint
from spectui.lab.measuring.traffic import BusyClock, RateMeter, RequestResult
from spectui.lab.session.live_readings import Gauge
from spectui.lab.workloads.workloads import Prompt

K4 = TuningProfile(
    server=ServerSettings(model="t.gguf"),
    speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4),
    traffic=TrafficSettings(workload="code", warmup=2),
)
K2 = K4.with_speculation(draft_length=2)


def result_of(
    k: int = 4, passes: int = 50, *, counted: bool = True, ms: float = 50.0, seed: int = 1
) -> RequestResult:
    """A request whose passes draft k tokens and keep some of them; the last draft is cut by the end."""
    rng = random.Random(seed)
    steps = [TargetPass(k, a, a + 1, ms) for a in (rng.randint(0, k) for _ in range(passes - 1))]
    return ended(*steps, TargetPass(min(k, 1), 0, 1, ms, last=True), counted=counted)


def ended(*steps: TargetPass, counted: bool = True) -> RequestResult:
    request = RequestPasses(
        passes=steps,
        drafted=sum(s.drafted for s in steps),
        accepted=sum(s.accepted for s in steps),
        predicted_n=1 + sum(s.committed for s in steps),
        predicted_ms=sum(s.ms or 0.0 for s in steps),
        ttft_ms=30.0,
    )
    return RequestResult(passes=request, prompt=Prompt(id="p", text=""), text="", limit=64, counted=counted)


class Flow:
    """Traffic as the gauge sees it: what is in flight, and how long streams decoded."""

    warmup = 0

    def __init__(self, *flying: RequestPasses) -> None:
        self.flying = flying
        self.busy = BusyClock()

    def in_flight(self) -> tuple[RequestPasses, ...]:
        return self.flying


def begun(profile: TuningProfile = K4, *, flow: Flow | None = None, plain: Baseline | None = None) -> Gauge:
    gauge = Gauge(profile)
    gauge.begin(profile, None, None)
    if flow is not None:
        gauge.go_on(flow)  # type: ignore[arg-type]  # as much of Traffic as is read
    if plain is not None:
        gauge.set_baseline(plain)
    return gauge


def read(gauge: Gauge, t: float = 0.0, drafting: DraftTiming | None = None):  # type: ignore[no-untyped-def]
    return gauge.read(t=t, now=100.0 + t, drafting=drafting)


def test_the_live_reading_becomes_unknown_when_nothing_comes_any_more() -> None:
    gauge = begun(flow=Flow())
    for i in range(11):
        gauge.tokens_arrived(2, 100.0 + i * 0.5, "x")
    assert read(gauge, 5.0).live_tokens_per_second == pytest.approx(20 / 5)
    assert read(gauge, 8.0).live_tokens_per_second == pytest.approx(20 / 5)
    assert read(gauge, 30.0).live_tokens_per_second is None


def test_the_live_reading_becomes_unknown_at_once_when_traffic_ends() -> None:
    gauge = begun(flow=Flow())
    gauge.request_ended(result_of())
    for i in range(6):
        gauge.tokens_arrived(2, 100.0 + i, "x")
    assert read(gauge, 5.0).live_tokens_per_second is not None
    gauge.pause(106.0)
    quiet = read(gauge, 5.0)
    assert quiet.live_tokens_per_second is None
    assert quiet.passes == 50


def test_a_rate_needs_two_arrivals_and_some_time() -> None:
    meter = RateMeter(window=4.0)
    assert meter.rate(10.0) is None
    meter.add(50, 10.0)
    assert meter.rate(11.0) is None
    meter.add(6, 10.1)
    assert meter.rate(10.1) is None
    meter.add(6, 12.0)
    assert meter.rate(12.0) == pytest.approx(12 / 2.0)
    assert meter.rate(20.0) is None


def test_a_quiet_session_reads_the_same_object() -> None:
    gauge = begun(flow=Flow())
    gauge.request_ended(result_of())
    bet = read(gauge)
    assert read(gauge, 1.0) is bet
    assert gauge.history() is gauge.history()
    assert gauge.curve() is gauge.curve()
    gauge.request_ended(result_of(seed=2))
    assert read(gauge, 2.0) is not bet


def test_warm_up_requests_are_not_counted() -> None:
    gauge = begun(flow=Flow())
    gauge.request_ended(result_of(counted=False))
    assert read(gauge).passes == 0
    gauge.warmed_up()
    gauge.request_ended(result_of(passes=7))
    assert (read(gauge).requests, read(gauge).passes) == (1, 7)


def test_requests_in_flight_are_read_along() -> None:
    flow = Flow(result_of(passes=5).passes)
    gauge = begun(flow=flow)
    assert (read(gauge).requests, read(gauge).passes) == (0, 5)


def test_a_pause_keeps_the_numbers_and_its_length_changes_no_speed() -> None:
    profile = K4.with_traffic(concurrency=2)
    flow = Flow()
    gauge = begun(profile, flow=flow)
    flow.busy.change(+1, 100.0)
    flow.busy.change(+1, 100.0)
    gauge.request_ended(result_of(passes=40))
    flow.busy.change(-1, 102.0)
    flow.busy.change(-1, 102.0)
    before = read(gauge, 2.0).tokens_per_second
    gauge.pause(102.0)
    assert read(gauge, 500.0).tokens_per_second == before
    gauge.go_on(flow)  # type: ignore[arg-type]
    gauge.request_ended(result_of(passes=40))
    again = read(gauge, 500.0)
    assert again.tokens_per_second == pytest.approx(before)
    assert again.tokens_per_second == pytest.approx(2 * again.tokens / (80 * 0.05))
    assert again.requests == 2


def test_the_busy_clock_counts_decoding_only() -> None:
    clock = BusyClock()
    clock.change(+1, 10.0)
    clock.change(+1, 11.0)
    assert clock.take(12.0) == pytest.approx((3.0, 2.0))
    clock.change(-1, 13.0)
    clock.change(-1, 14.0)
    assert clock.take(99.0) == pytest.approx((3.0, 2.0))
    assert clock.take(120.0) == (0.0, 0.0)


def test_a_new_segment_begins_at_zero_and_keeps_history() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    gauge.mark(1.0, "k=4")
    gauge.request_ended(result_of())
    for i in range(6):
        gauge.tokens_arrived(2, 100.0 + i, "x")
    assert read(gauge, 5.0, DraftTiming(draft_ms=100.0, drafted=10)).draft_ms == 10.0
    points = gauge.history().points
    assert points == (HistoryPoint(t=5.0, tokens_per_second=2.0),)
    gauge.begin(K2, None, DraftTiming(draft_ms=100.0, drafted=10))
    gauge.mark(6.0, "k=2")
    fresh = read(gauge, 6.0, DraftTiming(draft_ms=130.0, drafted=12))
    assert (fresh.requests, fresh.passes, fresh.survival) == (0, 0, ())
    assert fresh.draft_ms == 15.0
    history = gauge.history()
    assert history.points[:1] == points
    assert history.marks == (HistoryMark(t=1.0, label="k=4"), HistoryMark(t=6.0, label="k=2"))
    assert history.baseline == 20.0


def test_history_is_sampled_once_a_second_while_something_streams() -> None:
    gauge = begun(flow=Flow())
    for i in range(100):
        gauge.tokens_arrived(3, 100.0 + i / 10, "")
        read(gauge, i / 10)
    assert [p.t for p in gauge.history().points] == pytest.approx([float(i) for i in range(1, 10)])
    held = gauge.history()
    read(gauge, 60.0)
    assert gauge.history() is held


def test_marks_and_output_are_bounded() -> None:
    gauge = begun()
    for i in range(500):
        gauge.mark(float(i), f"k={i}")
    assert [m.label for m in gauge.history().marks] == [f"k={i}" for i in range(400, 500)]
    for i in range(500):
        gauge.tokens_arrived(1, 100.0 + i, f"{i:03} word of {i} ")
    assert len(gauge.output) == 4000
    assert gauge.output.endswith("word of 499 ")
    gauge.tokens_arrived(1, 700.0, "y" * 50_000)
    assert gauge.output == "y" * 4000
    gauge.request_ended(result_of())
    assert gauge.output == "y" * 3998 + "\n\n"


def test_the_output_of_every_request_is_apart() -> None:
    gauge = begun()
    gauge.tokens_arrived(1, 100.0, "one")
    gauge.request_ended(result_of())
    gauge.tokens_arrived(1, 101.0, "two")
    assert gauge.output == "one\n\ntwo"


def test_the_plain_speed_decides_the_speedup_and_can_be_withdrawn() -> None:
    gauge = begun(flow=Flow())
    gauge.request_ended(result_of())
    assert read(gauge).speedup_actual is None
    gauge.set_baseline(given(20.0))
    bet = read(gauge)
    assert bet.tokens_per_second is not None
    assert bet.speedup_actual is not None
    assert bet.speedup_actual.value == pytest.approx(bet.tokens_per_second / 20)
    assert (bet.baseline_source, gauge.history().baseline) == ("given", 20.0)
    gauge.set_baseline(None)
    assert read(gauge).speedup_actual is None
    assert gauge.history().baseline is None


def test_a_probed_verification_gives_a_prediction_and_the_loss() -> None:
    gauge = begun(flow=Flow(), plain=Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}))
    gauge.request_ended(result_of())
    bet = read(gauge, drafting=DraftTiming(draft_ms=1000.0, drafted=200))
    assert bet.c == pytest.approx(0.1)
    assert bet.loss is not None
    assert bet.pass_cost is not None
    parts = bet.loss
    assert parts.target + parts.drafting + parts.verification + parts.overhead + parts.unexplained == (
        pytest.approx(bet.pass_cost)
    )
    assert bet.speedup_predicted is not None


def test_what_the_baseline_foretells_of_lookups_comes_with_the_curve() -> None:
    replays = (Replay(2, 16, 1000, 200, 300, 1000, 0.05),)
    gauge = begun(flow=Flow(), plain=Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}, {}, replays))
    assert gauge.curve().lookup is not None
    gauge.set_baseline(given(20.0))
    assert gauge.curve().lookup is None


def test_a_lookup_that_ran_in_this_session_is_not_predicted_again() -> None:
    replays = (Replay(2, 16, 1000, 200, 300, 1000, 0.05), Replay(2, 8, 1000, 300, 350, 500, 0.05))
    plain = Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}, {}, replays)
    lookups = K4.with_speculation(mode="ngram-simple", ngram_lookup=2, ngram_length=16)
    gauge = begun(flow=Flow(), plain=plain)
    first = gauge.curve().lookup
    assert first is not None
    assert first.length == 16
    gauge.begin(lookups, None, None)
    gauge.set_baseline(plain)
    gauge.request_ended(result_of())
    read(gauge)
    gauge.curve()
    gauge.begin(K4, None, None)
    gauge.set_baseline(plain)
    read(gauge)
    again = gauge.curve().lookup
    assert again is not None
    assert again.length == 8
    gauge.begin(K4.with_sampling(temperature=1.0), None, None)
    gauge.set_baseline(plain)
    read(gauge)
    assert gauge.curve().lookup == first


def test_the_curve_is_computed_again_only_when_a_request_ended() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    gauge.request_ended(result_of())
    read(gauge)
    first = gauge.curve()
    assert first.predicted
    assert first.best is not None
    assert first.best.speedup == max(p.speedup for p in first.predicted)
    for i in range(5):
        gauge.tokens_arrived(1, 100.0 + i, "x")
        read(gauge, float(i))
        assert gauge.curve() is first
    gauge.request_ended(result_of(seed=2))
    read(gauge, 6.0)
    assert gauge.curve().revision == first.revision + 1
    gauge.set_baseline(given(30.0))
    read(gauge, 7.0)
    assert gauge.curve().revision == first.revision + 2


def speedup_of(gauge: Gauge, *results: RequestResult) -> float:
    for result in results:
        gauge.request_ended(result)
    actual = read(gauge).speedup_actual
    assert actual is not None
    return float(actual.value)


def points_of(gauge: Gauge) -> dict[int, float]:
    return {p.draft_length: p.speedup for p in gauge.curve().measured}


def test_every_draft_length_measured_keeps_its_point() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(gauge, result_of(4))
    assert points_of(gauge) == {4: four}
    assert gauge.curve().now == 4
    gauge.begin(K2, None, None)
    read(gauge)
    assert points_of(gauge) == {4: four}
    two = speedup_of(gauge, result_of(2))
    assert points_of(gauge) == {2: two, 4: four}
    assert gauge.curve().now == 2
    gauge.begin(K4, None, None)
    better = speedup_of(gauge, result_of(4, ms=30.0))
    assert better > four
    assert points_of(gauge) == {2: two, 4: better}


def test_few_passes_make_no_point() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    speedup_of(gauge, result_of(passes=39))
    assert points_of(gauge) == {}
    two = speedup_of(gauge, result_of(passes=1))
    assert points_of(gauge) == {4: two}


@pytest.mark.parametrize(
    "other",
    [
        K4.with_traffic(workload="json"),
        K4.with_traffic(concurrency=2),
        K4.with_traffic(depth=2000),
        K4.with_traffic(workload="own", prompts="mine.txt"),
        K4.with_sampling(temperature=0.8),
        K4.with_speculation(p_min=0.5),
        K4.with_speculation(draft_min=2),
        K4.with_speculation(ngram_lookup=4),
        K4.with_speculation(draft_model="other.gguf"),
        K4.with_server(threads=1),
    ],
)
def test_points_of_other_conditions_are_another_chart(other: TuningProfile) -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(gauge, result_of())
    assert points_of(gauge) == {4: four}
    gauge.begin(other, None, None)
    read(gauge)
    assert points_of(gauge) == {}
    gauge.begin(K4, None, None)
    read(gauge)
    assert points_of(gauge) == {4: four}


def test_without_speculation_the_chart_stays_and_nothing_is_marked_as_now() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(gauge, result_of())
    gauge.curve()
    gauge.begin(K4.without_speculation(), None, None)
    read(gauge)
    assert points_of(gauge) == {4: four}
    assert gauge.curve().now is None


def learning() -> tuple[Gauge, list[int]]:
    """A gauge on an attached server whose draft length only its answers show."""
    gauge, told = begun(flow=Flow(), plain=given(20.0)), []

    def learn(draft_length: int) -> None:
        told.append(draft_length)
        gauge.know_length(K4.with_speculation(draft_length=draft_length))

    gauge.on_longer_draft = learn
    return gauge, told


def test_the_draft_length_is_learnt_from_the_longest_draft() -> None:
    gauge, told = learning()
    gauge.request_ended(result_of(5, counted=False))
    assert told == [5]
    gauge.request_ended(result_of(5))
    gauge.request_ended(result_of(3))
    assert told == [5]
    gauge.request_ended(ended(*[TargetPass(7, 7, 8, 50.0)] * 4))
    assert told == [5, 7]
    bet = read(gauge)
    assert [row.survival for row in bet.survival] == [1.0] * 7
    assert (bet.requests, bet.passes) == (1, 4)


def test_groups_of_passes_teach_no_length() -> None:
    gauge, told = learning()
    gauge.request_ended(ended(TargetPass(9, 4, 6, 50.0, merged=2), TargetPass(5, 5, 6, 50.0)))
    assert told == [5]


def test_a_length_learnt_begins_a_curve_of_its_own() -> None:
    gauge, _ = learning()
    gauge.request_ended(result_of(4))
    read(gauge)
    assert gauge.curve().now == 4
    gauge.request_ended(result_of(6))
    read(gauge)
    assert gauge.curve().now == 6


def test_a_length_that_was_none_leaves_no_point() -> None:
    gauge, _ = learning()
    gauge.request_ended(result_of(6))
    read(gauge)
    assert set(points_of(gauge)) == {6}
    gauge.request_ended(result_of(8))
    read(gauge)
    assert set(points_of(gauge)) == {8}


def test_no_point_is_drawn_at_a_length_that_nobody_knows() -> None:
    gauge, told = learning()
    gauge.request_ended(ended(*[TargetPass(0, 0, 1, 50.0)] * 50))
    read(gauge)
    assert told == []
    assert points_of(gauge) == {}


def test_drafts_cut_in_the_middle_of_an_answer_have_no_fixed_length() -> None:
    gauge, told = learning()
    gauge.request_ended(result_of(4))
    read(gauge)
    assert gauge.segment.fixed_length
    assert gauge.curve().predicted
    cut = [TargetPass(4, 4, 5, 50.0), TargetPass(2, 1, 2, 50.0), TargetPass(4, 0, 1, 50.0)] * 20
    gauge.request_ended(ended(*cut))
    bet = read(gauge)
    assert told == [4]
    assert not gauge.segment.fixed_length
    assert (bet.fixed_length, bet.requests, bet.passes) == (False, 1, 60)
    assert gauge.curve().predicted == ()
    gauge.request_ended(result_of(4))
    assert read(gauge).requests == 2


def test_drafts_cut_by_the_end_alone_keep_a_fixed_length() -> None:
    gauge, _ = learning()
    gauge.request_ended(
        ended(TargetPass(4, 4, 5, 50.0), TargetPass(4, 4, 5, 50.0), TargetPass(3, 1, 2, 50.0))
    )
    assert gauge.segment.fixed_length


def test_known_settings_are_not_learnt_from_answers() -> None:
    gauge = begun(flow=Flow())
    gauge.request_ended(ended(*[TargetPass(4, 1, 2, 50.0), TargetPass(9, 1, 2, 50.0)] * 9))
    assert gauge.segment.fixed_length
    assert gauge.segment.profile is K4


def test_waiting_for_a_prompt_does_not_slow_the_live_reading() -> None:
    gauge = begun(flow=Flow())
    for i in range(5):
        gauge.tokens_arrived(2, 100.0 + i * 0.5, "x")
    gauge.decoding_begins(109.0)
    for i in range(5):
        gauge.tokens_arrived(2, 109.0 + i * 0.5, "x")
    assert read(gauge, 11.0).live_tokens_per_second == pytest.approx(18 / 4)


def test_points_are_judged_against_the_baseline_of_now() -> None:
    gauge = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(gauge, result_of(4))
    assert points_of(gauge) == {4: four}
    gauge.set_baseline(given(40.0))
    read(gauge)
    assert points_of(gauge) == {4: pytest.approx(four / 2)}
    assert all(p.measured for p in gauge.curve().measured)
    gauge.set_baseline(None)
    read(gauge)
    assert points_of(gauge) == {}
