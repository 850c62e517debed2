"""Headless measuring: one configuration over some workloads, with or without a baseline, as plain values.

Uses the traffic, the segment and the verdict of the dashboard, so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from spectui.core.bet.baseline import Baseline, given
from spectui.core.bet.curves import curve_of, predicted_lookup
from spectui.core.bet.estimates import BetView
from spectui.core.bet.segment import Segment
from spectui.core.bet.speedup import best_point
from spectui.core.profile import OFF, TuningProfile
from spectui.core.verdict.verdict import Finding, Outcome
from spectui.errors import ServerDied, ServerGone, SpectuiError, UsageError
from spectui.lab.measuring import baseline
from spectui.lab.measuring.attached_settings import first_prompt, known_settings
from spectui.lab.measuring.measured_run import Collector, MeasuredRun
from spectui.lab.measuring.ngram_replay import replays_of, rows_of, sizes_for
from spectui.lab.measuring.probe import ProbeResult, probe, probe_if_possible, probe_points
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.traffic import RequestResult
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
    bets: dict[str, BetView] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    failure: SpectuiError | None = None

    def judge(
        self, workload: str, segment: Segment, server: Server | None, *, plain: Baseline | None = None
    ) -> None:
        """Add the findings on what a workload yielded. plain: its baseline, for what that predicts."""
        bet = self.bets[workload]
        v = {n: cost.value for n, cost in bet.costs.v.items()}
        best = best_point(curve_of(segment, bet, v, Random(1)))  # noqa: S311  reproducible, no secret
        lookup = predicted_lookup(bet, segment.profile, plain) if plain else None
        verdict = verdict_of(bet, segment.profile, server, best=best, lookup=lookup)
        self.outcomes[workload] = verdict.outcome
        for finding in verdict.findings:
            self.findings.append(replace(finding, evidence={**finding.evidence, "workload": workload}))


@dataclass(frozen=True, slots=True)
class _Job:
    """One workload's traffic on one server process."""

    profile: TuningProfile
    workload: Workload
    requests: int
    start: int
    """Number of the first prompt."""
    plain: Baseline | None = None
    fixed_length: bool | None = None

    @property
    def prompts(self) -> PromptSequence:
        """Its requests, from the first one on."""
        profile = self.profile
        return PromptSequence(
            self.workload, seed=profile.sampling.seed, depth=profile.traffic.depth, start=self.start
        )


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
        self._launcher = launcher
        self._store = store
        self._recorder = Recorder(results, say=progress)
        self._api_key = api_key
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
            plain = await self._baselines(profile, workloads, order)
        except ServerDied as error:
            return ended_by(error, result, profile, None)
        server = await self._open(profile)
        result.build = server.build
        result.argv = server.plan.argv if isinstance(server, LaunchedServer) else ()
        try:
            known, fixed_length = await known_settings(server, next(iter(workloads.values())), self._progress)
            for name, workload in workloads.items():
                current = known.with_traffic(workload=name)
                job = _Job(
                    current, workload, order.requests, first_prompt(profile), plain.get(name), fixed_length
                )
                await self._workload(server, job, result)
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

    async def _workload(self, server: Server, job: _Job, result: Measurement) -> None:
        name = job.workload.name
        run = MeasuredRun(
            server,
            job.profile,
            plain=job.plain,
            fixed_length=job.fixed_length,
            on_request=lambda n: self._progress(f"{name}: {n} of {job.requests} requests"),
        )
        server.profile = job.profile
        try:
            await run.send(job.prompts, requests=job.requests, recorder=self._recorder, source="measure")
        finally:
            result.bets[name] = run.bet()
        result.judge(name, run.segment, server, plain=job.plain)

    async def _open(self, profile: TuningProfile, *, key_of: TuningProfile | None = None) -> Server:
        return await open_server(
            profile, self._launcher, api_key=self._api_key, progress=self._progress, key_of=key_of
        )

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
        plain = one.without_speculation()
        if stated.url is not None:
            plain = plain.with_server(url=stated.url)
        server = await self._open(plain, key_of=one)
        try:
            baseline.require_no_speculation(server)
            probed = await self._probe(server, plain)
            # Streams that idle most of the time are no speed of so many at once.
            requests = max(order.requests, 2 * plain.traffic.concurrency)
            jobs = {
                name: _Job(plain.with_traffic(workload=name), workload, requests, first_prompt(one))
                for name, workload in workloads.items()
            }
            return {name: await self._plain(server, job, probed) for name, job in jobs.items()}
        except ServerGone as error:
            cause = await server.explain(error)
            if isinstance(cause, ServerDied):
                raise cause from error
            raise ServerDied(str(cause), code="server-unreachable") from error
        finally:
            await server.stop()

    async def _plain(self, server: Server, job: _Job, probed: ProbeResult) -> Baseline:
        profile, workload = job.profile, job.workload
        answers: list[RequestResult] = []
        collector = Collector(
            profile,
            on_answer=answers.append,
            on_request=lambda n: self._progress(f"{workload.name}: baseline, {n} of {job.requests} requests"),
        )
        await collector.send(server, job.prompts, requests=job.requests)
        speed = collector.segment.speed()
        if speed is None:
            raise UsageError(f"workload {workload.name}: no answer was long enough to measure a speed on")
        source = "measured" if server.owned else "second server"
        sizes = sizes_for(server, profile.traffic)
        replayed = await replays_of(server.client, answers, sizes, probed.v, on_problem=self._progress)
        found = Baseline(speed, source, probed.v, probed.error, replayed)
        if isinstance(server, LaunchedServer):
            plan = await self._launcher.plan(profile)
            try:
                baseline.remember(self._store, baseline.key_for(plan, workload), found, collector.segment)
            except SpectuiError as error:
                self._progress(str(error))
        return found

    async def _probe(self, server: Server, profile: TuningProfile) -> ProbeResult:
        """V(n), once per server: it does not depend on the prompts."""
        self._progress("probing what verification costs")
        points = {*probe_points(profile), *rows_of(sizes_for(server, profile.traffic))}
        return await probe_if_possible(server.client, sorted(points), on_problem=self._progress)


def ended_by(
    error: SpectuiError, result: Measurement, profile: TuningProfile, server: Server | None
) -> Measurement:
    """The measurement as far as it came, with what ended it as its first finding."""
    result.failure = error
    verdict = verdict_of(BetView(), profile, server, failures=(failure_of(error),))
    result.findings = [*verdict.findings, *result.findings]
    return result
