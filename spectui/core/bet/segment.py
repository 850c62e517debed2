"""One segment: a stretch with the same settings, temperature, workload and concurrency, and its estimates.

Requests enter as they end; those in flight are added for a live reading. Old requests are joined in pairs, so
that memory and the cost of an estimate stay bounded over days of traffic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median
from typing import Final

from spectui.core.bet import acceptance, speedup
from spectui.core.bet.acceptance import RequestSums
from spectui.core.bet.agreement import Agreements, agreement
from spectui.core.bet.estimates import BetReading, Estimate
from spectui.core.bet.intervals import Ratio, RatioSums, ratio
from spectui.core.bet.passes import RequestPasses, TargetPass, in_cycles, is_two_pass
from spectui.core.profile import DRAFT_MODEL, OFF, TuningProfile, is_ngram

_MAX_CLUSTERS: Final = 256
_MAX_TIMES_TO_FIRST: Final = 500
_MAX_STRINGS: Final = 24
"""Latest answers whose agreements are walked; more would take longer and say little more."""
_ANEW: Final = 1.1
"""Growth of the number of answers from which the walk is made anew: it takes a tenth of a second."""
_STALLED: Final = 10.0
"""A pass that takes so many times the request's median per row was held up by something else than the bet."""
_STALLS_PER_PASS: Final = 0.005
"""Up to this share stalls are accidents and left out; more of them are what this machine does."""
_MIN_REPLICATED: Final = 3
"""Requests from which drawing them again says something about their spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedEstimate:
    """Decode speed with what its interval needs. per_stream: tokens per second of one stream, first excluded."""

    per_stream: Estimate
    streams: float
    """Mean number of streams that decoded at once, while any did."""
    relative_error: float | None
    """Standard error of the speed over the speed."""

    @property
    def aggregate(self) -> Estimate:
        """Tokens per second over all streams."""
        one, n = self.per_stream, self.streams
        return Estimate(
            value=one.value * n,
            low=None if one.low is None else one.low * n,
            high=None if one.high is None else one.high * n,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTiming:
    """Totals of the statistics line since the segment began (its `dur` g, `#gen tokens`)."""

    draft_ms: float
    drafted: int


def drafting_since(before: DraftTiming | None, now: DraftTiming | None) -> DraftTiming | None:
    """What was drafted since `before`; a server that started anew counts from 0 again."""
    if now is None:
        return None
    if before is None or now.drafted < before.drafted:
        return now
    return DraftTiming(draft_ms=now.draft_ms - before.draft_ms, drafted=now.drafted - before.drafted)


class Segment:
    """Collects the requests of one segment and reads the bet off them."""

    def __init__(
        self, profile: TuningProfile, *, fixed_length: bool | None = None, rereads: bool = True
    ) -> None:
        self.profile = profile
        self.rereads = rereads
        """Whether the server's draft reads the last accepted token again (since b9109)."""
        self.fixed_length = profile.speculation.fixed_length if fixed_length is None else fixed_length
        """Whether only a request's end cuts drafts; seen in the drafts where the settings are not known."""
        self._clusters: list[RequestSums] = []
        self._speed: list[RatioSums] = []
        self._held: list[RatioSums] = []
        """The stalled passes of each cluster, apart from its speed."""
        self.two_pass = False
        """Whether the server makes two target passes per cycle; passes are then cycles here."""
        self._first_token_ms: list[float] = []
        self._strings: deque[bytes] = deque(maxlen=_MAX_STRINGS)
        self._agreements: tuple[int, Agreements] | None = None
        """With the number of requests that had ended when they were drawn."""
        self._requests = 0
        self._committed = 0
        self._stream_seconds = 0.0
        self._busy_seconds = 0.0

    @property
    def requests(self) -> int:
        """Requests that ended in this segment."""
        return self._requests

    def add(self, request: RequestPasses) -> None:
        """Take a request that ended, or one that was cancelled with the passes it had."""
        if not request.passes:
            return
        self.two_pass = self.two_pass or is_two_pass(request.passes)
        request = in_cycles(request)
        if request.completed and self._agreement_shows:
            self._strings.append(agreement(request))
        self._clusters.append(self._sums(request))
        sums, held = self._speed_sums(request)
        self._speed.append(sums)
        self._held.append(held)
        if request.completed:
            self._requests += 1
            self._committed += request.committed
        if request.ttft_ms is not None:
            self._first_token_ms.append(request.ttft_ms)
            del self._first_token_ms[:-_MAX_TIMES_TO_FIRST]
        if len(self._clusters) > _MAX_CLUSTERS:
            self._clusters = _joined_pairs(self._clusters)
            self._speed, self._held = _paired(self._speed), _paired(self._held)

    def add_busy(self, *, stream_seconds: float, busy_seconds: float) -> None:
        """Account decode time: summed over streams, and as the time in which at least one decoded."""
        self._stream_seconds += stream_seconds
        self._busy_seconds += busy_seconds

    def speed(self, in_flight: Sequence[RequestPasses] = ()) -> SpeedEstimate | None:
        """Decode speed: committed tokens over decode time, recomputed from counts."""
        live = [self._speed_sums(r) for r in in_flight if r.passes]
        sums, held = self._speed + [s for s, _ in live], self._held + [h for _, h in live]
        if not self._accidental(sums, held):
            sums = [s.joined(h) for s, h in zip(sums, held, strict=True)]
        estimate = ratio(sums)
        if estimate is None or estimate.value <= 0:
            return None
        streams = self._stream_seconds / self._busy_seconds if self._busy_seconds > 0 else 1.0
        low, high = estimate.interval() or (None, None)
        return SpeedEstimate(
            per_stream=Estimate(value=estimate.value, low=None if low is None else max(0.0, low), high=high),
            streams=max(1.0, streams) if self.profile.traffic.concurrency > 1 else 1.0,
            relative_error=_relative_error(estimate),
        )

    def bet(
        self,
        *,
        in_flight: Sequence[RequestPasses] = (),
        baseline: SpeedEstimate | None = None,
        baseline_source: str = "",
        drafting: DraftTiming | None = None,
    ) -> BetReading:
        """Everything the segment says about the bet, requests in flight included."""
        in_flight = [in_cycles(r) for r in in_flight]
        clusters = self._clusters + [self._sums(r) for r in in_flight if r.passes]
        drafted = sum(c.drafted for c in clusters)
        accepted = sum(c.accepted for c in clusters)
        passes = sum(c.passes for c in clusters)
        tokens = acceptance.tokens_per_pass(clusters)
        speed = self.speed(in_flight)
        actual = speedup_over(speed, baseline) if speed and baseline else None
        draft_ms, c = self._draft_cost(drafting, baseline, speed.streams if speed else 1.0)
        speculating = self.profile.speculation.mode != OFF
        view = BetReading(
            requests=self._requests,
            passes=passes,
            tokens=sum(c.committed for c in clusters),
            drafted=drafted,
            accepted=accepted,
            tokens_per_second=speed.aggregate.value if speed else None,
            time_to_first_token_ms=self._first_token(in_flight),
            alpha=acceptance.alpha_estimate(clusters) if drafted else None,
            acceptance_ratio=acceptance.acceptance_ratio(drafted, accepted),
            tokens_per_pass=tokens,
            drafted_per_pass=drafted / passes if passes else None,
            pass_ms=_pass_ms(speed, tokens),
            draft_ms=draft_ms,
            c=c,
            baseline=baseline.aggregate if baseline else None,
            baseline_source=baseline_source,
            fixed_length=self.fixed_length,
            two_pass=self.two_pass,
            tokens_per_request=self._committed / self._requests if self._requests else None,
            t1_ms=self._t1_ms(baseline),
            rereads=self.rereads,
            streams=speed.streams if speed else 1.0,
            stalled=self._left_out,
            speedup_actual=actual if speculating else None,
            survival=acceptance.survival(clusters) if drafted else (),
        )
        if not speculating or tokens is None:
            return view
        mean = drafted / passes if passes else 0.0
        drafts = self.profile.speculation.draft_length if self.fixed_length else mean
        return replace(
            view,
            pass_cost=tokens.value / actual.value if actual else None,
            speedup_textbook=None if c is None else speedup.textbook_speedup(tokens.value, drafts, c),
        )

    def _t1_ms(self, baseline: SpeedEstimate | None) -> float | None:
        """T1; a stated speed over several streams does not say what one step takes."""
        stated = baseline is not None and baseline.relative_error is None
        if baseline is None or (stated and self.profile.traffic.concurrency > 1):
            return None
        return 1000 / baseline.per_stream.value

    def _first_token(self, in_flight: Sequence[RequestPasses]) -> float | None:
        times = self._first_token_ms + [r.ttft_ms for r in in_flight if r.ttft_ms is not None]
        return median(times) if times else None

    def agreements(self, rng: Random) -> Agreements | None:
        """Where draft and target agreed in the latest answers; None where drafts do not show it.

        With p_min and n-gram drafts the end of a draft is no disagreement, a head on the target (MTP, EAGLE) agrees
        by the position in its draft, and a server that makes two passes a cycle hides every token of the first.
        """
        if not self._agreement_shows or not self._strings:
            return None
        if self._agreements is None or self._requests >= _ANEW * self._agreements[0]:
            self._agreements = self._requests, Agreements(tuple(self._strings), rng)
        return self._agreements[1]

    @property
    def _agreement_shows(self) -> bool:
        return self.fixed_length and not self.two_pass and self.profile.speculation.mode == DRAFT_MODEL

    def survival_replicates(self, count: int, rng: Random) -> tuple[tuple[float, ...], ...]:
        """Survival curves of as many requests drawn again with replacement (bootstrap by request)."""
        if len(self._clusters) < _MIN_REPLICATED:
            return ()
        drawn = (rng.choices(self._clusters, k=len(self._clusters)) for _ in range(count))
        return tuple(acceptance.survival_shares(clusters) for clusters in drawn)

    def _sums(self, request: RequestPasses) -> RequestSums:
        speculation = self.profile.speculation
        return acceptance.sums_of(
            request,
            fixed_length=self.fixed_length,
            positions=longest_draft(self.profile) if speculation.mode != OFF else 0,
        )

    def _draft_cost(
        self, drafting: DraftTiming | None, baseline: SpeedEstimate | None, streams: float
    ) -> tuple[float | None, float | None]:
        """Draft milliseconds per drafting step of all busy slots, and the same in plain steps.

        With p_min the steps that were turned down are paid as well, so that nothing divides into a price per
        token: unknown. B slots draft B tokens a step, together or one after the other: B times the price of one.
        """
        if drafting is None or drafting.drafted <= 0 or self.profile.speculation.p_min > 0:
            return None, None
        per_step = drafting.draft_ms / drafting.drafted * streams
        if self._t1_ms(baseline) is None or baseline is None:
            return per_step, None
        return per_step, per_step * baseline.per_stream.value / 1000

    @property
    def _left_out(self) -> int:
        """Stalled passes that the speed leaves out."""
        return sum(h.n for h in self._held) if self._accidental(self._speed, self._held) else 0

    @staticmethod
    def _accidental(sums: Sequence[RatioSums], held: Sequence[RatioSums]) -> bool:
        stalled = sum(h.n for h in held)
        return stalled <= max(1, _STALLS_PER_PASS * (stalled + sum(s.n for s in sums)))

    def _speed_sums(self, request: RequestPasses) -> tuple[RatioSums, RatioSums]:
        """Tokens and seconds of a request's passes, and of those that stalled.

        With several slots a pass waits for the prompts of others: that is no stall but the price of concurrency.
        """
        timed = [(step, step.ms) for step in request.passes if step.ms is not None]
        alone = self.profile.traffic.concurrency == 1
        usual = median(ms for _, ms in timed) if timed and alone else 0.0
        rows = median(_rows(step) for step, _ in timed) if timed else 1.0
        sums, held = RatioSums(), RatioSums()
        for step, ms in timed:
            # A longer draft costs more, at most in proportion to its rows.
            if 0 < _STALLED * usual * max(1.0, _rows(step) / rows) < ms:
                held = held.plus(step.committed, ms / 1000)
            else:
                sums = sums.plus(step.committed, ms / 1000)
        return sums, held


def draft_length_of(profile: TuningProfile) -> int | None:
    """k as the settings say it; of n-gram modes their own length, None where the server's default is left."""
    speculation = profile.speculation
    if speculation.mode == OFF:
        return None
    return speculation.ngram_length if is_ngram(speculation.mode) else speculation.draft_length


def longest_draft(profile: TuningProfile) -> int:
    """Positions that a draft of these settings can have; n-gram modes have their own length."""
    speculation = profile.speculation
    if is_ngram(speculation.mode):
        return min(64, speculation.ngram_length or 64)
    return speculation.draft_length


def _rows(step: TargetPass) -> int:
    """Tokens that the target evaluated in a step."""
    return step.drafted + step.merged


def _paired(sums: list[RatioSums]) -> list[RatioSums]:
    joined = [a.joined(b) for a, b in zip(sums[::2], sums[1::2], strict=False)]
    return joined + ([sums[-1]] if len(sums) % 2 else [])


def _joined_pairs(clusters: list[RequestSums]) -> list[RequestSums]:
    joined = [_join(a, b) for a, b in zip(clusters[::2], clusters[1::2], strict=False)]
    return joined + ([clusters[-1]] if len(clusters) % 2 else [])


def _join(a: RequestSums, b: RequestSums) -> RequestSums:
    return RequestSums(
        alpha=a.alpha.joined(b.alpha),
        tokens=a.tokens.joined(b.tokens),
        at_risk=tuple(x + y for x, y in zip(a.at_risk, b.at_risk, strict=True)),
        survived=tuple(x + y for x, y in zip(a.survived, b.survived, strict=True)),
        drafted=a.drafted + b.drafted,
        accepted=a.accepted + b.accepted,
        committed=a.committed + b.committed,
        passes=a.passes + b.passes,
    )


def _relative_error(estimate: Ratio) -> float | None:
    return None if estimate.standard_error is None else estimate.standard_error / estimate.value


def _pass_ms(speed: SpeedEstimate | None, tokens: Estimate | None) -> float | None:
    if speed is None or tokens is None:
        return None
    return 1000 * tokens.value / speed.per_stream.value


def speedup_over(speed: SpeedEstimate, baseline: SpeedEstimate, *, between: float = 0.0) -> Estimate:
    """Aggregate speed over the baseline's; both errors enter the interval, on a logarithmic scale.

    between: standard error that the two runs cannot show, such as that between server starts, as a share.
    """
    value = speed.aggregate.value / baseline.aggregate.value
    if speed.relative_error is None:
        return Estimate(value=value)
    spread = math.exp(1.96 * math.hypot(speed.relative_error, baseline.relative_error or 0.0, between))
    return Estimate(value=value, low=value / spread, high=value * spread)
