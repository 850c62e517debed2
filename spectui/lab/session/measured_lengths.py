"""What ran in a session, by its settings: the measured points of the speedup curve, beside what is predicted.

Every draft length that was measured keeps its point, whatever runs now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Final

from spectui.core.bet import speedup
from spectui.core.bet.baseline import Baseline
from spectui.core.bet.curves import curve_of, predicted_lookup, textbook_curve
from spectui.core.bet.estimates import BetReading, CurvePoint, Estimate, LookupPrediction
from spectui.core.bet.segment import Segment, SpeedEstimate, longest_draft, speedup_over
from spectui.core.profile import NGRAM_SIMPLE, OFF, TuningProfile
from spectui.core.views.snapshot import CurveView

_MIN_POINT_PASSES: Final = 40
"""Passes from which a draft length gets its point in the chart."""


class MeasuredLengths:
    """Of one session, over all its restarts. `curve` is what was drawn of it last."""

    def __init__(self) -> None:
        self.curve = CurveView()
        self._random = Random(1)  # noqa: S311  a reproducible bootstrap, no secret
        self._measured: dict[tuple[object, ...], dict[int, SpeedEstimate]] = {}
        self._lookups: dict[tuple[object, ...], dict[tuple[int, int], SpeedEstimate]] = {}

    def forget(self, profile: TuningProfile, draft_length: int) -> None:
        """Drop a point: what ran until now did not run at the length that it stands for."""
        self._measured.get(_comparable(profile), {}).pop(draft_length, None)

    def draw(
        self,
        segment: Segment,
        bet: BetReading,
        baseline: Baseline | None,
        v: Mapping[int, float],
        *,
        drafting_known: bool,
    ) -> CurveView:
        """The next curve. bet: the reading of `segment`; drafting_known: whether its draft length is."""
        profile = segment.profile
        speed = segment.speed()
        known = speed is not None and bet.passes >= _MIN_POINT_PASSES and drafting_known
        lookup = self._lookup(bet, profile, baseline, speed if known else None)
        revision = self.curve.revision + 1
        if profile.speculation.mode == OFF:
            self.curve = replace(self.curve, revision=revision, now=None, best=None, lookup=lookup)
            return self.curve
        speeds = self._measured.setdefault(_comparable(profile), {})
        if speed is not None and known:
            speeds[longest_draft(profile)] = speed
        plain = baseline.speed if baseline else None
        points = {k: _point(k, speedup_over(s, plain)) for k, s in sorted(speeds.items())} if plain else {}
        predicted = curve_of(segment, bet, v, self._random)
        self.curve = CurveView(
            revision=revision,
            textbook=textbook_curve(bet),
            predicted=predicted,
            measured=tuple(points.values()),
            now=longest_draft(profile),
            best=speedup.best_point([points.get(p.draft_length, p) for p in predicted]),
            lookup=lookup,
        )
        return self.curve

    def _lookup(
        self,
        bet: BetReading,
        profile: TuningProfile,
        baseline: Baseline | None,
        speed: SpeedEstimate | None,
    ) -> LookupPrediction | None:
        """The lookup that is predicted fastest; speed: of the running settings, once there is enough of it."""
        ran = self._lookups.setdefault(_conditions(profile), {})
        if speed is not None and profile.speculation.mode == NGRAM_SIMPLE:
            ran[profile.speculation.lookup_sizes] = speed
        if baseline is None:
            return None
        speedups = {sizes: speedup_over(each, baseline.speed).value for sizes, each in ran.items()}
        return predicted_lookup(bet, profile, baseline, speedups)


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
