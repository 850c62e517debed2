"""Headless measuring: one configuration over some workloads, with or without a baseline, as plain values.

Uses the traffic, the segment and the verdict of the dashboard, so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.curves import curve_of, predicted_lookup
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.bet.speedup import best_point
from spectui.core.profile import OFF, TuningProfile
from spectui.core.verdict.verdict import Finding, Outcome
from spectui.errors import ServerDied, ServerGone, SpectuiError, UsageError
from spectui.lab.measuring.attached_settings import first_prompt, known_settings
from spectui.lab.measuring.baseline import BaselineMeasurer
from spectui.lab.measuring.measured_run import MeasuredRun
from spectui.lab.measuring.ngram_replay import sizes_for
from spectui.lab.measuring.probe import ProbeResult, probe, probe_points
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.open import Progress, open_server
from spectui.lab.servers.server import LaunchedServer, Server, failure_of
from spectui.lab.workloads.workloads import PromptSequence, Workload, load_workload
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to measure. requests: counted requests per workload."""

    workloads: tuple[str, ...]
    requests: int
    baseline: bool = False


@dataclass(slots=True, kw_only=True)
class Measurement:
    """What was measured; `failure` when the server died on the way, with what there was until then."""

    build: str | None = None
    argv: tuple[str, ...] = ()
    bets: dict[str, BetReading] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    failure: SpectuiError | None = None

    def judge(
        self, workload: str, segment: Segment, server: Server | None, *, baseline: Baseline | None = None
    ) -> None:
        """Add the findings on what a workload yielded. baseline: for what that predicts."""
        bet = self.bets[workload]
        v = {n: cost.value for n, cost in bet.costs.v.items()}
        best = best_point(curve_of(segment, bet, v, Random(1)))  # noqa: S311  reproducible, no secret
        lookup = predicted_lookup(bet, segment.profile, baseline) if baseline else None
        verdict = verdict_of(bet, segment.profile, server, best=best, lookup=lookup)
        self.outcomes[workload] = verdict.outcome
        for finding in verdict.findings:
            self.findings.append(replace(finding, evidence={**finding.evidence, "workload": workload}))


class Measurer:
    """Measures profiles one after the other; owns at most one server at a time."""

    def __init__(
        self,
        *,
        launcher: Launcher,
        store: BaselineStore,
        results: ResultStore,
        api_key: str | None = None,
        progress: Progress = lambda _line: None,
    ) -> None:
        self._open = partial(open_server, launcher=launcher, api_key=api_key, progress=progress)
        self._store = store
        self._recorder = Recorder(results, say=progress)
        self._progress = progress

    async def measure(self, profile: TuningProfile, order: Order) -> Measurement:
        """Measure one configuration.

        Raises SpectuiError when it cannot start; a server that dies on the way ends the measurement early.
        """
        workloads = {
            name: load_workload(profile.with_traffic(workload=name).traffic) for name in order.workloads
        }
        result = Measurement()
        try:
            baselines = await self._baselines(profile, workloads, order)
        except ServerDied as error:
            return ended_by(error, result, profile, None)
        server = await self._open(profile)
        result.build = server.build
        result.argv = server.plan.argv if isinstance(server, LaunchedServer) else ()
        try:
            first = next(iter(workloads.values()))
            known, fixed_length = await known_settings(server, first, self._progress)
            for name, workload in workloads.items():
                server.profile = known.with_traffic(workload=name)
                run = MeasuredRun(
                    server,
                    server.profile,
                    baseline=baselines.get(name),
                    fixed_length=fixed_length,
                    on_request=self._counting(f"{name}:", order.requests),
                )
                prompts = PromptSequence.under(known, workload, start=first_prompt(profile))
                try:
                    await run.send(
                        prompts, requests=order.requests, recorder=self._recorder, source="measure"
                    )
                finally:
                    result.bets[name] = run.bet()
                result.judge(name, run.segment, server, baseline=baselines.get(name))
        except SpectuiError as error:
            ended_by(await server.explain(error), result, profile, server)
        finally:
            await server.stop()
        return result

    async def probe(self, profile: TuningProfile, tokens: Sequence[int]) -> ProbeResult:
        """V(n) of a target: on our own server without speculation, or on the attached one as it is."""
        server = await self._open(profile.without_speculation())
        try:
            if server.speculating:
                self._progress(
                    "this server speculates: its draft reads the new tokens too, so V(n) reads high"
                )
            return await probe(server.client, tokens)
        finally:
            await server.stop()

    async def _baselines(
        self, one: TuningProfile, workloads: dict[str, Workload], order: Order
    ) -> dict[str, Baseline]:
        """Plain speed per workload: given, or measured on a server without speculation when asked for."""
        stated = one.baseline
        if stated.tokens_per_second is not None:
            return dict.fromkeys(workloads, given(stated.tokens_per_second))
        if stated.url is None and not order.baseline:
            return {}
        if stated.url is None and one.speculation.mode == OFF and not one.attached:
            return {}
        if stated.url is None and one.attached:
            raise UsageError(
                "spectui will not restart a server that it did not start: give --baseline a number or an address"
            )
        profile = one.without_speculation()
        if stated.url is not None:
            profile = profile.with_server(url=stated.url)
        server = await self._open(profile, key_of=one)
        try:
            measurer = BaselineMeasurer(
                server=server,
                tokens=probe_points(profile),
                sizes=sizes_for(server, profile.traffic),
                plan=server.plan if isinstance(server, LaunchedServer) else None,
                store=self._store,
                note=self._progress,
                on_problem=self._progress,
            )
            await measurer.probe()
            # Streams that idle most of the time are no speed of so many at once.
            requests = max(order.requests, 2 * profile.traffic.concurrency)
            return {
                name: await measurer.measure(
                    profile.with_traffic(workload=name),
                    workload,
                    self._counting(f"{name}: baseline,", requests),
                    requests=requests,
                    start=first_prompt(one),
                )
                for name, workload in workloads.items()
            }
        except ServerGone as error:
            cause = await server.explain(error)
            if isinstance(cause, ServerDied):
                raise cause from error
            raise ServerDied(str(cause), code="server-unreachable") from error
        finally:
            await server.stop()

    def _counting(self, what: str, requests: int) -> Callable[..., None]:
        def say(done: int, _speed: SpeedEstimate | None = None) -> None:
            self._progress(f"{what} {done} of {requests} requests")

        return say


def ended_by(
    error: SpectuiError, result: Measurement, profile: TuningProfile, server: Server | None
) -> Measurement:
    """The measurement as far as it came, with what ended it as its first finding."""
    result.failure = error
    verdict = verdict_of(BetReading(), profile, server, failures=(failure_of(error),))
    result.findings = [*verdict.findings, *result.findings]
    return result
