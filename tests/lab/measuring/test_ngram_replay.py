"""Answers read back as tokens: what is asked of the server, and which answers can be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import httpx
import pytest

from spectui.core.bet.cost import ASSUMED_REST
from spectui.core.bet.ngram_replay import Answered
from spectui.core.bet.passes import RequestPasses
from spectui.core.profile import ServerSettings, TrafficSettings, TuningProfile
from spectui.errors import ServerError
from spectui.lab.measuring.ngram_replay import Sizes, replayed, replays_of, rows_of, sizes_for, tokens_of
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.server import AttachedServer, LaunchedServer
from spectui.lab.workloads.workloads import Message, Prompt
from spectui.llama.binary.capabilities import Flag
from spectui.llama.http.client import LlamaClient
from tests.unlaunched import CAPS, plan_for

Handler: TypeAlias = Callable[[httpx.Request], httpx.Response]
V = {1: 1.0, 9: 1.8}
COPY = Prompt(id="copy", text="abcdefghijklmnopqrst")


def served(request: httpx.Request) -> httpx.Response:
    """A vocabulary of characters, a beginning 0 before each prompt, and a template of brackets."""
    asked = json.loads(request.content)
    if request.url.path == "/apply-template":
        return httpx.Response(200, json={"prompt": "".join(f"<{m['content']}>" for m in asked["messages"])})
    assert asked["add_special"] == asked["parse_special"]
    begin = [0] if asked["add_special"] else []
    return httpx.Response(200, json={"tokens": begin + [ord(c) for c in asked["content"]]})


def answer(text: str, *, prompt: Prompt, predicted_n: int | None = None) -> RequestResult:
    made = len(text) if predicted_n is None else predicted_n
    passes = RequestPasses(passes=(), drafted=0, accepted=0, predicted_n=made, predicted_ms=1.0)
    return RequestResult(passes=passes, prompt=prompt, text=text, limit=prompt.max_tokens or 12, counted=True)


async def test_prompts_are_read_with_special_tokens_and_answers_without() -> None:
    raw = Prompt(id="raw", text="ab")
    chat = Prompt(id="chat", messages=(Message(role="user", content="c"),), max_tokens=3)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        texts = await tokens_of(client, [answer("xyz", prompt=raw), answer("q", prompt=chat)])
    assert texts == (
        Answered((0, 97, 98), (120, 121, 122), 12),
        Answered((0, 60, 99, 62), (113,), 3),
    )


@pytest.mark.parametrize(("made", "used"), [(4, 1), (5, 1), (3, 1), (6, 0), (2, 0)])
async def test_an_answer_that_reads_otherwise_than_it_was_generated_is_left_out(made: int, used: int) -> None:
    result = answer("abcd", prompt=Prompt(id="p", text="x"), predicted_n=made)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        assert len(await tokens_of(client, [result])) == used


async def test_an_answer_that_reads_longer_than_it_was_asked_for_is_cut() -> None:
    long = answer("abcdefghij", prompt=Prompt(id="p", text="x", max_tokens=9), predicted_n=9)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        (text,) = await tokens_of(client, [long])
    assert (len(text.answer), text.limit) == (9, 9)


async def test_a_server_without_a_template_says_so() -> None:
    refusing = httpx.MockTransport(lambda _: httpx.Response(404, json={"error": {"message": "no such file"}}))
    chat = Prompt(id="chat", messages=(Message(role="user", content="c"),))
    async with LlamaClient("http://t", transport=refusing) as client:
        with pytest.raises(ServerError):
            await tokens_of(client, [answer("q", prompt=chat)])


def test_each_size_is_replayed_once() -> None:
    texts = [Answered(tuple(range(20)), tuple(range(3, 13)), 10)] * 2
    short, long = replayed(texts, [(2, 8), (2, 4), (2, 8)], V)
    assert (short.lookup, short.length, long.length) == (2, 4, 8)
    # One pass without a draft, then seven of the eight that are left, and the target's own.
    assert (long.tokens, long.passes, long.rows) == (18, 4, 14)
    # V(8) by the points on both sides, and the usual rest of a pass that drafts.
    assert long.steps == pytest.approx(2 * (1 + 1.7 + ASSUMED_REST))
    assert replayed((), [(2, 8)], V) == ()
    assert replayed(texts, [(2, 8)], {1: 1.0}) == ()
    sizes = [(2, 8), (4, 8), (2, 48), (2, 1000)]
    assert rows_of(sizes) == {9, 49, 512}


@pytest.mark.parametrize(
    ("concurrency", "flags", "offered"),
    [(1, CAPS.flags, True), (2, CAPS.flags, False), (1, (), False)],
)
async def test_lookups_are_replayed_for_one_request_at_a_time_where_they_have_sizes(
    concurrency: int, flags: tuple[Flag, ...], *, offered: bool
) -> None:
    profile = TuningProfile(server=ServerSettings(model="/m/t.gguf"))
    plan = replace(plan_for(profile), capabilities=replace(CAPS, flags=flags))
    server = LaunchedServer(plan)
    traffic = TrafficSettings(concurrency=concurrency)
    assert sizes_for(server, traffic, [(2, 8)]) == (((2, 8),) if offered else ())
    assert (len(sizes_for(server, traffic)) == 16) is offered
    foreign = AttachedServer(profile.with_server(url="http://127.0.0.1:1"), api_key=None)
    assert sizes_for(foreign, traffic) == ()


async def asked(
    answers: list[RequestResult],
    handler: Handler = served,
    *,
    v: Mapping[int, float] = MappingProxyType(V),
    sizes: Sizes = ((2, 8),),
) -> tuple[int, list[str]]:
    """How many sizes were predicted, and what was said."""
    said: list[str] = []
    async with LlamaClient("http://t", transport=httpx.MockTransport(handler)) as client:
        found = await replays_of(client, answers, sizes, v, on_problem=said.append)
    return len(found), said


COPIED = [answer("cdefghijklmn", prompt=COPY)] * 2


async def test_lookups_are_predicted_where_verification_is_known() -> None:
    assert await asked(COPIED) == (1, [])
    assert await asked(COPIED, v={1: 1.0}) == (0, [])
    assert await asked(COPIED, sizes=()) == (0, [])


def gone(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


@pytest.mark.parametrize(
    "handler", [gone, lambda _: httpx.Response(500, json={"error": {"message": "busy"}})]
)
async def test_a_server_that_does_not_read_its_answers_back_says_so(handler: Handler) -> None:
    found, said = await asked(COPIED, handler)
    assert found == 0
    assert len(said) == 1
    assert said[0].startswith("n-gram lookups cannot be predicted: ")


async def test_answers_of_which_too_many_read_otherwise_tell_nothing() -> None:
    bad = answer("cdefghijklmn", prompt=COPY, predicted_n=30)
    assert await asked([*COPIED, *COPIED, bad]) == (1, [])
    assert await asked([*COPIED, bad]) == (
        0,
        ["n-gram lookups cannot be predicted: 1 of 3 answers read otherwise than they were written"],
    )
