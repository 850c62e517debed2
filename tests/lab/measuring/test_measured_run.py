from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import pytest

from spectui.core.bet.passes import CumulativeTimings, RequestPasses, TargetPass
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.errors import ServerError, ServerGone
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.traffic import RequestResult, Traffic
from spectui.lab.servers.server import AttachedServer
from spectui.lab.workloads.workloads import Prompt, PromptSequence, load_builtin
from spectui.llama.http.wire import StreamEvent
from tests.scripted_server import Failure, Script, ScriptedServer


def profile_of(url: str, *, k: int = 4, **traffic: Any) -> TuningProfile:
    settings = {"max_tokens": 40, "warmup": 2, **traffic}
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple" if k else "off", draft_length=max(1, k)),
        traffic=TrafficSettings(**settings),
    )


@asynccontextmanager
async def attached(server: ScriptedServer, profile: TuningProfile) -> AsyncIterator[AttachedServer]:
    found = AttachedServer(profile, api_key=None)
    await found.connect()
    try:
        yield found
    finally:
        await found.stop()


def prompts() -> PromptSequence:
    return PromptSequence(load_builtin("code"))


def asked(server: ScriptedServer) -> list[tuple[str, int]]:
    """Prompt and token limit of every completion that was asked for."""
    return [(r.body["prompt"], r.body["n_predict"]) for r in server.requests if r.method == "POST"]


async def test_the_warm_up_is_sent_and_not_counted() -> None:
    ended: list[int] = []
    async with ScriptedServer(Script(k=4, pass_ms=50.0)) as server:
        profile = profile_of(server.url)
        async with attached(server, profile) as found:
            collector = Collector(profile, on_request=ended.append)
            await collector.send(found, prompts(), requests=3)
    assert [limit for _, limit in asked(server)] == [32, 32, 40, 40, 40]
    assert len({prompt for prompt, _ in asked(server)}) == 5
    assert ended == [1, 2, 3]
    bet = collector.segment.bet()
    assert (bet.requests, bet.tokens) == (3, 3 * 39)
    assert bet.pass_ms == pytest.approx(50.0)
    assert collector.longest_draft == 4
    assert not collector.cut_amid


async def test_counts_are_those_of_the_server() -> None:
    async with ScriptedServer(Script(k=5, alpha=0.8), seed=7) as server:
        profile = profile_of(server.url, k=5, warmup=0)
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(found, prompts(), requests=4)
        bet = collector.segment.bet()
        assert (bet.drafted, bet.accepted) == (server.counters.drafted, server.counters.accepted)
        assert bet.tokens == server.counters.tokens - 4


async def test_a_second_round_needs_no_warm_up_and_goes_on_with_the_prompts() -> None:
    async with ScriptedServer() as server:
        profile = profile_of(server.url, warmup=1)
        order = prompts()
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(found, order, requests=2)
            await collector.send(found, order, requests=2, warm_up=False)
    assert [limit for _, limit in asked(server)] == [32, 40, 40, 40, 40]
    assert len({prompt for prompt, _ in asked(server)}) == 5
    assert collector.segment.requests == 4


async def test_every_token_is_told_as_it_arrives() -> None:
    told: list[tuple[int, float]] = []
    async with ScriptedServer() as server:
        profile = profile_of(server.url, warmup=1)
        async with attached(server, profile) as found:
            collector = Collector(profile, on_token=lambda n, at: told.append((n, at)))
            await collector.send(found, prompts(), requests=2)
    assert sum(n for n, _ in told) == collector.segment.bet().tokens + 31
    assert [at for _, at in told] == sorted(at for _, at in told)


@pytest.mark.parametrize(
    ("failure", "error"), [(Failure.CUT, ServerGone), (Failure.DIE, ServerGone), (Failure.ERROR, ServerError)]
)
async def test_what_ended_before_a_failure_is_kept(failure: Failure, error: type[ServerError]) -> None:
    async with ScriptedServer() as server:
        profile = profile_of(server.url, warmup=0)

        def fail_after(count: int) -> None:
            if count == 2:
                server.script.failure = failure

        async with attached(server, profile) as found:
            collector = Collector(profile, on_request=fail_after)
            with pytest.raises(error):
                await collector.send(found, prompts(), requests=5)
    bet = collector.segment.bet()
    assert bet.requests == 2
    # The passes that closed before the failure, 20 tokens into the third answer.
    assert 2 * 39 <= bet.tokens < 2 * 39 + 20


async def test_every_stream_is_busy_until_the_last_request_ended_and_what_was_dropped_counts() -> None:
    ended: list[int] = []
    async with ScriptedServer(Script(slots=3, rate=600.0)) as server:
        profile = profile_of(server.url, concurrency=3, warmup=1)
        async with attached(server, profile) as found:
            collector = Collector(profile, on_request=ended.append)
            await collector.send(found, prompts(), requests=4)
        assert len(asked(server)) == 1 + 4 + 2
        await server.until(lambda s: s.streams == 0)
    assert ended == [1, 2, 3, 4]
    assert (collector.segment.requests, collector.longest_draft) == (4, 4)
    assert 4 * 39 < collector.segment.bet().tokens < 6 * 39


class Together:
    """Answers every request at once, and takes a turn of the event loop to close each stream."""

    @asynccontextmanager
    async def stream(self, _request: object) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        async def events() -> AsyncIterator[StreamEvent]:
            yield StreamEvent(
                text="a", arrived=1.0, timings=CumulativeTimings(predicted_n=1, predicted_ms=0.0)
            )
            yield StreamEvent(
                text="b", arrived=2.0, timings=CumulativeTimings(predicted_n=2, predicted_ms=9.0), final=True
            )

        yield events()
        await asyncio.sleep(0)


async def test_no_more_are_counted_than_were_asked_for_however_many_end_together() -> None:
    profile = profile_of("http://127.0.0.1:1", concurrency=8, warmup=0)
    collector = Collector(profile)
    await Traffic(Together(), prompts(), profile, collector).run(requests=10)  # type: ignore[arg-type]
    assert collector.segment.requests == 10


async def test_streams_stay_busy_for_fewer_requests_than_streams() -> None:
    async with ScriptedServer(Script(slots=4, rate=600.0)) as server:
        profile = profile_of(server.url, concurrency=4, warmup=0)
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(found, prompts(), requests=1)
    assert len(asked(server)) == 4
    assert collector.segment.requests == 1


async def test_prompts_that_come_to_an_end_are_answered_to_the_last() -> None:
    async with ScriptedServer(Script(slots=3, rate=600.0)) as server:
        profile = profile_of(server.url, concurrency=3, warmup=2)
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(found, islice(prompts(), 2 + 5), requests=5)
    assert collector.segment.requests == 5
    assert collector.segment.bet().tokens == 5 * 39


async def test_the_traffic_ends_when_there_is_enough() -> None:
    async with ScriptedServer(Script(slots=2, rate=600.0)) as server:
        profile = profile_of(server.url, concurrency=2, warmup=0)
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(
                found, prompts(), requests=100, enough=lambda: collector.segment.requests == 3
            )
    assert collector.segment.requests == 3
    assert len(asked(server)) == 4


async def test_streams_at_once_are_counted_as_such() -> None:
    async with ScriptedServer(Script(slots=2, rate=600.0)) as server:
        profile = profile_of(server.url, concurrency=2, warmup=0)
        async with attached(server, profile) as found:
            collector = Collector(profile)
            await collector.send(found, prompts(), requests=6)
    speed = collector.segment.speed()
    assert speed is not None
    assert 1.5 < speed.streams <= 2.0
    assert speed.per_stream.value == pytest.approx(600, rel=0.35)
    assert speed.aggregate.value == pytest.approx(speed.per_stream.value * speed.streams)


def ended(*drafts: int, counted: bool = True, completed: bool = True) -> RequestResult:
    steps = tuple(TargetPass(d, d, d + 1, 50.0) for d in drafts)
    request = RequestPasses(
        passes=steps,
        drafted=sum(drafts),
        accepted=sum(drafts),
        predicted_n=1 + sum(s.committed for s in steps),
        predicted_ms=50.0 * len(steps),
        completed=completed,
    )
    return RequestResult(passes=request, prompt=Prompt(id="p", text=""), text="", limit=64, counted=counted)


@pytest.fixture
def collecting() -> Callable[..., Collector]:
    def collect(*results: RequestResult) -> Collector:
        collector = Collector(profile_of("http://127.0.0.1:1"))
        for result in results:
            collector.request_ended(result)
        return collector

    return collect


def test_warm_up_teaches_the_length_alone_and_a_dropped_request_counts_with_what_it_had(
    collecting: Callable[..., Collector],
) -> None:
    collector = collecting(ended(6, 6, counted=False), ended(7, completed=False), ended(4, 4))
    assert collector.longest_draft == 7
    assert collector.segment.requests == 1
    assert collector.segment.bet().drafted == 7 + 8


@pytest.mark.parametrize(
    ("requests", "cut"),
    [
        ([(4, 4, 4, 4)], False),
        ([(4, 4, 4, 2)], False),
        ([(4, 2, 4, 4)], True),
        ([(4, 4), (3, 3, 3, 3)], True),
        ([(4, 4, 4), (3,)], False),
    ],
)
def test_drafts_cut_in_the_middle_of_an_answer_are_seen(
    collecting: Callable[..., Collector], requests: list[tuple[int, ...]], cut: bool
) -> None:
    assert collecting(*(ended(*drafts) for drafts in requests)).cut_amid is cut
