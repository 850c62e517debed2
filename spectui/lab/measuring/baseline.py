"""The baseline of a bet: the speed without speculation, and what is measured along with it on the same server.

All commands and the dashboard measure it in one way, `BaselineMeasurer`'s; that of a server of ours is remembered.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spectui.core.bet.baseline import Baseline, pooled
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.profile import TuningProfile
from spectui.errors import ServerError, SpectuiError, UsageError
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.ngram_replay import Sizes, replays_of, rows_of
from spectui.lab.measuring.probe import ProbeResult, probe
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.launcher import LaunchPlan
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import Prompt, PromptSequence, Workload
from spectui.store.baselines import BaselineKey, BaselineStore, FileIdentity, StoredBaseline, hash_prompts

LEAST: Final = 2
MOST: Final = 6
"""Requests per stream, where nobody chose a number."""
ENOUGH_TOKENS: Final = 150
ENOUGH_SECONDS: Final = 25.0
"""A busy machine narrows nothing; after this long the least number of requests must do."""
NARROW: Final = 0.01
"""Relative standard error at which the measurement ends."""
TOO_SHORT: Final = "no answer was long enough to measure a speed on"


@dataclass(slots=True, kw_only=True)
class BaselineMeasurer:
    """Measures baselines on one server that does not speculate: sends, probes, replays lookups, remembers.

    tokens: the n at which V(n) is probed, beside those of the lookups; probed: V(n) where it is known already.
    sizes: lookups with lengths that are replayed on the answers. plan: of a server of ours, whose baselines are
    remembered in `store`. note: told what is going on; on_problem: told in one line what went wrong beside a speed;
    on_probe: told how many passes of a probe are done, and of how many. check: asked before anything is kept; it
    raises where the speed is not the server's own. Raises UsageError for a server that speculates.
    """

    server: Server
    tokens: Collection[int]
    sizes: Sizes = ()
    plan: LaunchPlan | None = None
    store: BaselineStore | None = None
    probed: ProbeResult | None = None
    note: Callable[[str], None] = lambda _what: None
    on_problem: Callable[[str], None] = lambda _why: None
    on_probe: Callable[[int, int], None] = lambda _done, _all: None
    on_token: Callable[[int, float], None] | None = None
    on_begin: Callable[[float], None] | None = None
    check: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if self.server.speculating and self.server.owned:
            raise UsageError("the server speculates even without a mode: take that out of server.extra_args")
        if self.server.speculating:
            url = self.server.client.base_url
            raise UsageError(f"{url} speculates itself, so it is no baseline: name a server without")

    async def probe(self) -> ProbeResult:
        """V(n), once: it does not depend on prompts. Nothing where it cannot be probed: why is told."""
        if self.probed is None:
            self.note("probing what verification costs")
            tokens = sorted({*self.tokens, *rows_of(self.sizes)})
            try:
                self.probed = await probe(self.server.client, tokens, on_progress=self.on_probe)
            except ServerError as error:
                self.on_problem(f"verification could not be probed: {error}")
                self.probed = ProbeResult()
        return self.probed

    async def measure(
        self,
        profile: TuningProfile,
        workload: Workload,
        on_progress: Callable[[int, SpeedEstimate | None], None],
        *,
        requests: int | None = None,
        start: int = 0,
    ) -> Baseline:
        """Send the workload's prompts, from number `start` on, and finish with what came back.

        requests: how many count; None ends as soon as the error is narrow, after six per stream at the latest.
        on_progress: told how many ended, and the speed until then. Raises SpectuiError.
        """
        width, begun = profile.traffic.concurrency, self.clock()
        answers: list[RequestResult] = []

        def enough() -> bool:
            speed = segment.speed()
            if requests is not None or speed is None or segment.requests < LEAST * width:
                return False
            narrow = speed.relative_error is not None and speed.relative_error <= NARROW
            settled = narrow and segment.bet().tokens >= ENOUGH_TOKENS
            return settled or self.clock() - begun >= ENOUGH_SECONDS

        collector = Collector(
            profile,
            on_token=self.on_token,
            on_begin=self.on_begin,
            on_request=lambda done: on_progress(done, segment.speed()),
            on_answer=answers.append,
        )
        segment = collector.segment
        prompts = PromptSequence.under(profile, workload, start=start)
        await collector.send(self.server, prompts, requests=requests or MOST * width, enough=enough)
        return await self.finish(profile, workload, segment, answers)

    async def finish(
        self,
        profile: TuningProfile,
        workload: Workload,
        segment: Segment,
        answers: Sequence[RequestResult],
        *,
        earlier: Baseline | None = None,
    ) -> Baseline:
        """The baseline of what was sent under this profile; with an earlier one of the same, both as one.

        An earlier one keeps its replays, since every setting answers its prompts. Raises UsageError where no answer
        was long enough, and what `check` raises.
        """
        speed = segment.speed()
        if speed is None:
            raise UsageError(f"workload {workload.name}: {TOO_SHORT}")
        probed = await self.probe()
        self.check()
        if earlier is None:
            replayed = await replays_of(
                self.server.client, answers, self.sizes, probed.v, on_problem=self.on_problem
            )
        else:
            speed, replayed = pooled(earlier.speed, speed), earlier.replayed
        source = "measured" if self.server.owned else "second server"
        found = Baseline(speed, source, probed.v, probed.error, replayed)
        if self.plan is not None and self.store is not None:
            key = key_for(replace(self.plan, profile=profile), workload)
            try:
                await asyncio.to_thread(remember, self.store, key, found, segment)
            except SpectuiError as error:
                self.on_problem(str(error))
        return found


def key_for(plan: LaunchPlan, workload: Workload) -> BaselineKey:
    """Everything that a baseline depends on. `plan` is the plan without speculation."""
    profile = plan.profile
    traffic = profile.traffic
    passed_on = profile.server.inherit_llama_env
    inherited = [
        f"{name}={plan.environment[name]}"
        for name in plan.inherited_names
        if passed_on and name.startswith("LLAMA_ARG_")
    ]
    return BaselineKey(
        build=plan.capabilities.version.label,
        binary=FileIdentity.of(plan.binary),
        model=FileIdentity.of(profile.server.model or plan.binary),
        argv=(*plan.argv[1:], *inherited),
        workload=workload.name,
        prompts_hash=hash_prompts(_prompt_text(p) for p in workload.prompts),
        temperature=profile.sampling.temperature,
        seed=profile.sampling.seed,
        concurrency=traffic.concurrency,
        depth=traffic.depth,
        max_tokens=traffic.max_tokens,
        ignore_eos=traffic.ignore_eos,
        machine=platform.node(),
    )


def remembered(store: BaselineStore, key: BaselineKey) -> Baseline | None:
    """What was measured before under the same key."""
    known = store.get(key)
    if known is None:
        return None
    return Baseline(_estimate(known), "remembered", known.v, known.v_error, known.replayed)


def remember(store: BaselineStore, key: BaselineKey, baseline: Baseline, measured: Segment) -> None:
    """Keep what was measured for the next start. Raises SpectuiError when it cannot be written."""
    speed = baseline.speed
    one = speed.per_stream
    store.put(
        key,
        StoredBaseline(
            tokens_per_second=one.value,
            low=one.low,
            high=one.high,
            streams=speed.streams,
            requests=measured.requests,
            tokens=measured.bet().tokens,
            t1_ms=1000 / one.value,
            v=dict(baseline.v),
            v_error=dict(baseline.v_error),
            replayed=baseline.replayed,
            measured_at=time.time(),
        ),
    )


def _prompt_text(prompt: Prompt) -> str:
    if prompt.messages is None:
        return prompt.text or ""
    return "\n".join(f"{m.role}: {m.content}" for m in prompt.messages)


def _estimate(known: StoredBaseline) -> SpeedEstimate:
    error = None if known.high is None else (known.high / known.tokens_per_second - 1) / 1.96
    return SpeedEstimate(
        per_stream=Estimate(value=known.tokens_per_second, low=known.low, high=known.high),
        streams=known.streams,
        relative_error=error,
    )
