"""A llama-server that does what a test tells it: its speed, its acceptance, and the ways in which it fails.

Speaks the HTTP of b10434 (/health, /props, /slots, /metrics, /completion, /v1/chat/completions) with honest
cumulative timings: one event per token, all tokens of a pass at once. A test uses `async with ScriptedServer()`;
as a process, `python tests/scripted_server.py --rate 60` prints its address first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "it",
    "was",
    "for",
    "on",
    "are",
    "with",
    "his",
    "they",
    "at",
)
PROMPT_TOKENS = 12
PROMPT_MS = 20.0
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Failure(StrEnum):
    """What goes wrong."""

    NONE = "none"
    UNAUTHORIZED = "unauthorized"
    """Every answer is 401, but for /health."""
    LOADING = "loading"
    """Every answer is 503, "Loading model"."""
    MUTE = "mute"
    """Requests are read and never answered."""
    DIE = "die"
    """In the middle of a stream the connections are reset and nothing listens any more."""
    CUT = "cut"
    """In the middle of a stream the connection is closed; the server lives on."""
    HANG = "hang"
    """In the middle of a stream nothing more comes."""
    ERROR = "error"
    """In the middle of a stream an error event comes."""


MIDSTREAM = {Failure.DIE, Failure.CUT, Failure.HANG, Failure.ERROR}


@dataclass
class Script:
    """What the server does; may be changed while it runs."""

    rate: float = 0.0
    """Mean tokens per second of one stream; 0 sends as fast as it is read."""
    k: int = 4
    """Draft length; 0 does not speculate."""
    alpha: float = 0.7
    """Share of drafted tokens that are accepted, each by itself."""
    failure: Failure = Failure.NONE
    after: int = 20
    """Tokens before a failure in mid-stream."""
    pass_ms: float = 25.0
    """Time of a pass in the timings where rate is 0."""
    slots: int = 1
    build: str = "b10434-7e4c0a9"
    metrics: bool = True

    @property
    def tokens_per_pass(self) -> float:
        """E = 1 + alpha + ... + alpha^k."""
        return sum(self.alpha**j for j in range(self.k + 1))

    @property
    def pass_seconds(self) -> float:
        """Time of a pass, for `rate` tokens per second on average."""
        return self.tokens_per_pass / self.rate if self.rate else self.pass_ms / 1000


@dataclass
class Request:
    """What somebody asked."""

    method: str
    path: str
    body: dict[str, Any] = field(default_factory=dict)


@dataclass
class Counters:
    """What /metrics counts; moves when a request ends."""

    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    drafts: int = 0


class ScriptedServer:
    """Listens on a free port of the loopback while the block lasts."""

    def __init__(self, script: Script | None = None, *, port: int = 0, seed: int = 1) -> None:
        self.script = script or Script()
        self.requests: list[Request] = []
        self.counters = Counters()
        self.streams = 0
        """Streams that are open now."""
        self.url = ""
        self.down = asyncio.Event()
        """Set when the server has died."""
        self._port = port
        self._random = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def asked(self) -> list[tuple[str, str]]:
        """Method and path of everything that was asked, in order."""
        return [(r.method, r.path) for r in self.requests]

    async def until(self, condition: Callable[[ScriptedServer], bool], timeout: float = 10.0) -> None:  # noqa: ASYNC109
        """Wait until what was asked or streamed fulfils `condition`."""
        async with asyncio.timeout(timeout), self._news:
            await self._news.wait_for(lambda: condition(self))

    def die(self) -> None:
        """Reset all connections and stop listening, as a killed process does."""
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self.down.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while (request := await read_request(reader)) is not None:
                if request.path == "/_asked":
                    await send_json(writer, [[r.method, r.path] for r in self.requests])
                    continue
                self.requests.append(request)
                await self._tell()
                await self._answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # The server is being closed; a handler that ends as cancelled would be reported by asyncio.streams.
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        failure = self.script.failure
        if failure is Failure.MUTE:
            await asyncio.Event().wait()
        elif failure is Failure.LOADING:
            await send_error(writer, 503, "unavailable_error", "Loading model")
        elif failure is Failure.UNAUTHORIZED and request.path != "/health":
            await send_error(writer, 401, "authentication_error", "Invalid API Key")
        elif request.method == "POST" and request.path in {"/completion", "/v1/chat/completions"}:
            await self._stream(request, writer)
        elif request.method == "GET" and request.path in self._reads:
            await self._reads[request.path](self, writer)
        else:
            await send_error(writer, 404, "not_found_error", "File Not Found")

    async def _health(self, writer: asyncio.StreamWriter) -> None:
        await send_json(writer, {"status": "ok"})

    async def _props(self, writer: asyncio.StreamWriter) -> None:
        await send_json(
            writer,
            {
                "default_generation_settings": {"params": {"speculative.types": "none"}, "n_ctx": 4096},
                "total_slots": self.script.slots,
                "model_alias": "scripted",
                "model_path": "/models/scripted.gguf",
                "endpoint_slots": True,
                "endpoint_metrics": self.script.metrics,
                "chat_template": "{{ messages }}",
                "build_info": self.script.build,
                "is_sleeping": False,
            },
        )

    async def _slots(self, writer: asyncio.StreamWriter) -> None:
        types = "none,draft-simple" if self.script.k else "none"
        slot = {
            "n_ctx": 4096,
            "speculative": self.script.k > 0,
            "is_processing": self.streams > 0,
            "params": {"speculative.types": types},
            "next_token": [{"n_decoded": 0}],
        }
        await send_json(writer, [{"id": i, **slot} for i in range(self.script.slots)])

    async def _metrics(self, writer: asyncio.StreamWriter) -> None:
        if not self.script.metrics:
            await send_error(
                writer, 501, "not_supported_error", "This server does not support metrics endpoint."
            )
            return
        values = {
            "tokens_predicted_total": self.counters.tokens,
            "spec_decode_num_draft_tokens_total": self.counters.drafted,
            "spec_decode_num_accepted_tokens_total": self.counters.accepted,
            "spec_decode_num_drafts_total": self.counters.drafts,
        }
        text = "".join(f"# TYPE llamacpp:{name} counter\nllamacpp:{name} {n}\n" for name, n in values.items())
        await send(writer, 200, "text/plain; version=0.0.4", text.encode())

    _reads = {"/health": _health, "/props": _props, "/slots": _slots, "/metrics": _metrics}  # noqa: RUF012

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        chat = request.path != "/completion"
        limit = int(request.body.get("max_tokens" if chat else "n_predict", 32))
        self.streams += 1
        try:
            await self._write_stream(writer, chat=chat, limit=limit)
        finally:
            self.streams -= 1
            await self._tell()

    async def _write_stream(self, writer: asyncio.StreamWriter, *, chat: bool, limit: int) -> None:
        writer.write(SSE_HEAD)
        count, sent = Counters(), 0
        began = asyncio.get_running_loop().time()
        for number, tokens in enumerate(self._passes(limit, count)):
            await self._until(began + number * self.script.pass_seconds)
            burst: list[bytes] = []
            for _ in range(tokens):
                if self.script.failure in MIDSTREAM and sent >= self.script.after:
                    writer.write(b"".join(burst))
                    if await self._fail(writer):
                        return
                sent += 1
                burst.append(http_chunk(_token(sent, self._timings(sent, number, count), chat=chat)))
            writer.write(b"".join(burst))
            await writer.drain()
        ending = _ending(sent, self._timings(sent, number, count), chat=chat)
        writer.write(b"".join(http_chunk(event) for event in ending) + http_chunk(b""))
        await writer.drain()
        total = self.counters
        total.tokens += sent
        total.drafted += count.drafted
        total.accepted += count.accepted
        total.drafts += count.drafts

    def _passes(self, limit: int, count: Counters) -> Iterator[int]:
        """Tokens of each step, the free first one before the passes; counts what was drafted and accepted."""
        script, sent = self.script, 1
        yield 1
        while sent < limit:
            # The last token of a request is drafted by nobody.
            drafted = min(script.k, limit - sent - 1)
            accepted = 0
            while accepted < drafted and self._random.random() < script.alpha:
                accepted += 1
            count.drafted += drafted
            count.accepted += accepted
            count.drafts += drafted > 0
            sent += accepted + 1
            yield accepted + 1

    def _timings(self, predicted_n: int, passes: int, count: Counters) -> dict[str, Any]:
        timings: dict[str, Any] = {
            "cache_n": 0,
            "prompt_n": PROMPT_TOKENS,
            "prompt_ms": PROMPT_MS,
            "predicted_n": predicted_n,
            "predicted_ms": round(passes * self.script.pass_seconds * 1000, 3) if passes else 0.001,
        }
        if count.drafted:
            timings |= {"draft_n": count.drafted, "draft_n_accepted": count.accepted}
        return timings

    async def _until(self, when: float) -> None:
        if self.script.rate:
            await asyncio.sleep(max(0.0, when - asyncio.get_running_loop().time()))

    async def _fail(self, writer: asyncio.StreamWriter) -> bool:
        """Fail in the middle of a stream; whether the stream ends with it."""
        await writer.drain()
        match self.script.failure:
            case Failure.DIE:
                self.die()
            case Failure.CUT:
                writer.close()
            case Failure.HANG:
                await asyncio.Event().wait()
            case Failure.ERROR:
                error = {"code": 500, "message": "Compute error.", "type": "server_error"}
                writer.write(http_chunk(b"error: " + json.dumps(error).encode() + b"\n\n") + http_chunk(b""))
                await writer.drain()
            case _:
                return False
        return True


def _token(n: int, timings: dict[str, Any], *, chat: bool) -> bytes:
    text = ("\n" if n % 12 == 0 else " ") + WORDS[n % len(WORDS)]
    if chat:
        return _data(
            choices=[{"finish_reason": None, "index": 0, "delta": {"content": text}}], timings=timings
        )
    return _data(index=0, content=text, tokens=[n], stop=False, timings=timings)


def _ending(n: int, timings: dict[str, Any], *, chat: bool) -> list[bytes]:
    if not chat:
        return [
            _data(content="", tokens=[], stop=True, stop_type="limit", timings=timings, tokens_predicted=n)
        ]
    return [
        _data(choices=[{"finish_reason": "length", "index": 0, "delta": {}}]),
        _data(choices=[], usage={"completion_tokens": n}, timings=timings),
        b"data: [DONE]\n\n",
    ]


def _data(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None where it was closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *fields = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    length = next((int(f.split(":")[1]) for f in fields if f.lower().startswith("content-length")), 0)
    body = await reader.readexactly(length)
    return Request(method, path, json.loads(body) if body else {})


async def send(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes) -> None:
    """One whole answer."""
    head = f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def send_json(writer: asyncio.StreamWriter, value: Any, status: int = 200) -> None:
    """One whole answer of JSON."""
    await send(writer, status, "application/json; charset=utf-8", json.dumps(value).encode())


async def send_error(writer: asyncio.StreamWriter, status: int, kind: str, message: str) -> None:
    """An error as llama-server words it."""
    await send_json(writer, {"error": {"code": status, "message": message, "type": kind}}, status)


def http_chunk(data: bytes) -> bytes:
    """A chunk of chunked transfer encoding; an empty one ends the answer."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=60.0, help="tokens per second; 0: as fast as possible")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.7)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--fail", type=Failure, choices=list(Failure), default=Failure.NONE)
    parser.add_argument("--after", type=int, default=20, help="tokens before a failure in mid-stream")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    script = Script(
        rate=given.rate,
        k=given.k,
        alpha=given.alpha,
        slots=given.slots,
        failure=given.fail,
        after=given.after,
    )
    async with ScriptedServer(script, port=given.port, seed=given.seed) as server:
        print(server.url, flush=True)  # noqa: T201  whoever started it reads the address here
        await server.down.wait()


if __name__ == "__main__":
    asyncio.run(main())
