"""Observed traffic -> what the dashboard reads: the bet, the history and the speedup curve.

Outlives restarts, so that history stays and every draft length measured in the session keeps its point. Estimates
are computed again only when something arrived, so that a quiet session costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from spectui.core.bet import speedup
from spectui.core.bet.baseline import Baseline
from spectui.core.bet.curves import curve_of, predicted_lookup, reading_of, textbook_curve
from spectui.core.bet.estimates import BetReading, CurvePoint, Estimate, LookupPrediction
from spectui.core.bet.passes import RequestPasses
from spectui.core.bet.segment import (
    DraftTiming,
    Segment,
    SpeedEstimate,
    drafting_since,
    longest_draft,
    speedup_over,
)
from spectui.core.profile import NGRAM_SIMPLE, OFF, TuningProfile
from spectui.core.views.series import BoundedSeries
from spectui.core.views.snapshot import CurveView, HistoryMark, HistoryView
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.measuring.recorder import summary_of
from spectui.lab.measuring.traffic import RateMeter, RequestResult, Traffic
from spectui.store.records import RunSummary

_SAMPLE_SECONDS: Final = 1.0
_OUTPUT_CHARACTERS: Final = 4000
_MARKS: Final = 100
_MIN_POINT_PASSES: Final = 40
"""Passes from which a draft length gets its point in the chart."""


class Gauge:
    """Implements the traffic's observer; one per session."""

    def __init__(self, profile: TuningProfile) -> None:
        self.segment = Segment(profile)
        self.traffic: Traffic | None = None
        self.baseline: Baseline | None = None
        self.probed = ProbeResult()
        """V(n) of the running server, where it was probed without a baseline."""
        self.warming_up = False
        self.on_longer_draft: Callable[[int], None] | None = None
        """Told the longest draft seen, while the server's draft length is not known."""
        self.on_counted: Callable[[], None] = lambda: None
        """Told when a counted request entered the segment."""
        self._longest = 0
        self._drafting_before: DraftTiming | None = None
        self._drafting: DraftTiming | None = None
        self._meter = RateMeter()
        self._series = BoundedSeries()
        self._marks: list[HistoryMark] = []
        self._last_sample = 0.0
        self._output = ""
        self._dirty = True
        self._bet = BetReading()
        self._history = HistoryView()
        self._curve = CurveView()
        self._curve_requests = -1
        self._random = Random(1)  # noqa: S311  a reproducible bootstrap, no secret
        self._measured: dict[tuple[object, ...], dict[int, SpeedEstimate]] = {}
        self._lookups: dict[tuple[object, ...], dict[tuple[int, int], SpeedEstimate]] = {}

    def begin(
        self,
        profile: TuningProfile,
        traffic: Traffic | None,
        drafting: DraftTiming | None,
        *,
        rereads: bool = True,
    ) -> None:
        """Start the next segment; `drafting` are the server's totals at this moment, rereads as in Segment."""
        self.segment = Segment(profile, rereads=rereads)
        self.traffic = traffic
        self.warming_up = traffic is not None and profile.traffic.warmup > 0
        self._drafting_before = self._drafting = drafting
        self._curve_requests = -1
        self._dirty = True

    def set_baseline(self, baseline: Baseline | None) -> None:
        """Judge against this plain speed from now on; None where none is known."""
        self.baseline = baseline
        self._history = replace(self._history, baseline=baseline.speed.aggregate.value if baseline else None)
        self._curve_requests = -1
        self._dirty = True

    def mark(self, t: float, label: str) -> None:
        """Mark a change of settings in the history."""
        self._marks.append(HistoryMark(t=t, label=label))
        del self._marks[:-_MARKS]
        self._history = replace(self._history, marks=tuple(self._marks))

    def know_length(self, profile: TuningProfile) -> None:
        """Begin the segment anew with settings that now name the draft length."""
        self._segment_anew(Segment(profile, rereads=self.segment.rereads))

    def new_server(self) -> None:
        """Another server answers from now on: what the drafts of the last one showed is forgotten."""
        self._longest = 0

    def pause(self, now: float) -> None:
        """No traffic for now; what was measured stays. now: the traffic's clock."""
        self._account(now)
        self.traffic = None
        self.warming_up = False
        self.quiet()

    def go_on(self, traffic: Traffic) -> None:
        """Traffic flows again in the same segment."""
        self.traffic = traffic
        self.warming_up = traffic.warmup > 0
        self._dirty = True

    def quiet(self) -> None:
        """No traffic flows any more: the live reading becomes unknown."""
        self._meter.clear()
        self._dirty = True

    def warmed_up(self) -> None:
        """What follows is counted."""
        self.warming_up = False
        self._dirty = True

    def decoding_begins(self, at: float) -> None:
        """The live reading leaves the wait for a prompt out, as the segment's speed does."""
        self._meter.resume(at)

    def tokens_arrived(self, count: int, at: float, text: str) -> None:
        """Feed the live reading and the window on the model's output."""
        self._meter.add(count, at)
        if text:
            self._output = (self._output + text)[-_OUTPUT_CHARACTERS:]
        self._dirty = True

    def request_ended(self, result: RequestResult) -> None:
        """A counted request enters the segment."""
        self._learn_length(result)
        if result.counted:
            self.segment.add(result.passes)
            self.segment.add_busy(stream_seconds=result.stream_seconds, busy_seconds=result.busy_seconds)
            self.on_counted()
        self._output = (self._output + "\n\n")[-_OUTPUT_CHARACTERS:]
        self._dirty = True

    def _learn_length(self, result: RequestResult) -> None:
        """See the draft length of a server whose settings are not known, and whether it varies."""
        if self.on_longer_draft is None:
            return
        longest = max([self._longest, *(p.drafted for p in result.passes.passes if p.apart)])
        if longest > self._longest:
            # What ran until now did not run at the length that its point stands for.
            self._measured.get(_comparable(self.segment.profile), {}).pop(self._longest, None)
            self._longest = longest
            self.on_longer_draft(longest)
        if self.segment.fixed_length and result.passes.cut_amid(longest):
            now = self.segment
            self._segment_anew(Segment(now.profile, fixed_length=False, rereads=now.rereads))

    def _segment_anew(self, segment: Segment) -> None:
        self.segment = segment
        self._curve_requests = -1
        self._dirty = True

    @property
    def drafting_known(self) -> bool:
        """Whether the draft length is known, from the settings or from the drafts."""
        return self.on_longer_draft is None or self._longest > 0

    @property
    def drafts_vary(self) -> bool:
        """Whether a server whose settings are not known was seen to cut its drafts."""
        return self.on_longer_draft is not None and not self.segment.fixed_length

    @property
    def output(self) -> str:
        """The end of what the model wrote; untrusted."""
        return self._output

    def read(self, *, t: float, now: float, drafting: DraftTiming | None) -> BetReading:
        """The bet at this moment. t: seconds of the session; now: the traffic's clock."""
        live = self._meter.rate(now)
        if live is not None and t - self._last_sample >= _SAMPLE_SECONDS:
            self._series.add(t, live)
            self._last_sample = t
            self._history = replace(self._history, points=self._series.snapshot())
        if self._bet.live_tokens_per_second != live:
            self._bet = replace(self._bet, live_tokens_per_second=live)
        if not self._dirty:
            return self._bet
        self._dirty = False
        bet = self._read(now, drafting, self.traffic.in_flight() if self.traffic else ())
        self._bet = replace(bet, live_tokens_per_second=live)
        return self._bet

    def summary(self, *, now: float, drafting: DraftTiming | None) -> RunSummary:
        """What the segment yielded so far, without what is in flight, as it is kept."""
        return summary_of(self._read(now, drafting, ()), self.segment.speed())

    def _read(
        self, now: float, drafting: DraftTiming | None, in_flight: Sequence[RequestPasses]
    ) -> BetReading:
        self._account(now)
        if drafting is not None:
            self._drafting = drafting
        return reading_of(
            self.segment,
            self.baseline,
            v=self.probed.v,
            v_error=self.probed.error,
            in_flight=in_flight,
            drafting=drafting_since(self._drafting_before, self._drafting),
        )

    def _account(self, now: float) -> None:
        """Take the decode time so far, so that the speed of several streams can be read at any moment."""
        if self.traffic is not None:
            stream_seconds, busy_seconds = self.traffic.busy.take(now)
            self.segment.add_busy(stream_seconds=stream_seconds, busy_seconds=busy_seconds)

    @property
    def verification(self) -> Mapping[int, float]:
        """V(n): from the baseline's own life where it was probed there, else from the running server."""
        return self.baseline.v if self.baseline and self.baseline.v else self.probed.v

    def set_probed(self, probed: ProbeResult) -> None:
        """Take V(n) of the running server; an empty result where it is not known."""
        if probed != self.probed:
            self.probed = probed
            self._curve_requests = -1
            self._dirty = True

    def history(self) -> HistoryView:
        """Speed over the session; the same object while nothing was added."""
        return self._history

    def curve(self) -> CurveView:
        """Speedup by draft length, computed again when a request ended."""
        if self.segment.requests != self._curve_requests:
            self._curve_requests = self.segment.requests
            self._curve = self._new_curve()
        return self._curve

    def _new_curve(self) -> CurveView:
        bet, profile = self._bet, self.segment.profile
        speculation = profile.speculation
        speed = self.segment.speed()
        known = speed is not None and bet.passes >= _MIN_POINT_PASSES and self.drafting_known
        lookup = self._lookup(bet, profile, speed if known else None)
        if speculation.mode == OFF:
            return replace(self._curve, revision=self._curve.revision + 1, now=None, best=None, lookup=lookup)
        speeds = self._measured.setdefault(_comparable(profile), {})
        if speed is not None and known:
            speeds[longest_draft(profile)] = speed
        plain = self.baseline.speed if self.baseline else None
        points = {k: _point(k, speedup_over(s, plain)) for k, s in sorted(speeds.items())} if plain else {}
        predicted = curve_of(self.segment, bet, self.verification, self._random)
        return CurveView(
            revision=self._curve.revision + 1,
            textbook=textbook_curve(bet),
            predicted=predicted,
            measured=tuple(points.values()),
            now=longest_draft(profile),
            best=speedup.best_point([points.get(p.draft_length, p) for p in predicted]),
            lookup=lookup,
        )

    def _lookup(
        self, bet: BetReading, profile: TuningProfile, speed: SpeedEstimate | None
    ) -> LookupPrediction | None:
        """The lookup that is predicted fastest; speed: of the running settings, once there is enough of it."""
        ran, plain = self._lookups.setdefault(_conditions(profile), {}), self.baseline
        if speed is not None and profile.speculation.mode == NGRAM_SIMPLE:
            ran[profile.speculation.lookup_sizes] = speed
        if plain is None:
            return None
        speedups = {sizes: speedup_over(each, plain.speed).value for sizes, each in ran.items()}
        return predicted_lookup(bet, profile, plain, speedups)


def _point(draft_length: int, actual: Estimate) -> CurvePoint:
    """A length measured in this session, against the baseline of now: it beats any prediction."""
    return CurvePoint(
        draft_length=draft_length, speedup=actual.value, low=actual.low, high=actual.high, measured=True
    )


def _conditions(profile: TuningProfile) -> tuple[object, ...]:
    """What the speed of one speculation depends on besides."""
    traffic = profile.traffic
    return (
        profile.server,
        profile.sampling.temperature,
        traffic.workload,
        traffic.prompts,
        traffic.concurrency,
        traffic.depth,
    )


def _comparable(profile: TuningProfile) -> tuple[object, ...]:
    """Segments whose points may share one chart: all but the draft length is the same."""
    speculation = profile.speculation
    return (
        *_conditions(profile),
        speculation.mode,
        speculation.draft_model,
        speculation.p_min,
        speculation.draft_min,
        speculation.ngram_lookup,
    )
