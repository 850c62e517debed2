"""Observed traffic -> what the dashboard reads: the bet, the history and the speedup curve.

Kept over restarts, so that history stays. Estimates are computed again only when something arrived, so that a
quiet session costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.curves import reading_of
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.passes import RequestPasses
from spectui.core.bet.segment import DraftTiming, Segment, drafting_since
from spectui.core.profile import TuningProfile
from spectui.core.views.series import BoundedSeries
from spectui.core.views.snapshot import CurveView, HistoryMark, HistoryView
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.measuring.recorder import summary_of
from spectui.lab.measuring.traffic import RateMeter, RequestResult, Traffic
from spectui.lab.session.measured_lengths import MeasuredLengths
from spectui.store.records import RunSummary

_SAMPLE_SECONDS: Final = 1.0
_OUTPUT_CHARACTERS: Final = 4000
_MARKS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReading:
    """LiveReadings at one moment."""

    profile: TuningProfile
    """Settings of the segment that is read."""
    bet: BetReading
    history: HistoryView
    """Speed over the session; the same object while nothing was added."""
    curve: CurveView
    """Speedup by draft length; empty where it was not asked for."""
    output: str
    """The end of what the model wrote; untrusted."""
    drafting_known: bool
    """Whether the draft length is known, from the settings or from the drafts."""
    drafts_vary: bool
    """Whether a server whose settings are not known was seen to cut its drafts."""


class LiveReadings:
    """Implements the traffic's observer; one per session.

    on_longer_draft: told the longest draft seen, while the server's draft length is not known.
    on_counted: told when a counted request entered the segment.
    """

    def __init__(
        self,
        profile: TuningProfile,
        *,
        on_longer_draft: Callable[[int], None],
        on_counted: Callable[[], None],
    ) -> None:
        self.segment = Segment(profile)
        self.traffic: Traffic | None = None
        self.baseline: Baseline | None = None
        self.probed = ProbeResult()
        """V(n) of the running server, where it was probed without a baseline."""
        self.warming_up = False
        self.length_known = True
        """Whether the server's settings tell its draft length; else it is learnt from the longest draft."""
        self._on_longer_draft = on_longer_draft
        self._on_counted = on_counted
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
        self._lengths = MeasuredLengths()
        self._curve_requests = -1

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
            self._on_counted()
        self._output = (self._output + "\n\n")[-_OUTPUT_CHARACTERS:]
        self._dirty = True

    def _learn_length(self, result: RequestResult) -> None:
        """See the draft length of a server whose settings are not known, and whether it varies."""
        if self.length_known:
            return
        longest = max([self._longest, *(p.drafted for p in result.passes.passes if p.apart)])
        if longest > self._longest:
            self._lengths.forget(self.segment.profile, self._longest)
            self._longest = longest
            self._on_longer_draft(longest)
        if self.segment.fixed_length and result.passes.cut_amid(longest):
            now = self.segment
            self._segment_anew(Segment(now.profile, fixed_length=False, rereads=now.rereads))

    def _segment_anew(self, segment: Segment) -> None:
        self.segment = segment
        self._curve_requests = -1
        self._dirty = True

    def read(self, *, t: float, now: float, drafting: DraftTiming | None, curve: bool = True) -> LiveReading:
        """This moment. t: seconds of the session; now: the traffic's clock; curve: whether one is wanted."""
        live = self._meter.rate(now)
        if live is not None and t - self._last_sample >= _SAMPLE_SECONDS:
            self._series.add(t, live)
            self._last_sample = t
            self._history = replace(self._history, points=self._series.snapshot())
        if self._dirty:
            self._dirty = False
            self._bet = self._read(now, drafting, self.traffic.in_flight() if self.traffic else ())
        if self._bet.live_tokens_per_second != live:
            self._bet = replace(self._bet, live_tokens_per_second=live)
        known = self.length_known or self._longest > 0
        if curve and self.segment.requests != self._curve_requests:
            self._curve_requests = self.segment.requests
            self._lengths.draw(
                self.segment, self._bet, self.baseline, self.verification, drafting_known=known
            )
        return LiveReading(
            profile=self.segment.profile,
            bet=self._bet,
            history=self._history,
            curve=self._lengths.curve if curve else CurveView(),
            output=self._output,
            drafting_known=known,
            drafts_vary=not (self.length_known or self.segment.fixed_length),
        )

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
        """V(n): from the baseline's own server where it was probed there, else from the running server."""
        return self.baseline.v if self.baseline and self.baseline.v else self.probed.v

    def set_probed(self, probed: ProbeResult) -> None:
        """Take V(n) of the running server; an empty result where it is not known."""
        if probed != self.probed:
            self.probed = probed
            self._curve_requests = -1
            self._dirty = True
