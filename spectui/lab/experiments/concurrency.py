"""`spectui concurrency`: aggregate speed with and without speculation by the number of requests at once.

Rows that one request leaves free are taken by the drafts of others, so a bet that wins alone may lose in company.
One server process without speculation and one with it serve every level, so that slots and context are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.estimates import BetReading
from spectui.core.profile import OFF, TuningProfile
from spectui.errors import LaunchError, ServerError, SpectuiError, UsageError
from spectui.lab.measuring.attached_settings import first_prompt, known_settings
from spectui.lab.measuring.baseline import BaselineMeasurer
from spectui.lab.measuring.measured_run import MeasuredRun
from spectui.lab.measuring.probe import DEFAULT_TOKENS, MOST_TOKENS
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.open import open_server
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import PromptSequence, load_workload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One number of requests at once; speeds are aggregate tokens per second inside `bet`."""

    at_once: int
    bet: BetReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """All levels, fewest at once first."""

    workload: str
    build: str | None
    rows: tuple[Level, ...]
    failure: SpectuiError | None = None
    """What ended the sweep early, with the levels until then."""

    @property
    def inversion(self) -> tuple[int, int] | None:
        """The last level that wins and the next that loses, by their intervals; None where it does not turn."""
        won: int | None = None
        for row in self.rows:
            outcome = _outcome(row.bet)
            if outcome == "wins":
                won = row.at_once
            elif outcome == "loses" and won is not None:
                return won, row.at_once
        return None

    @property
    def sentence(self) -> str:
        """Where speculation pays, in one line; a level whose interval holds 1 is called even."""
        if not self.rows:
            return "no level was measured"
        said = [f"{row.at_once} at once: {_judged(row.bet)}" for row in self.rows]
        turn = self.inversion
        where = f"; the gain turns into a loss between {turn[0]} and {turn[1]} at once" if turn else ""
        return ", ".join(said) + where


class ConcurrencySweep:
    """Measures one profile at several levels; owns at most one server at a time."""

    def __init__(
        self,
        *,
        launcher: Launcher,
        api_key: str | None,
        progress: Callable[[str], None],
        recorder: Recorder | None = None,
    ) -> None:
        self._launcher = launcher
        self._recorder = recorder or Recorder()
        self._api_key = api_key
        self._progress = progress

    async def run(self, profile: TuningProfile, levels: Sequence[int], *, requests: int) -> Levels:
        """Measure each level on the profile's workload, with at least `requests` counted requests each.

        A server that dies on the way ends the sweep with what was measured until then. Raises UsageError for a
        profile without speculation, a server with fewer slots than asked for, and an attached one without a second
        address as its baseline; otherwise SpectuiError.
        """
        levels = sorted(set(levels))
        if profile.speculation.mode == OFF and not profile.attached:
            raise UsageError(
                "this profile does not speculate: set speculation.mode, there is nothing to compare"
            )
        workload = load_workload(profile.traffic)
        profile = with_slots(profile, levels[-1])
        without = profile.without_speculation()
        if not profile.attached:
            # What keeps the second server from starting is said before the first one takes its time.
            await self._launcher.plan(profile)
        if profile.attached:
            second = profile.baseline.url
            if second is None:
                raise UsageError(
                    "a server that spectui did not start needs a second one without speculation: --baseline URL"
                )
            without = without.with_server(url=second)
        baselines: dict[int, Baseline] = {}
        bets: dict[int, BetReading] = {}
        build: str | None = None
        failure: SpectuiError | None = None
        try:
            async with self._open(without, key_of=profile) as server:
                _require_slots(server, levels[-1])
                measurer = BaselineMeasurer(
                    server=server,
                    tokens=_points(profile, levels),
                    note=self._progress,
                    on_problem=self._progress,
                )
                await measurer.probe()
                prompts = PromptSequence.under(profile, workload, start=first_prompt(profile))
                for n in levels:
                    run = await self._sent(server, _at(without, n), prompts, requests)
                    baselines[n] = await measurer.finish(_at(without, n), workload, run.segment, ())
            async with self._open(profile, key_of=profile) as server:
                _require_slots(server, levels[-1])
                build = server.build
                known, fixed_length = await known_settings(server, workload, self._progress)
                prompts = PromptSequence.under(profile, workload, start=first_prompt(profile))
                for n in levels:
                    run = await self._sent(
                        server,
                        _at(known, n),
                        prompts,
                        requests,
                        baseline=baselines[n],
                        fixed_length=fixed_length,
                    )
                    bets[n] = run.bet()
        except (ServerError, LaunchError) as error:
            if not baselines:
                raise
            failure = error
        rows = tuple(
            Level(at_once=n, bet=bets.get(n, BetReading(baseline=baseline.speed.aggregate)))
            for n, baseline in baselines.items()
        )
        return Levels(workload=workload.name, build=build, rows=rows, failure=failure)

    async def _sent(
        self,
        server: Server,
        profile: TuningProfile,
        prompts: PromptSequence,
        requests: int,
        *,
        baseline: Baseline | None = None,
        fixed_length: bool | None = None,
    ) -> MeasuredRun:
        """One level. baseline: what the bet is measured against; None for the plain side itself."""
        at_once, what = profile.traffic.concurrency, "speculating" if baseline else "plain"
        # That all of them begin at once weighs less from two requests per stream on.
        total = max(requests, 2 * at_once)
        run = MeasuredRun(
            server,
            profile,
            baseline=baseline,
            fixed_length=fixed_length,
            on_request=lambda n: self._progress(f"{what}, {at_once} at once: {n} of {total} requests"),
        )
        await run.send(prompts, requests=total, recorder=self._recorder, source="concurrency")
        return run

    @asynccontextmanager
    async def _open(self, profile: TuningProfile, *, key_of: TuningProfile) -> AsyncIterator[Server]:
        """Start or attach, and leave on the way out; a server that dies says so."""
        server = await open_server(
            profile, self._launcher, api_key=self._api_key, progress=self._progress, key_of=key_of
        )
        try:
            yield server
        except ServerError as error:
            raise await server.explain(error) from error
        finally:
            await server.stop()


def with_slots(profile: TuningProfile, slots: int) -> TuningProfile:
    """The profile with so many slots, each with the context that one has now."""
    if profile.attached:
        return profile
    server = profile.server
    each = server.context // (server.parallel or 1) if server.context else None
    return profile.with_server(parallel=slots, context=each * slots if each else server.context)


def _outcome(bet: BetReading) -> str:
    actual = bet.speedup_actual
    if actual is None:
        return "unknown"
    low = actual.low if actual.low is not None else -math.inf
    high = actual.high if actual.high is not None else math.inf
    return "wins" if low > 1 else "loses" if high < 1 else "even"


def _judged(bet: BetReading) -> str:
    actual = bet.speedup_actual
    return _outcome(bet) + (f" ({actual.value:.2f}x)" if actual is not None else "")


def _at(profile: TuningProfile, at_once: int) -> TuningProfile:
    return profile.with_traffic(concurrency=at_once, warmup=max(at_once, profile.traffic.warmup))


def _points(profile: TuningProfile, levels: Sequence[int]) -> set[int]:
    """The n that V(n) is needed at."""
    rows = (profile.speculation.draft_length + 1) if profile.speculation.fixed_length else 1
    return {*DEFAULT_TOKENS, *levels, *(min(MOST_TOKENS, n * rows) for n in levels)}


def _require_slots(server: Server, slots: int) -> None:
    have = server.props.total_slots if server.props else None
    if have is not None and have < slots:
        raise UsageError(
            f"{server.client.base_url} has {have} slots: ask for at most so many at once, or give it more (-np)"
        )
