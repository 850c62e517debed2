from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from spectui.errors import ServerError, ServerGone, Unauthorized, Unsupported, UsageError
from spectui.llama.http.client import (
    CompletionRequest,
    Health,
    LlamaClient,
    StreamEvent,
    Timeouts,
    normalise_url,
)

STREAMS = Path(__file__).parents[2] / "data" / "streams"
RAW = CompletionRequest(prompt="p")
CHAT = CompletionRequest(messages=({"role": "user", "content": "hi"},))
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

Handler = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Scripted:
    """A server on a free port that does to each connection what the test says."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.connections = 0
        self.gone = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await read_head(reader):
                await self._handler(head, reader, writer)
        except ConnectionError:
            pass
        finally:
            self.gone.set()
            writer.close()


async def read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    length = next(
        (int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")), 0
    )
    await reader.readexactly(length)
    return head


def http_chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


async def until_gone(reader: asyncio.StreamReader) -> None:
    while await reader.read(1000):
        pass


async def collect(client: LlamaClient, request: CompletionRequest) -> list[StreamEvent]:
    async with client.stream(request) as events:
        return [e async for e in events]


def answering(status: int = 200, **options: Any) -> LlamaClient:
    return LlamaClient(
        "http://test",
        transport=httpx.MockTransport(lambda _: httpx.Response(status, **options)),
    )


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        (" localhost:8080/ ", "http://localhost:8080"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/v1/", "http://h:1"),
        ("https://h/upstream/m/v1", "https://h/upstream/m"),
        ("HTTP://h", "http://h"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("h:", "http://h"),
    ],
)
def test_addresses_are_normalised(typed: str, url: str) -> None:
    assert normalise_url(typed) == url


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ftp://h",
        "file:///etc/passwd",
        "http://u:p@h",
        "http://h:99999",
        "http://h:port",
        "http://h:0",
        "http://a b",
        "http://h\x1b[31m",
        "http://",
        "http://h/?q=1",
        "http://h/#f",
        "http://[::1",
        "http://\u0378",
    ],
)
def test_other_addresses_are_refused_in_one_line(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        normalise_url(typed)
    assert str(caught.value).isprintable()
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("key", ["ключ", "two\nlines", " space "])
def test_a_key_that_cannot_be_sent_is_refused(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        LlamaClient("http://h", api_key=key)
    assert key not in str(caught.value)


async def test_the_key_travels_as_bearer_and_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    heads: list[bytes] = []

    async def serve(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}')

    async with Scripted(serve) as server, LlamaClient(server.url, api_key="k3y") as client:
        assert await client.health() is Health.OK
    assert b"Authorization: Bearer k3y\r\n" in heads[0]


@pytest.mark.parametrize(
    ("status", "body", "health"),
    [
        (200, b'{"status":"ok"}', Health.OK),
        (200, b"", Health.OK),
        (200, b'{"status":"loading model"}', Health.LOADING),
        (503, b'{"error":{"message":"Loading model","code":503}}', Health.LOADING),
    ],
)
async def test_health(status: int, body: bytes, health: Health) -> None:
    async with answering(status, content=body) as client:
        assert await client.health() is health


async def test_nothing_there_is_unreachable_and_gone(unused_tcp_port: int) -> None:
    async with LlamaClient(f"127.0.0.1:{unused_tcp_port}") as client:
        assert await client.health() is Health.UNREACHABLE
        with pytest.raises(ServerGone, match="nothing answers"):
            await client.props()
        with pytest.raises(ServerGone, match="nothing answers"):
            await collect(client, RAW)


@pytest.mark.parametrize(
    ("status", "options", "kind", "words"),
    [
        (401, {"json": {"error": {"message": "Invalid API Key", "code": 401}}}, Unauthorized, "API key"),
        (
            501,
            {"json": {"error": {"message": "Start it with `--slots`", "code": 501}}},
            Unsupported,
            "--slots",
        ),
        (404, {"html": "<h1>404</h1>"}, ServerError, "address of a llama-server"),
        (405, {"text": "no"}, ServerError, "address of a llama-server"),
        (302, {"headers": {"location": "http://elsewhere"}}, ServerError, "302"),
        (503, {"json": {"error": {"message": "Loading model", "code": 503}}}, ServerError, "Loading model"),
        (500, {"content": b"\xff" * 200_000}, ServerError, "no reason given"),
    ],
)
async def test_refusals_are_the_same_for_control_and_stream(
    status: int, options: dict[str, object], kind: type[ServerError], words: str
) -> None:
    async with answering(status, **options) as client:
        for call in (client.slots(), client.props(), client.metrics_text(), collect(client, RAW)):
            with pytest.raises(ServerError) as caught:
                await call
            assert type(caught.value) is kind
            assert words in str(caught.value)
            assert caught.value.status == status
            assert str(caught.value).isprintable()


@pytest.mark.parametrize("options", [{"html": "<html>hello</html>"}, {"json": {"a": 1}}, {"content": b""}])
async def test_what_is_no_llama_server_is_named_so(options: dict[str, object]) -> None:
    async with answering(200, **options) as client:
        for call in (client.slots(), client.models(), client.token_ids("x"), collect(client, CHAT)):
            with pytest.raises(ServerError, match="llama-server"):
                await call


async def test_html_is_not_healthy() -> None:
    async with answering(200, html="<html>") as client:
        with pytest.raises(ServerError, match="not JSON"):
            await client.health()


async def test_an_error_object_instead_of_a_stream() -> None:
    async with answering(200, json={"error": {"code": 500, "message": "no slot"}}) as client:
        with pytest.raises(ServerError, match="no slot"):
            await collect(client, RAW)


async def test_a_huge_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectui.llama.http.client.MAX_BODY_BYTES", 1000)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    async with answering(200, content=endless()) as client:
        with pytest.raises(ServerError, match="sent more than"):
            await client.health()


async def test_control_answers() -> None:
    answers = {
        "/slots": [{"id": 0, "speculative": True, "is_processing": False, "n_ctx": 512}],
        "/v1/models": {
            "data": [
                {"id": "a"},
                {"id": "b", "status": {"value": "loaded", "args": ["llama-server", "-m", "x"]}},
                "nonsense",
            ]
        },
        "/tokenize": {"tokens": [1, 2, 3]},
        "/props": {"total_slots": 2},
    }

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            return httpx.Response(200, text="llamacpp:n_decode_total 3\n")
        return httpx.Response(200, json=answers[request.url.path])

    async with LlamaClient("http://t", transport=httpx.MockTransport(handle)) as client:
        (slot,) = await client.slots()
        assert (slot.speculative, slot.types) == (True, None)
        first, second = await client.models()
        assert (first.name, first.status) == ("a", None)
        assert (second.status, second.args) == ("loaded", ("llama-server", "-m", "x"))
        assert len(await client.token_ids("text")) == 3
        assert (await client.props()).total_slots == 2
        assert await client.metrics_text() == "llamacpp:n_decode_total 3\n"


@pytest.mark.parametrize(("request_", "name"), [(RAW, "completion"), (CHAT, "chat")])
@pytest.mark.parametrize("size", [1, 97, 1 << 20])
async def test_a_recorded_stream_over_http(request_: CompletionRequest, name: str, size: int) -> None:
    raw = (STREAMS / f"b10434-draft-{name}.txt").read_bytes()
    asked: list[dict[str, object]] = []

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), size):
            yield raw[start : start + size]

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(
            200, headers={"content-type": "text/event-stream; charset=utf-8"}, content=chunks()
        )

    ticks = iter(range(1_000_000))
    async with LlamaClient(
        "http://t", transport=httpx.MockTransport(handle), clock=lambda: float(next(ticks))
    ) as client:
        events = await collect(client, request_)

    assert asked == [request_.body()]
    assert events[-1].final
    assert events[-1].timings is not None
    assert events[-1].timings.draft_n == (87 if name == "completion" else 72)
    assert [e.arrived for e in events] == sorted(e.arrived for e in events)


async def test_a_stream_has_a_connection_of_its_own_and_control_requests_share_one() -> None:
    async def serve(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"GET"):
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}')
        else:
            writer.write(SSE_HEAD + http_chunk(event(content="x", stop=True)) + b"0\r\n\r\n")

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        for _ in range(3):
            assert [e.final for e in await collect(client, RAW)] == [True]
            await client.health()
        assert (server.connections, client.open_streams) == (4, 0)


@pytest.mark.parametrize("losses", [1, 2])
async def test_a_control_request_lost_with_a_kept_connection_is_asked_once_more(losses: int) -> None:
    left = [losses]

    async def serve(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionResetError
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"total_slots":1}')

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        if losses == 1:
            assert (await client.props()).total_slots == 1
        else:
            with pytest.raises(ServerGone, match="lost"):
                await client.props()


async def test_leaving_the_block_closes_the_connection() -> None:
    async def serve(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        await until_gone(reader)

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        async with client.stream(RAW) as events:
            assert (await anext(events)).text == "x"
            assert client.open_streams == 1
        assert client.open_streams == 0
        async with asyncio.timeout(5):
            await server.gone.wait()


@pytest.mark.parametrize("answers", [True, False])
async def test_cancelling_the_reader_closes_the_connection(answers: bool) -> None:
    async def serve(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        if answers:
            writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        await until_gone(reader)

    asked = asyncio.Event()
    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        task = asyncio.create_task(collect(client, RAW))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.open_streams == 0
        async with asyncio.timeout(5):
            await server.gone.wait()


@pytest.mark.parametrize("answers", [True, False])
async def test_close_streams_ends_all_readers(answers: bool) -> None:
    arrived = asyncio.Semaphore(0)

    async def serve(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answers:
            writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        arrived.release()
        await until_gone(reader)

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        tasks = [asyncio.create_task(collect(client, RAW)) for _ in range(5)]
        for _ in tasks:
            await arrived.acquire()
        await client.close_streams()
        async with asyncio.timeout(5):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(r) for r in results] == [ServerGone] * 5
        assert "closed here" in str(results[0])
        assert client.open_streams == 0


async def test_close_streams_while_the_reader_is_busy_elsewhere() -> None:
    async def serve(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        await until_gone(reader)

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        async with client.stream(RAW) as events:
            await anext(events)
            await client.close_streams()
            with pytest.raises(ServerGone, match="closed here"):
                await anext(events)
        assert client.open_streams == 0


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        http_chunk(b'data: {"content":"half'),
        http_chunk(event(content="y", stop=False)) + b"0\r\n\r\n",
    ],
)
async def test_a_stream_that_breaks_off_is_gone(rest: bytes) -> None:
    async def serve(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)) + rest)
        await writer.drain()
        writer.close()

    async with Scripted(serve) as server, LlamaClient(server.url) as client, client.stream(RAW) as events:
        assert (await anext(events)).text == "x"
        with pytest.raises(ServerGone):
            async for _ in events:
                pass


async def test_a_final_event_followed_by_a_lost_connection_is_complete() -> None:
    async def serve(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=True)))
        await writer.drain()
        writer.close()

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        assert [e.final for e in await collect(client, RAW)] == [True]


async def test_an_error_in_the_middle_of_a_stream() -> None:
    body = event(content="x", stop=False) + event(
        error={"code": 500, "message": "decode() failed", "type": "server"}
    )
    client = answering(200, headers={"content-type": "text/event-stream"}, content=body)
    async with client, client.stream(RAW) as events:
        await anext(events)
        with pytest.raises(ServerError, match=r"500: decode\(\) failed") as caught:
            await anext(events)
    assert caught.value.status == 500


async def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1_000_000

    async with answering(200, headers={"content-type": "text/event-stream"}, content=endless()) as client:
        with pytest.raises(ServerError, match="an event of more than"):
            await collect(client, RAW)


@pytest.mark.parametrize("stalled", [0.0, 0.3], ids=["a free processor", "a processor taken away"])
async def test_a_silent_server_is_named_and_not_gone(stalled: float) -> None:
    async def serve(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        # Client and server share this loop: when it goes on, every bound of the client is over at once.
        time.sleep(stalled)  # noqa: ASYNC251
        await until_gone(reader)

    limits = Timeouts(control=0.05, silence=0.05)
    async with Scripted(serve) as server, LlamaClient(server.url, timeouts=limits) as client:
        for call in (client.slots(), client.health(), collect(client, RAW)):
            with pytest.raises(ServerError, match="did not answer in time") as caught:
                await call
            assert not isinstance(caught.value, ServerGone)


@pytest.mark.parametrize("stalled", [0.0, 0.3], ids=["a free processor", "a processor taken away"])
async def test_an_answer_that_drips_is_ended_and_named(stalled: float) -> None:
    async def serve(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            await asyncio.sleep(0.005)
            writer.write(b"x")
            await writer.drain()
            time.sleep(stalled)  # noqa: ASYNC251

    async with Scripted(serve) as server, LlamaClient(server.url, timeouts=Timeouts(control=0.1)) as client:
        with pytest.raises(ServerError, match="did not finish its answer in time") as caught:
            await client.props()
        assert not isinstance(caught.value, ServerGone)


async def test_what_is_no_http_is_gone_in_one_line() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with LlamaClient(f"127.0.0.1:{port}") as client:
        with pytest.raises(ServerGone, match="lost"):
            await client.props()
    server.close()
    await server.wait_closed()


async def test_aclose_closes_open_streams_first() -> None:
    async def serve(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        await until_gone(reader)

    async with Scripted(serve) as server:
        client = LlamaClient(server.url)
        async with client.stream(RAW) as events:
            await anext(events)
            await client.aclose()
            async with asyncio.timeout(5):
                await server.gone.wait()
        assert client.open_streams == 0


async def test_sixty_four_streams_and_control_at_once() -> None:
    release = asyncio.Event()

    async def serve(head: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"GET"):
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}')
            return
        writer.write(SSE_HEAD + http_chunk(event(content="x", stop=False)))
        await release.wait()
        writer.write(http_chunk(event(content="", stop=True)) + b"0\r\n\r\n")

    async with Scripted(serve) as server, LlamaClient(server.url) as client:
        tasks = [asyncio.create_task(collect(client, RAW)) for _ in range(64)]
        async with asyncio.timeout(20):
            while server.connections < 64:  # noqa: ASYNC110  nothing signals it
                await asyncio.sleep(0)
            assert await client.health() is Health.OK
            release.set()
            assert [len(r) for r in await asyncio.gather(*tasks)] == [2] * 64
