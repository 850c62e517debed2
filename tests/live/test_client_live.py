from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from spectui.core.bet.passes import PassRebuilder
from spectui.errors import ServerError, ServerGone, Unauthorized, Unsupported
from spectui.llama.http.client import CompletionRequest, Health, LlamaClient, StreamEvent
from spectui.llama.process.process import ServerProcess
from spectui.llama.process.ready import free_port, wait_ready

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

K = 4
RAW = CompletionRequest(prompt="def quicksort(arr):\n", max_tokens=40, seed=1)
CHAT = CompletionRequest(
    messages=({"role": "user", "content": "Describe the rain in one sentence."},), max_tokens=24, seed=1
)
LONG = CompletionRequest(prompt="Once upon a time", max_tokens=900, ignore_eos=True)


@dataclass(frozen=True)
class Live:
    client: LlamaClient
    process: ServerProcess
    url: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(server_binary: Path, quick_pair: Any) -> AsyncIterator[Live]:
    port = free_port()
    options = f"--spec-type draft-simple --spec-draft-n-max {K} -c 2048 -np 2 --metrics --port {port} -lv 4"
    argv = [
        str(server_binary),
        "-m",
        str(quick_pair.target),
        "-md",
        str(quick_pair.drafts[0]),
        *options.split(),
    ]
    env = {k: v for k, v in os.environ.items() if not k.startswith("LLAMA_ARG_")}
    process = await ServerProcess.start(argv, env)
    client = LlamaClient(f"127.0.0.1:{port}")
    try:
        await wait_ready(client, process, 120)
        yield Live(client, process, client.base_url)
    finally:
        await client.aclose()
        await process.stop()


async def collect(client: LlamaClient, request: CompletionRequest) -> list[StreamEvent]:
    async with client.stream(request) as events:
        return [e async for e in events]


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0.01)


async def idle(client: LlamaClient) -> bool:
    return not any(slot.is_processing for slot in await client.slots())


async def counter(client: LlamaClient, name: str) -> int:
    lines = (await client.metrics_text()).splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"llamacpp:{name} ")))


@pytest.mark.parametrize("request_", [RAW, CHAT], ids=["completion", "chat"])
async def test_a_streams_passes_are_what_the_server_counts(live: Live, request_: CompletionRequest) -> None:
    names = (
        "spec_decode_num_draft_tokens_total",
        "spec_decode_num_accepted_tokens_total",
        "spec_decode_num_drafts_total",
    )
    before = [await counter(live.client, name) for name in names]
    events = await collect(live.client, request_)
    await until(lambda: idle(live.client))
    counted = [await counter(live.client, name) - old for name, old in zip(names, before, strict=True)]

    rebuilder = PassRebuilder(K)
    for event in events[:-1]:
        if event.timings is not None:
            rebuilder.feed(event.timings)
    rebuilder.finish(events[-1].timings)
    passes = rebuilder.passes
    final = events[-1]
    assert final.final
    assert final.timings is not None
    assert final.stop_reason in {"eos", "limit"}
    assert counted[0] > 0
    assert [
        sum(p.drafted for p in passes),
        sum(p.accepted for p in passes),
        sum(1 for p in passes if p.drafted),
    ] == counted
    assert sum(p.committed for p in passes) == final.timings.predicted_n - 1
    assert "".join(e.text for e in events).strip()


async def test_what_the_server_says_about_itself(live: Live) -> None:
    assert await live.client.health() is Health.OK
    props = await live.client.props()
    assert (props.total_slots, props.n_ctx, props.endpoint_metrics) == (2, 1024, True)
    await collect(live.client, RAW)
    slots = await live.client.slots()
    assert [slot.speculative for slot in slots] == [True, True]
    assert ("draft-simple",) in [slot.types for slot in slots]
    assert len(await live.client.token_ids("def quicksort(arr):\n")) == 8
    assert len(await live.client.models()) == 1


async def test_the_same_seed_gives_the_same_text(live: Live) -> None:
    texts = ["".join(e.text for e in await collect(live.client, RAW)) for _ in range(2)]
    assert texts[0] == texts[1]


async def test_cancelling_frees_the_slot(live: Live) -> None:
    started = asyncio.Event()

    async def read() -> None:
        async with live.client.stream(LONG) as events:
            async for _ in events:
                started.set()

    task = asyncio.create_task(read())
    await started.wait()
    assert not await idle(live.client)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: idle(live.client))
    assert live.client.open_streams == 0


async def test_close_streams_frees_all_slots(live: Live) -> None:
    tasks = [asyncio.create_task(collect(live.client, LONG)) for _ in range(3)]

    async def both_work() -> bool:
        return all(slot.is_processing for slot in await live.client.slots())

    await until(both_work)
    await live.client.close_streams()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(r) for r in results] == [ServerGone] * 3
    await until(lambda: idle(live.client))


async def test_a_prompt_beyond_the_context(live: Live) -> None:
    with pytest.raises(ServerError, match="does not fit the context") as caught:
        await collect(live.client, CompletionRequest(prompt="word " * 3000))
    assert caught.value.status == 400


async def test_a_server_that_is_killed_in_the_middle(server_binary: Path, quick_pair: Any) -> None:
    port = free_port()
    argv = [str(server_binary), "-m", str(quick_pair.target), "-c", "1024", "--port", str(port), "--no-slots"]
    process = await ServerProcess.start([*argv, "--api-key", "k3y"])
    try:
        async with LlamaClient(f"127.0.0.1:{port}", api_key="k3y") as client:
            await wait_ready(client, process, 120)
            async with LlamaClient(client.base_url, api_key="wrong") as stranger:
                with pytest.raises(Unauthorized):
                    await collect(stranger, RAW)
            with pytest.raises(Unsupported, match="--metrics"):
                await client.metrics_text()
            with pytest.raises(Unsupported, match="--slots"):
                await client.slots()
            async with client.stream(LONG) as events:
                await anext(events)
                await process.stop(term_again_s=0, kill_after_s=0)
                with pytest.raises(ServerGone):
                    async for _ in events:
                        pass
            assert await client.health() is Health.UNREACHABLE
    finally:
        await process.stop()
