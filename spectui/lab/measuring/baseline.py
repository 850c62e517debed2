"""The plain speed that a bet is measured against: given, remembered, from a second server, or measured.

Measured means a second life of the same server with speculation off, on the same prompts.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Final

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.profile import TuningProfile
from spectui.errors import PromptsError, UsageError
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.launcher import LaunchPlan
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import Prompt, PromptSequence, Workload
from spectui.store.baselines import BaselineKey, BaselineStore, FileIdentity, StoredBaseline, hash_prompts

LEAST: Final = 2
MOST: Final = 6
"""Requests per stream."""
ENOUGH_TOKENS: Final = 150
ENOUGH_SECONDS: Final = 25.0
"""A busy machine narrows nothing; after this long the least number of requests must do."""
NARROW: Final = 0.01
"""Relative standard error at which the measurement ends."""


async def measure_baseline(
    server: Server,
    workload: Workload,
    profile: TuningProfile,
    *,
    on_token: Callable[[int, float], None] | None = None,
    on_begin: Callable[[float], None] | None = None,
    on_progress: Callable[[int, SpeedEstimate | None], None] | None = None,
    on_answer: Callable[[RequestResult], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[SpeedEstimate, Segment]:
    """Plain speed of a server that does not speculate, on the workload's first prompts.

    Ends as soon as the error is narrow, after six requests per stream at the latest. Raises SpectuiError.
    """
    plain = profile.without_speculation()
    width, begun = plain.traffic.concurrency, clock()

    def judge(requests: int) -> None:
        speed = segment.speed()
        if on_progress is not None:
            on_progress(requests, speed)
        if speed is None or requests < LEAST * width:
            return
        narrow = speed.relative_error is not None and speed.relative_error <= NARROW
        settled = narrow and segment.bet().tokens >= ENOUGH_TOKENS
        if settled or clock() - begun >= ENOUGH_SECONDS:
            collector.enough()

    collector = Collector(plain, on_token=on_token, on_begin=on_begin, on_request=judge, on_answer=on_answer)
    segment = collector.segment
    order = PromptSequence(workload, seed=plain.sampling.seed, depth=plain.traffic.depth)
    await collector.send(server, order, requests=MOST * width)
    speed = segment.speed()
    if speed is None:
        raise PromptsError(f"workload {workload.name}: no answer was long enough to measure a speed on")
    return speed, segment


def require_no_speculation(server: Server) -> None:
    """Raises UsageError for a server that speculates: its speed is no plain one."""
    if not server.speculating:
        return
    if server.owned:
        raise UsageError("the server speculates even without a mode: take that out of server.extra_args")
    raise UsageError(
        f"{server.client.base_url} speculates itself, so it is no baseline: name a server without"
    )


def key_for(plan: LaunchPlan, workload: Workload) -> BaselineKey:
    """Everything that a plain speed depends on. `plan` is the plan without speculation."""
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


def remember(store: BaselineStore, key: BaselineKey, plain: Baseline, measured: Segment) -> None:
    """Keep what was measured for the next start. Raises SpectuiError when it cannot be written."""
    speed = plain.speed
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
            v=dict(plain.v),
            v_error=dict(plain.v_error),
            replayed=plain.replayed,
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
