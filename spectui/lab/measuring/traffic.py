"""Closed-loop test traffic: a fixed number of requests in flight, each streamed and rebuilt into target passes.

Knows the client and the prompts; what to do with a finished request is the observer's business.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from spectui.core.bet.passes import CumulativeTimings, PassRebuilder, RequestPasses
from spectui.core.profile import OFF, TuningProfile, is_ngram
from spectui.errors import ServerError, SpectuiError
from spectui.lab.workloads.workloads import Prompt
from spectui.llama.http.client import CompletionRequest, LlamaClient

_WARMUP_TOKENS: Final = 32
"""Enough to fill caches and pick clocks; a full answer would only make the user wait."""

_EMPTY_ANSWERS: Final = 10
"""Answers without a single target pass in a row after which the loop gives up instead of spinning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """One request that ended: its passes, its prompt, the text and whether it is part of the measurement."""

    passes: RequestPasses
    prompt: Prompt
    text: str
    limit: int
    """Tokens that it was asked for at most."""
    counted: bool
    stream_seconds: float = 0.0
    """Decode time of all counted requests since one of them ended before, added up over the streams."""
    busy_seconds: float = 0.0
    """Time since then in which at least one decoded."""


class TrafficObserver(Protocol):
    """What the traffic tells while it runs. Calls come from the event loop and must not block."""

    def warmed_up(self) -> None:
        """The warm-up is over; what follows is counted."""

    def decoding_begins(self, at: float) -> None:
        """The first token of a request arrived while no other request was decoding: what came before was idle."""

    def tokens_arrived(self, count: int, at: float, text: str) -> None:
        """`count` tokens reached the client at `at`, by the traffic's clock."""

    def request_ended(self, result: RequestResult) -> None:
        """A request is complete, or was cancelled with what it had."""


@dataclass(slots=True)
class _InFlight:
    rebuilder: PassRebuilder
    counted: bool
    limit: int
    sent: float
    first_token: float | None = None


class BusyClock:
    """Adds up decode time over streams, and the time in which at least one stream decodes."""

    def __init__(self) -> None:
        self._active = 0
        self._since = 0.0
        self._stream_seconds = 0.0
        self._busy_seconds = 0.0

    def change(self, step: int, now: float) -> None:
        """A stream began (+1) or ended (-1) to decode at `now`."""
        self._advance(now)
        self._active += step

    def take(self, now: float) -> tuple[float, float]:
        """Stream seconds and busy seconds since the last call."""
        self._advance(now)
        taken = self._stream_seconds, self._busy_seconds
        self._stream_seconds = self._busy_seconds = 0.0
        return taken

    def _advance(self, now: float) -> None:
        elapsed = max(0.0, now - self._since)
        self._stream_seconds += self._active * elapsed
        self._busy_seconds += elapsed if self._active else 0.0
        self._since = max(self._since, now)


class Traffic:
    """The requests of one segment.

    prompts: distinct ones, endless or as many as there are. cache_prompt: true only for servers that stop
    speculating without it. Raises SpectuiError from `run` when a request fails: a server that fails once is not
    asked on and on.
    """

    def __init__(
        self,
        client: LlamaClient,
        prompts: Iterator[Prompt],
        profile: TuningProfile,
        observer: TrafficObserver,
        *,
        cache_prompt: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._client = client
        self._prompts = prompts
        self._profile = profile
        self._observer = observer
        self._cache_prompt = cache_prompt
        self._clock = clock
        self.draft_length = _known_length(profile)
        """k where it is known: it bounds what a single step of a stream can hold."""
        self._sent = 0
        self._empty = 0
        self._over = False
        self._in_flight: dict[int, _InFlight] = {}
        self.busy = BusyClock()

    @property
    def warmup(self) -> int:
        """Requests that are sent first and not counted."""
        return self._profile.traffic.warmup

    def in_flight(self) -> tuple[RequestPasses, ...]:
        """The counted requests that are still streaming, with the passes that closed so far."""
        return tuple(_collected(f, completed=False) for f in self._in_flight.values() if f.counted)

    async def run(self, *, requests: int | None = None, enough: Callable[[], bool] = lambda: False) -> None:
        """Send the warm-up, then counted requests until so many have ended, or without end.

        enough: asked after each counted request whether it was the last.
        Every stream is kept busy until then, so that the speed is that of all of them; what is still in flight is
        dropped, and what it had counts. Prompts that come to an end before are answered to the last.
        """
        await self._send_all(islice(self._prompts, self.warmup), counted=False)
        self._observer.warmed_up()
        if requests is None or requests > 0:
            await self._send_all(
                self._prompts, counted=True, over=lambda ended: ended == requests or enough()
            )

    async def _send_all(
        self, prompts: Iterator[Prompt], *, counted: bool, over: Callable[[int], bool] = lambda _ended: False
    ) -> None:
        ended = 0
        streams: list[asyncio.Task[None]] = []

        async def stream() -> None:
            nonlocal ended
            while (prompt := next(prompts, None)) is not None:
                await self._send(prompt, counted=counted)
                ended += 1
                self._over = self._over or over(ended)
                if self._over:
                    for other in streams:
                        if other is not asyncio.current_task():
                            other.cancel()
                    return

        try:
            async with asyncio.TaskGroup() as group:
                streams += [group.create_task(stream()) for _ in range(self._profile.traffic.concurrency)]
        except* SpectuiError as failures:
            raise _first(failures) from failures

    async def _send(self, prompt: Prompt, *, counted: bool) -> None:
        number, self._sent = self._sent, self._sent + 1
        request = self._request(prompt, number, counted=counted)
        flight = _InFlight(
            PassRebuilder(self.draft_length, request.max_tokens), counted, request.max_tokens, self._clock()
        )
        self._in_flight[number] = flight
        pieces: list[str] = []
        completed = False
        try:
            async with self._client.stream(request) as events:
                async for event in events:
                    self._take(flight, event.timings, event.text, event.arrived, pieces)
                    completed = completed or event.final
        finally:
            del self._in_flight[number]
            # One that ends while it is being dropped is one too many.
            self._end(flight, prompt, pieces, completed=completed and not self._over)
        self._check_progress(flight)

    def _take(
        self,
        flight: _InFlight,
        timings: CumulativeTimings | None,
        text: str,
        arrived: float,
        pieces: list[str],
    ) -> None:
        if text:
            pieces.append(text)
        if timings is None:
            return
        if flight.first_token is None:
            if all(f.first_token is None for f in self._in_flight.values()):
                self._observer.decoding_begins(arrived)
            flight.first_token = arrived
            if flight.counted:
                self.busy.change(+1, arrived)
        seen = flight.rebuilder.timings.predicted_n
        flight.rebuilder.feed(timings)
        fresh = timings.predicted_n - seen
        if fresh > 0 or text:
            self._observer.tokens_arrived(max(0, fresh), arrived, text)

    def _end(self, flight: _InFlight, prompt: Prompt, pieces: list[str], *, completed: bool) -> None:
        now = self._clock()
        if flight.first_token is not None and flight.counted:
            self.busy.change(-1, now)
        stream_seconds, busy_seconds = self.busy.take(now)
        if completed:
            flight.rebuilder.finish()
        result = RequestResult(
            passes=_collected(flight, completed=completed),
            prompt=prompt,
            text="".join(pieces),
            limit=flight.limit,
            counted=flight.counted,
            stream_seconds=stream_seconds,
            busy_seconds=busy_seconds,
        )
        self._observer.request_ended(result)

    def _check_progress(self, flight: _InFlight) -> None:
        self._empty = 0 if flight.rebuilder.passes else self._empty + 1
        if self._empty >= _EMPTY_ANSWERS:
            raise ServerError(
                f"the model ended {self._empty} answers in a row at once: "
                "choose another workload, or set traffic.ignore_eos"
            )

    def _request(self, prompt: Prompt, number: int, *, counted: bool) -> CompletionRequest:
        traffic, sampling = self._profile.traffic, self._profile.sampling
        limit = min(traffic.max_tokens, prompt.max_tokens or traffic.max_tokens)
        return CompletionRequest(
            prompt=prompt.text,
            messages=tuple({"role": m.role, "content": m.content} for m in prompt.messages)
            if prompt.messages is not None
            else None,
            max_tokens=limit if counted else min(limit, _WARMUP_TOKENS),
            temperature=sampling.temperature,
            seed=(sampling.seed + number) % 2**31,
            cache_prompt=self._cache_prompt,
            ignore_eos=traffic.ignore_eos,
        )


def _known_length(profile: TuningProfile) -> int | None:
    speculation = profile.speculation
    if speculation.mode == OFF or is_ngram(speculation.mode):
        return None
    return speculation.draft_length


def _collected(flight: _InFlight, *, completed: bool) -> RequestPasses:
    rebuilder = flight.rebuilder
    passes = rebuilder.passes
    seen = rebuilder.timings
    ttft = None if flight.first_token is None else (flight.first_token - flight.sent) * 1000
    return RequestPasses(
        passes=passes,
        drafted=sum(p.drafted for p in passes),
        accepted=sum(p.accepted for p in passes),
        predicted_n=seen.predicted_n,
        predicted_ms=seen.predicted_ms,
        prompt_n=seen.prompt_n,
        prompt_ms=seen.prompt_ms,
        ttft_ms=ttft,
        completed=completed,
    )


def _first(failures: BaseExceptionGroup[SpectuiError]) -> SpectuiError:
    found: BaseException = failures
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, SpectuiError) else ServerError(str(found))


class RateMeter:
    """Tokens per second over the last few seconds of decoding; waiting for prompts does not count."""

    def __init__(self, window: float = 6.0) -> None:
        self._window = window
        self._arrivals: list[tuple[float, int]] = []
        self._idle = 0.0
        self._latest = 0.0

    def resume(self, at: float) -> None:
        """Decoding begins at `at` after nothing was decoding: the time since the last token was idle."""
        if self._arrivals:
            self._idle += max(0.0, at - self._latest)
        self._latest = at

    def add(self, count: int, at: float) -> None:
        """`count` tokens arrived at `at` seconds."""
        self._latest = at
        self._arrivals.append((at - self._idle, count))

    def rate(self, now: float) -> float | None:
        """Tokens per second; None while too little arrived to tell, or when nothing came for the whole window."""
        if now - self._latest > self._window:
            return None
        end = self._latest - self._idle
        self._arrivals = [(t, n) for t, n in self._arrivals if t > end - self._window]
        if len(self._arrivals) < 2:
            return None
        span = end - self._arrivals[0][0]
        tokens = sum(n for _, n in self._arrivals[1:])
        return tokens / span if span > 0.2 else None

    def clear(self) -> None:
        """Forget everything, as after a restart."""
        self._arrivals.clear()
        self._idle = 0.0
