from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from spectui.errors import ServerError
from spectui.lab.measuring.probe import DEFAULT_TOKENS, PREFIX_TOKENS, ROUNDS, probe
from spectui.llama.http.client import LlamaClient

URL = "http://127.0.0.1:8080"


def steps(n: int) -> float:
    """V(n) of the simulated server."""
    return 1.0 + 0.1 * (n - 1)


class Cached:
    """A server with one slot that keeps the tokens it has seen, as llama-server with cache_prompt does."""

    def __init__(self, **changes: Any) -> None:
        self.caches = True
        self.beyond: Callable[[int], int] = lambda _n: 0
        """Tokens processed beyond those asked for."""
        self.cached: Callable[[int], int] = lambda n: n
        self.slow: Callable[[int, int], float] = lambda _asked, _n: 1.0
        """Factor on the time, by number of the request and n."""
        vars(self).update(changes)
        self.held: list[int] = []
        self.bodies: list[dict[str, Any]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if request.url.path == "/tokenize":
            words = body["content"].split()
            return httpx.Response(200, json={"tokens": [zlib.crc32(word.encode()) for word in words]})
        self.bodies.append(body)
        prompt = body["prompt"]
        shared = 0
        if self.caches:
            pairs = zip(prompt[:-1], self.held, strict=False)
            shared = next(
                (i for i, (a, b) in enumerate(pairs) if a != b), min(len(prompt) - 1, len(self.held))
            )
        self.held = prompt
        n = len(prompt) - shared + self.beyond(len(prompt) - shared)
        return httpx.Response(
            200,
            json={
                "content": "x",
                "timings": {
                    "prompt_n": n,
                    "prompt_ms": 20.0 * steps(n) * self.slow(len(self.bodies), n),
                    "cache_n": self.cached(shared),
                    "predicted_n": 1,
                    "predicted_ms": 0.01,
                },
            },
        )

    @property
    def asked(self) -> list[int]:
        """New tokens of every request behind the prefix."""
        return [len(body["prompt"]) - PREFIX_TOKENS for body in self.bodies]

    def client(self) -> LlamaClient:
        return LlamaClient(URL, transport=httpx.MockTransport(self.answer))


async def probed(server: Cached, tokens: tuple[int, ...] = DEFAULT_TOKENS, **options: Any) -> Any:
    async with server.client() as client:
        return await probe(client, tokens, **options)


async def test_every_point_is_measured_against_one_token() -> None:
    found = await probed(Cached())
    assert found.t1_ms == pytest.approx(20.0)
    assert found.v == pytest.approx({n: steps(n) for n in DEFAULT_TOKENS})
    assert found.dropped == ()


async def test_the_prefix_is_cached_and_new_tokens_are_new() -> None:
    server = Cached()
    await probed(server, (2, 5), rounds=2)
    assert server.asked[0] == 0
    assert server.asked[1:] == [1, 2, 5, 5, 2, 1, 1, 2, 5]
    prefixes = {tuple(body["prompt"][:PREFIX_TOKENS]) for body in server.bodies}
    assert len(prefixes) == 1
    ways = [(b["n_predict"], b["cache_prompt"], b["id_slot"], b["stream"]) for b in server.bodies]
    assert set(ways) == {(1, True, 0, False)}


async def test_one_token_is_always_measured_along_and_none_twice() -> None:
    found = await probed(Cached(), (9, 3, 9))
    assert sorted(found.v) == [1, 3, 9]
    assert found.v[1] == 1.0


async def test_one_slow_pass_does_not_move_the_median() -> None:
    """The first counted pass of each n takes ten times as long, as when the machine does something else."""
    seen: dict[int, int] = {}

    def slow(_asked: int, n: int) -> float:
        seen[n] = seen.get(n, 0) + 1
        return 10.0 if seen[n] == 2 else 1.0

    found = await probed(Cached(slow=slow), (2, 5))
    assert found.t1_ms == pytest.approx(20.0)
    assert found.v == pytest.approx({n: steps(n) for n in (1, 2, 5)})


async def test_the_first_round_only_warms_up() -> None:
    found = await probed(Cached(slow=lambda asked, _n: 7.0 if asked <= 4 else 1.0), (2, 5), rounds=1)
    assert found.v == pytest.approx({n: steps(n) for n in (1, 2, 5)})
    assert found.t1_ms == pytest.approx(20.0)


async def test_a_machine_that_slows_down_hits_all_points_alike() -> None:
    found = await probed(Cached(slow=lambda asked, _n: 1 + asked * 0.01), (2, 5, 9))
    for n in (2, 5, 9):
        assert found.v[n] == pytest.approx(steps(n), rel=0.06)


async def test_points_that_ran_over_another_number_of_tokens_are_dropped() -> None:
    found = await probed(Cached(beyond=lambda n: 1 if n == 5 else 0), (2, 5, 9))
    assert sorted(found.v) == [1, 2, 9]
    assert found.dropped == (5,)


async def test_a_pass_that_missed_the_cache_once_is_left_out() -> None:
    """It would read as a pass over the whole prompt."""
    server = Cached()
    misses = {6, 9}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/completion" and len(server.bodies) in misses:
            server.held = []
        return Cached.answer(server, request)

    async with LlamaClient(URL, transport=httpx.MockTransport(answer)) as client:
        found = await probe(client, (2, 5))
    assert found.v == pytest.approx({n: steps(n) for n in (1, 2, 5)})


@pytest.mark.parametrize(
    "server",
    [Cached(caches=False), Cached(beyond=lambda n: 1), Cached(cached=lambda _shared: PREFIX_TOKENS - 1)],
    ids=["no-cache", "one-more", "another-prefix"],
)
async def test_a_server_without_a_cached_prefix_cannot_be_probed(server: Cached) -> None:
    with pytest.raises(ServerError, match="does not keep a cached prefix") as caught:
        await probed(server, (2,))
    assert URL in str(caught.value)


async def test_a_server_that_does_not_tell_what_it_cached_is_probed_by_prompt_n() -> None:
    found = await probed(Cached(cached=lambda _shared: 0), (2, 5))
    assert found.v == pytest.approx({n: steps(n) for n in (1, 2, 5)})


async def test_progress_is_told_up_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    await probed(Cached(), (2, 5), on_progress=lambda done, all_: told.append((done, all_)))
    total = 3 * (ROUNDS + 1)
    assert told == [(i + 1, total) for i in range(total)]


async def test_an_error_of_the_server_is_passed_on() -> None:
    error = {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}
    transport = httpx.MockTransport(lambda _request: httpx.Response(401, json=error))
    async with LlamaClient(URL, transport=transport) as client:
        with pytest.raises(ServerError, match="API key"):
            await probe(client)
