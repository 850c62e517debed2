"""Answers read back as tokens: what is asked of the server, and which answers can be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import httpx
import pytest

from spectui.core.cost import ASSUMED_REST
from spectui.core.lookup import Answered
from spectui.core.passes import RequestPasses
from spectui.core.profile import TrafficSettings
from spectui.errors import ServerError
from spectui.lab.replaying import replayed, replays_of, rows_of, tokens_of
from spectui.lab.traffic import RequestResult
from spectui.lab.workloads import Message, Prompt
from spectui.llama.client import LlamaClient

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
    return RequestResult(passes=passes, prompt=prompt, text=text, limit=prompt.max_tokens or 9, counted=True)


async def test_prompts_are_read_with_special_tokens_and_answers_without() -> None:
    raw = Prompt(id="raw", text="ab")
    chat = Prompt(id="chat", messages=(Message(role="user", content="c"),), max_tokens=3)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        texts = await tokens_of(client, [answer("xyz", prompt=raw), answer("q", prompt=chat)])
    assert texts == (
        Answered((0, 97, 98), (120, 121, 122), 9),
        Answered((0, 60, 99, 62), (113,), 3),
    )


@pytest.mark.parametrize(("made", "used"), [(4, 1), (5, 1), (3, 1), (6, 0), (2, 0)])
async def test_an_answer_that_reads_otherwise_than_it_was_generated_is_left_out(made: int, used: int) -> None:
    result = answer("abcd", prompt=Prompt(id="p", text="x"), predicted_n=made)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        assert len(await tokens_of(client, [result])) == used


async def test_answers_of_which_too_many_read_otherwise_tell_nothing() -> None:
    good = [answer("abcd", prompt=Prompt(id=f"p{i}", text="x")) for i in range(4)]
    bad = answer("abcd", prompt=Prompt(id="bad", text="x"), predicted_n=9)
    async with LlamaClient("http://t", transport=httpx.MockTransport(served)) as client:
        assert len(await tokens_of(client, [*good, bad])) == 4
        assert await tokens_of(client, [*good[:3], bad]) == ()


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
    assert rows_of(sizes, TrafficSettings()) == {9, 49, 512}
    assert rows_of(sizes, TrafficSettings(concurrency=2)) == set()


async def asked(concurrency: int, v: dict[int, float], handler: Handler = served) -> tuple[int, list[str]]:
    """How many sizes were predicted, and what was said."""
    said: list[str] = []
    traffic = TrafficSettings(concurrency=concurrency, max_tokens=12)
    async with LlamaClient("http://t", transport=httpx.MockTransport(handler)) as client:
        found = await replays_of(
            client, [answer("cdefghijklmn", prompt=COPY)] * 2, traffic, [(2, 8)], v, on_problem=said.append
        )
    return len(found), said


async def test_lookups_are_predicted_for_one_request_at_a_time_and_a_known_cost() -> None:
    assert await asked(1, V) == (1, [])
    assert await asked(2, V) == (0, [])
    assert await asked(1, {1: 1.0}) == (0, [])


async def test_a_server_that_does_not_read_its_answers_back_says_so() -> None:
    found, said = await asked(1, V, lambda _: httpx.Response(500, json={"error": {"message": "busy"}}))
    assert found == 0
    assert len(said) == 1
    assert said[0].startswith("n-gram lookups cannot be predicted: ")
