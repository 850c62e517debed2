"""Everything that is asked of a running server over HTTP, and the errors that this can end in.

What the answers mean is in wire.py. The same client speaks to a server of our own and to somebody else's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import httpx

from spectui.core.bet.passes import CumulativeTimings
from spectui.errors import ServerError, ServerGone, UsageError
from spectui.llama.http.address import server_address
from spectui.llama.http.sse import SseSplitter
from spectui.llama.http.streams import OpenStream, silent, translated
from spectui.llama.http.wire import (
    CompletionRequest,
    Health,
    ModelInfo,
    Props,
    SlotInfo,
    StreamEvent,
    StreamReader,
    error_of,
    parse_object,
    read_timings,
)

__all__ = [
    "CompletionRequest",
    "Health",
    "LlamaClient",
    "ModelInfo",
    "Props",
    "SlotInfo",
    "StreamEvent",
    "Timeouts",
    "normalise_url",
]

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Longest answer that is read whole; the largest real ones are props with a long chat template."""
MAX_ERROR_BYTES: Final = 64 * 1024
"""How much of an error's body is read; the rest is somebody's HTML."""
_KEPT: Final = 4
"""Connections for control requests that are kept open."""
_LOST: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
_KEEPALIVE_S: Final = 2.0
"""llama-server drops idle connections after 5 s; reusing one at that moment would look like a lost server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait, in seconds."""

    connect: float = 5.0
    """Until a connection stands."""
    control: float = 15.0
    """Until a control request is answered; a busy server answers between two batches only."""
    silence: float = 600.0
    """Between two chunks of a stream, a long prompt's processing included."""


class LlamaClient:
    """One server's HTTP interface. Close it with `aclose` or use it as an async context manager.

    Every method raises ServerGone when the connection is refused or lost, Unauthorized for a wrong key, and
    ServerError for any other wrong answer; the message is one line.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.perf_counter,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.base_url = normalise_url(base_url)
        self._clock = clock
        self._open: set[OpenStream] = set()
        limits = timeouts or Timeouts()
        self._silence = limits.silence
        self._control_seconds = limits.control

        def http(read: float, *, kept: int) -> httpx.AsyncClient:
            return httpx.AsyncClient(
                transport=transport,
                headers=_headers(api_key),
                timeout=httpx.Timeout(read, connect=limits.connect, pool=None),
                limits=httpx.Limits(
                    max_connections=None, max_keepalive_connections=kept, keepalive_expiry=_KEEPALIVE_S
                ),
                # Loading the certificates takes 20 ms, and a loopback server has none.
                verify=self.base_url.startswith("https:"),
                trust_env=False,
                follow_redirects=False,
            )

        self._control = http(limits.control, kept=_KEPT)
        # A stream has a connection of its own: now and then llama-server closes one right after a stream, and a
        # completion that was lost with it cannot be asked again, since the server may have begun.
        self._streaming = http(limits.silence, kept=0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close open streams, then all connections."""
        await self.close_streams()
        await self._streaming.aclose()
        await self._control.aclose()

    @property
    def open_streams(self) -> int:
        """Streams that are open now."""
        return len(self._open)

    async def close_streams(self) -> None:
        """End all open streams at once; their readers get ServerGone.

        Needed before a server is stopped: it would wait for its clients, 30 s and more.
        """
        await asyncio.gather(*(stream.close() for stream in tuple(self._open)))

    async def health(self, *, timeout: float | None = None) -> Health:  # noqa: ASYNC109  it bounds each read too
        """Whether the server is ready. Raises ServerError when what answers is no such server, or hangs."""
        try:
            status, body = await self._fetch("GET", "/health", limit=MAX_ERROR_BYTES, timeout=timeout)
        except ServerGone:
            return Health.UNREACHABLE
        if status == 503:
            return Health.LOADING
        if status != 200:
            raise error_of(status, _object_or_none(body), where=f"{self.base_url}/health")
        if body.strip() and parse_object(body).get("status") == "loading model":
            return Health.LOADING
        return Health.OK

    async def props(self) -> Props:
        """`/props`: build, model, slots and context."""
        return Props.read(parse_object(await self._get("/props")))

    async def slots(self) -> tuple[SlotInfo, ...]:
        """`/slots`: whether each slot speculates and works. Raises Unsupported where it is switched off."""
        body = await self._get("/slots")
        return tuple(SlotInfo.read(slot) for slot in _objects(body, "/slots"))

    async def metrics_text(self) -> str:
        """`/metrics` as text. Resets the server's gauges. Raises Unsupported without --metrics."""
        return (await self._get("/metrics")).decode("utf-8", "replace")

    async def models(self) -> tuple[ModelInfo, ...]:
        """`/v1/models`; a router lists every model it knows, with its state."""
        listed = parse_object(await self._get("/v1/models")).get("data")
        if not isinstance(listed, list):
            raise ServerError(f"{self.base_url}/v1/models lists no models; is this a llama-server?")
        return tuple(ModelInfo.read(model) for model in listed if isinstance(model, dict))

    async def token_ids(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """Tokens of `text` in the target's vocabulary. special: with special tokens, as a prompt is read."""
        data = {"content": text, "add_special": special, "parse_special": special}
        body = await self._call("POST", "/tokenize", data=data)
        tokens = parse_object(body).get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(t, int) for t in tokens):
            raise ServerError(f"{self.base_url}/tokenize returned no tokens; is this a llama-server?")
        return tuple(tokens)

    async def templated(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The prompt that the model's chat template makes of messages."""
        body = await self._call("POST", "/apply-template", data={"messages": list(messages)})
        prompt = parse_object(body).get("prompt")
        if not isinstance(prompt, str):
            raise ServerError(f"{self.base_url}/apply-template returned no prompt; is this a llama-server?")
        return prompt

    async def prompt_only(self, tokens: Sequence[int], *, slot: int) -> CumulativeTimings:
        """Process a prompt given as tokens, reusing what the slot has cached, and predict one token."""
        data = {
            "prompt": list(tokens),
            "n_predict": 1,
            "cache_prompt": True,
            "id_slot": slot,
            "temperature": 0,
            "stream": False,
        }
        body = parse_object(await self._call("POST", "/completion", data=data, timeout=self._silence))
        timings = body.get("timings")
        if timings is None:
            raise ServerError(f"{self.base_url}/completion reports no timings; is this a llama-server?")
        return read_timings(timings)

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """Send `request`; inside the block, iterate over its events. Leaving the block closes the connection.

        An unfinished answer is cancelled on the server by that. The iteration ends after the final event, or
        raises: an answer never just stops.
        """
        url = self.base_url + request.path
        opened = OpenStream(url)
        self._open.add(opened)
        events: AsyncGenerator[StreamEvent] | None = None
        try:
            with translated(url, opened):
                ready = self._streaming.build_request("POST", url, json=request.body())
                response = await opened.send(self._streaming, ready)
                await _refuse_other_answers(response, url)
                events = self._events(response, opened)
            yield events
        finally:
            if events is not None:
                await events.aclose()
            await opened.close()
            self._open.discard(opened)

    async def _events(self, response: httpx.Response, opened: OpenStream) -> AsyncGenerator[StreamEvent]:
        splitter, reader, clock = SseSplitter(), StreamReader(), self._clock
        with translated(opened.url, opened):
            async for chunk in response.aiter_bytes():
                arrived = clock()
                for name, payload in splitter.feed(chunk):
                    event = reader.read(name, payload, arrived)
                    if event is not None:
                        yield event
                if reader.finished:
                    return
        arrived = clock()
        for name, payload in splitter.end():
            event = reader.read(name, payload, arrived)
            if event is not None:
                yield event
        if not reader.finished:
            event = reader.end(arrived)
            if event is None:
                raise ServerGone(f"{opened.url} ended its answer in the middle; see the server's log")
            yield event

    async def _get(self, path: str) -> bytes:
        return await self._call("GET", path)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        data: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpx takes it
    ) -> bytes:
        status, body = await self._fetch(method, path, data=data, timeout=timeout)
        if status != 200:
            raise error_of(status, _object_or_none(body), where=self.base_url + path)
        return body

    async def _fetch(
        self,
        method: str,
        path: str,
        *,
        data: Mapping[str, Any] | None = None,
        limit: int = MAX_BODY_BYTES,
        timeout: float | None = None,  # noqa: ASYNC109  httpx takes it
    ) -> tuple[int, bytes]:
        url = self.base_url + path
        bound = httpx.USE_CLIENT_DEFAULT if timeout is None else httpx.Timeout(timeout, pool=None)
        # httpx bounds each read; a server that drips bytes would never end.
        whole = 2 * (self._control_seconds if timeout is None else timeout)
        request = self._control.build_request(method, url, json=data, timeout=bound)
        response: httpx.Response | None = None
        with translated(url):
            try:
                async with asyncio.timeout(whole):
                    response = await self._sent(request)
                    return response.status_code, await _read(response, url, limit)
            except (TimeoutError, httpx.ReadTimeout):
                # Where this program got no processor, both bounds are over before either is seen: what is said
                # depends on how far the answer came, not on which of them is seen first.
                raise silent(url) if response is None else _unfinished(url) from None
            finally:
                if response is not None:
                    await response.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._control.send(request, stream=True)
        except _LOST:
            # The server closed a kept connection while the request was on its way.
            return await self._control.send(request, stream=True)


def _unfinished(url: str) -> ServerError:
    return ServerError(f"{url} did not finish its answer in time; is this a llama-server?")


def normalise_url(text: str) -> str:
    """Base address from what people type, as `server_address`; also checked by httpx. Raises UsageError."""
    base = server_address(text)
    try:
        httpx.URL(base)
    except httpx.InvalidURL:
        raise UsageError(f"{text[:80]!r} is no server address; give one like http://127.0.0.1:8080") from None
    return base


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": "spectui"}
    if api_key:
        if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
            raise UsageError(
                "the API key holds characters that cannot be sent; check the variable that holds it"
            )
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


async def _read(response: httpx.Response, url: str, limit: int) -> bytes:
    """The whole body. Raises ServerError when it exceeds `limit` bytes; an error's body is cut instead."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if response.status_code != 200 and len(body) >= MAX_ERROR_BYTES:
            break
        if len(body) > limit:
            raise ServerError(f"{url} sent more than {limit} bytes; is this a llama-server?")
    return bytes(body)


async def _refuse_other_answers(response: httpx.Response, url: str) -> None:
    if response.status_code != 200:
        body = _object_or_none(await _read(response, url, MAX_ERROR_BYTES))
        raise error_of(response.status_code, body, where=url)
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        body = _object_or_none(await _read(response, url, MAX_BODY_BYTES))
        if body is not None and body.get("error") is not None:
            raise error_of(500, body, where=url)
        raise ServerError(f"{url} did not answer with a stream; is this a llama-server?", status=200)


def _object_or_none(body: bytes) -> dict[str, Any] | None:
    with suppress(ServerError):
        return parse_object(body)
    return None


def _objects(body: bytes, path: str) -> list[dict[str, Any]]:
    try:
        listed = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ServerError(f"{path} did not list anything; is this a llama-server?")
    return listed
