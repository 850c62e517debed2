from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.bet.segment import DraftTiming
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.views.snapshot import CurveView, HistoryMark, HistoryPoint, HistoryView
from spectui.lab.measuring.traffic import BusyClock, RateMeter, RequestResult
from spectui.lab.session.live_readings import LiveReadings
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
    """Traffic as the readings sees it: what is in flight, and how long streams decoded."""

    warmup = 0

    def __init__(self, *flying: RequestPasses) -> None:
        self.flying = flying
        self.busy = BusyClock()

    def in_flight(self) -> tuple[RequestPasses, ...]:
        return self.flying


def begun(
    profile: TuningProfile = K4,
    *,
    flow: Flow | None = None,
    plain: Baseline | None = None,
    learn: Callable[[int], None] = lambda _length: None,
) -> LiveReadings:
    readings = LiveReadings(profile, on_longer_draft=learn, on_counted=lambda: None)
    readings.begin(profile, None, None)
    if flow is not None:
        readings.go_on(flow)  # type: ignore[arg-type]  # as much of Traffic as is read
    if plain is not None:
        readings.set_baseline(plain)
    return readings


def read(readings: LiveReadings, t: float = 0.0, drafting: DraftTiming | None = None) -> BetReading:
    return readings.read(t=t, now=100.0 + t, drafting=drafting).bet


def curve(readings: LiveReadings) -> CurveView:
    return readings.read(t=0.0, now=100.0, drafting=None).curve


def history(readings: LiveReadings) -> HistoryView:
    return readings.read(t=0.0, now=100.0, drafting=None).history


def output(readings: LiveReadings) -> str:
    return readings.read(t=0.0, now=100.0, drafting=None).output


def test_the_live_reading_becomes_unknown_when_nothing_comes_any_more() -> None:
    readings = begun(flow=Flow())
    for i in range(11):
        readings.tokens_arrived(2, 100.0 + i * 0.5, "x")
    assert read(readings, 5.0).live_tokens_per_second == pytest.approx(20 / 5)
    assert read(readings, 8.0).live_tokens_per_second == pytest.approx(20 / 5)
    assert read(readings, 30.0).live_tokens_per_second is None


def test_the_live_reading_becomes_unknown_at_once_when_traffic_ends() -> None:
    readings = begun(flow=Flow())
    readings.request_ended(result_of())
    for i in range(6):
        readings.tokens_arrived(2, 100.0 + i, "x")
    assert read(readings, 5.0).live_tokens_per_second is not None
    readings.pause(106.0)
    quiet = read(readings, 5.0)
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
    readings = begun(flow=Flow())
    readings.request_ended(result_of())
    bet = read(readings)
    assert read(readings, 1.0) is bet
    assert history(readings) is history(readings)
    assert curve(readings) is curve(readings)
    readings.request_ended(result_of(seed=2))
    assert read(readings, 2.0) is not bet


def test_warm_up_requests_are_not_counted() -> None:
    readings = begun(flow=Flow())
    readings.request_ended(result_of(counted=False))
    assert read(readings).passes == 0
    readings.warmed_up()
    readings.request_ended(result_of(passes=7))
    assert (read(readings).requests, read(readings).passes) == (1, 7)


def test_requests_in_flight_are_read_along() -> None:
    flow = Flow(result_of(passes=5).passes)
    readings = begun(flow=flow)
    assert (read(readings).requests, read(readings).passes) == (0, 5)


def test_a_pause_keeps_the_numbers_and_its_length_changes_no_speed() -> None:
    profile = K4.with_traffic(concurrency=2)
    flow = Flow()
    readings = begun(profile, flow=flow)
    flow.busy.change(+1, 100.0)
    flow.busy.change(+1, 100.0)
    readings.request_ended(result_of(passes=40))
    flow.busy.change(-1, 102.0)
    flow.busy.change(-1, 102.0)
    before = read(readings, 2.0).tokens_per_second
    readings.pause(102.0)
    assert read(readings, 500.0).tokens_per_second == before
    readings.go_on(flow)  # type: ignore[arg-type]
    readings.request_ended(result_of(passes=40))
    again = read(readings, 500.0)
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
    readings = begun(flow=Flow(), plain=given(20.0))
    readings.mark(1.0, "k=4")
    readings.request_ended(result_of())
    for i in range(6):
        readings.tokens_arrived(2, 100.0 + i, "x")
    assert read(readings, 5.0, DraftTiming(draft_ms=100.0, drafted=10)).draft_ms == 10.0
    points = history(readings).points
    assert points == (HistoryPoint(t=5.0, tokens_per_second=2.0),)
    readings.begin(K2, None, DraftTiming(draft_ms=100.0, drafted=10))
    readings.mark(6.0, "k=2")
    fresh = read(readings, 6.0, DraftTiming(draft_ms=130.0, drafted=12))
    assert (fresh.requests, fresh.passes, fresh.survival) == (0, 0, ())
    assert fresh.draft_ms == 15.0
    kept = history(readings)
    assert kept.points[:1] == points
    assert kept.marks == (HistoryMark(t=1.0, label="k=4"), HistoryMark(t=6.0, label="k=2"))
    assert kept.baseline == 20.0


def test_history_is_sampled_once_a_second_while_something_streams() -> None:
    readings = begun(flow=Flow())
    for i in range(100):
        readings.tokens_arrived(3, 100.0 + i / 10, "")
        read(readings, i / 10)
    assert [p.t for p in history(readings).points] == pytest.approx([float(i) for i in range(1, 10)])
    held = history(readings)
    read(readings, 60.0)
    assert history(readings) is held


def test_marks_and_output_are_bounded() -> None:
    readings = begun()
    for i in range(500):
        readings.mark(float(i), f"k={i}")
    assert [m.label for m in history(readings).marks] == [f"k={i}" for i in range(400, 500)]
    for i in range(500):
        readings.tokens_arrived(1, 100.0 + i, f"{i:03} word of {i} ")
    assert len(output(readings)) == 4000
    assert output(readings).endswith("word of 499 ")
    readings.tokens_arrived(1, 700.0, "y" * 50_000)
    assert output(readings) == "y" * 4000
    readings.request_ended(result_of())
    assert output(readings) == "y" * 3998 + "\n\n"


def test_the_output_of_every_request_is_apart() -> None:
    readings = begun()
    readings.tokens_arrived(1, 100.0, "one")
    readings.request_ended(result_of())
    readings.tokens_arrived(1, 101.0, "two")
    assert output(readings) == "one\n\ntwo"


def test_the_plain_speed_decides_the_speedup_and_can_be_withdrawn() -> None:
    readings = begun(flow=Flow())
    readings.request_ended(result_of())
    assert read(readings).speedup_actual is None
    readings.set_baseline(given(20.0))
    bet = read(readings)
    assert bet.tokens_per_second is not None
    assert bet.speedup_actual is not None
    assert bet.speedup_actual.value == pytest.approx(bet.tokens_per_second / 20)
    assert (bet.baseline_source, history(readings).baseline) == ("given", 20.0)
    readings.set_baseline(None)
    assert read(readings).speedup_actual is None
    assert history(readings).baseline is None


def test_a_probed_verification_gives_a_prediction_and_the_loss() -> None:
    readings = begun(flow=Flow(), plain=Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}))
    readings.request_ended(result_of())
    bet = read(readings, drafting=DraftTiming(draft_ms=1000.0, drafted=200))
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
    readings = begun(
        flow=Flow(), plain=Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}, {}, replays)
    )
    assert curve(readings).lookup is not None
    readings.set_baseline(given(20.0))
    assert curve(readings).lookup is None


def test_a_lookup_that_ran_in_this_session_is_not_predicted_again() -> None:
    replays = (Replay(2, 16, 1000, 200, 300, 1000, 0.05), Replay(2, 8, 1000, 300, 350, 500, 0.05))
    plain = Baseline(given(20.0).speed, "measured", {2: 1.1, 5: 1.6}, {}, replays)
    lookups = K4.with_speculation(mode="ngram-simple", ngram_lookup=2, ngram_length=16)
    readings = begun(flow=Flow(), plain=plain)
    first = curve(readings).lookup
    assert first is not None
    assert first.length == 16
    readings.begin(lookups, None, None)
    readings.set_baseline(plain)
    readings.request_ended(result_of())
    read(readings)
    curve(readings)
    readings.begin(K4, None, None)
    readings.set_baseline(plain)
    read(readings)
    again = curve(readings).lookup
    assert again is not None
    assert again.length == 8
    readings.begin(K4.with_sampling(temperature=1.0), None, None)
    readings.set_baseline(plain)
    read(readings)
    assert curve(readings).lookup == first


def test_the_curve_is_computed_again_only_when_a_request_ended() -> None:
    readings = begun(flow=Flow(), plain=given(20.0))
    readings.request_ended(result_of())
    read(readings)
    first = curve(readings)
    assert first.predicted
    assert first.best is not None
    assert first.best.speedup == max(p.speedup for p in first.predicted)
    for i in range(5):
        readings.tokens_arrived(1, 100.0 + i, "x")
        read(readings, float(i))
        assert curve(readings) is first
    readings.request_ended(result_of(seed=2))
    read(readings, 6.0)
    assert curve(readings).revision == first.revision + 1
    readings.set_baseline(given(30.0))
    read(readings, 7.0)
    assert curve(readings).revision == first.revision + 2


def speedup_of(readings: LiveReadings, *results: RequestResult) -> float:
    for result in results:
        readings.request_ended(result)
    actual = read(readings).speedup_actual
    assert actual is not None
    return float(actual.value)


def points_of(readings: LiveReadings) -> dict[int, float]:
    return {p.draft_length: p.speedup for p in curve(readings).measured}


def test_every_draft_length_measured_keeps_its_point() -> None:
    readings = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(readings, result_of(4))
    assert points_of(readings) == {4: four}
    assert curve(readings).now == 4
    readings.begin(K2, None, None)
    read(readings)
    assert points_of(readings) == {4: four}
    two = speedup_of(readings, result_of(2))
    assert points_of(readings) == {2: two, 4: four}
    assert curve(readings).now == 2
    readings.begin(K4, None, None)
    better = speedup_of(readings, result_of(4, ms=30.0))
    assert better > four
    assert points_of(readings) == {2: two, 4: better}


def test_few_passes_make_no_point() -> None:
    readings = begun(flow=Flow(), plain=given(20.0))
    speedup_of(readings, result_of(passes=39))
    assert points_of(readings) == {}
    two = speedup_of(readings, result_of(passes=1))
    assert points_of(readings) == {4: two}


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
    readings = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(readings, result_of())
    assert points_of(readings) == {4: four}
    readings.begin(other, None, None)
    read(readings)
    assert points_of(readings) == {}
    readings.begin(K4, None, None)
    read(readings)
    assert points_of(readings) == {4: four}


def test_without_speculation_the_chart_stays_and_nothing_is_marked_as_now() -> None:
    readings = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(readings, result_of())
    curve(readings)
    readings.begin(K4.without_speculation(), None, None)
    read(readings)
    assert points_of(readings) == {4: four}
    assert curve(readings).now is None


def learning() -> tuple[LiveReadings, list[int]]:
    """Readings of an attached server whose draft length only its answers show."""
    told: list[int] = []

    def learn(draft_length: int) -> None:
        told.append(draft_length)
        readings.know_length(K4.with_speculation(draft_length=draft_length))

    readings = begun(flow=Flow(), plain=given(20.0), learn=learn)
    readings.length_known = False
    return readings, told


def test_the_draft_length_is_learnt_from_the_longest_draft() -> None:
    readings, told = learning()
    readings.request_ended(result_of(5, counted=False))
    assert told == [5]
    readings.request_ended(result_of(5))
    readings.request_ended(result_of(3))
    assert told == [5]
    readings.request_ended(ended(*[TargetPass(7, 7, 8, 50.0)] * 4))
    assert told == [5, 7]
    bet = read(readings)
    assert [row.survival for row in bet.survival] == [1.0] * 7
    assert (bet.requests, bet.passes) == (1, 4)


def test_groups_of_passes_teach_no_length() -> None:
    readings, told = learning()
    readings.request_ended(ended(TargetPass(9, 4, 6, 50.0, merged=2), TargetPass(5, 5, 6, 50.0)))
    assert told == [5]


def test_a_length_learnt_begins_a_curve_of_its_own() -> None:
    readings, _ = learning()
    readings.request_ended(result_of(4))
    read(readings)
    assert curve(readings).now == 4
    readings.request_ended(result_of(6))
    read(readings)
    assert curve(readings).now == 6


def test_a_length_that_was_none_leaves_no_point() -> None:
    readings, _ = learning()
    readings.request_ended(result_of(6))
    read(readings)
    assert set(points_of(readings)) == {6}
    readings.request_ended(result_of(8))
    read(readings)
    assert set(points_of(readings)) == {8}


def test_no_point_is_drawn_at_a_length_that_nobody_knows() -> None:
    readings, told = learning()
    readings.request_ended(ended(*[TargetPass(0, 0, 1, 50.0)] * 50))
    read(readings)
    assert told == []
    assert points_of(readings) == {}


def test_drafts_cut_in_the_middle_of_an_answer_have_no_fixed_length() -> None:
    readings, told = learning()
    readings.request_ended(result_of(4))
    read(readings)
    fixed = [readings.segment.fixed_length]
    assert curve(readings).predicted
    cut = [TargetPass(4, 4, 5, 50.0), TargetPass(2, 1, 2, 50.0), TargetPass(4, 0, 1, 50.0)] * 20
    readings.request_ended(ended(*cut))
    bet = read(readings)
    assert told == [4]
    assert [*fixed, readings.segment.fixed_length] == [True, False]
    assert (bet.fixed_length, bet.requests, bet.passes) == (False, 1, 60)
    assert curve(readings).predicted == ()
    readings.request_ended(result_of(4))
    assert read(readings).requests == 2


def test_drafts_cut_by_the_end_alone_keep_a_fixed_length() -> None:
    readings, _ = learning()
    readings.request_ended(
        ended(TargetPass(4, 4, 5, 50.0), TargetPass(4, 4, 5, 50.0), TargetPass(3, 1, 2, 50.0))
    )
    assert readings.segment.fixed_length


def test_known_settings_are_not_learnt_from_answers() -> None:
    readings = begun(flow=Flow())
    readings.request_ended(ended(*[TargetPass(4, 1, 2, 50.0), TargetPass(9, 1, 2, 50.0)] * 9))
    assert readings.segment.fixed_length
    assert readings.segment.profile is K4


def test_waiting_for_a_prompt_does_not_slow_the_live_reading() -> None:
    readings = begun(flow=Flow())
    for i in range(5):
        readings.tokens_arrived(2, 100.0 + i * 0.5, "x")
    readings.decoding_begins(109.0)
    for i in range(5):
        readings.tokens_arrived(2, 109.0 + i * 0.5, "x")
    assert read(readings, 11.0).live_tokens_per_second == pytest.approx(18 / 4)


def test_points_are_judged_against_the_baseline_of_now() -> None:
    readings = begun(flow=Flow(), plain=given(20.0))
    four = speedup_of(readings, result_of(4))
    assert points_of(readings) == {4: four}
    readings.set_baseline(given(40.0))
    read(readings)
    assert points_of(readings) == {4: pytest.approx(four / 2)}
    assert all(p.measured for p in curve(readings).measured)
    readings.set_baseline(None)
    read(readings)
    assert points_of(readings) == {}
