"""What travels between client and server, as values: request bodies, stream events, props, slots, errors.

Pure, so that recorded answers can be replayed without HTTP. JSON is read field by field: the stream is the hot
path, and servers of all eras and makers leave fields out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from spectui.core.bet.passes import CumulativeTimings
from spectui.core.text import one_line
from spectui.errors import ServerError, Unauthorized, Unsupported, UsageError
from spectui.llama.http.sse import ERROR

_MESSAGE_LIMIT: Final = 300
_TYPE_NONE: Final = "none"
_CHAT_STOPS: Final = {"stop": "eos", "length": "limit"}
_OLD_STOPS: Final = (("stopped_eos", "eos"), ("stopped_limit", "limit"), ("stopped_word", "word"))


class Health(StrEnum):
    """What `/health` says."""

    OK = "ok"
    LOADING = "loading"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One request: raw text that the model continues (`prompt`), or a chat (`messages`), exactly one of them."""

    prompt: str | None = None
    """Raw text for /completion."""
    messages: tuple[Mapping[str, Any], ...] | None = None
    """Chat messages for /v1/chat/completions, which applies the model's template."""
    max_tokens: int = 200
    """Tokens at most."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    seed: int | None = None
    """Seed of the sampler; None leaves it to the server."""
    cache_prompt: bool = False
    """Whether a common prefix with the slot's last prompt is reused. False turns speculation off in b4164-b6722."""
    ignore_eos: bool = False
    """Whether the answer goes on past the model's end token."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the body; they win over the ones above."""

    def __post_init__(self) -> None:
        if (self.prompt is None) == (self.messages is None):
            raise UsageError("a request needs either a prompt or messages, and not both")

    @property
    def path(self) -> str:
        """Endpoint that takes this request."""
        return "/completion" if self.messages is None else "/v1/chat/completions"

    def body(self) -> dict[str, Any]:
        """The JSON body, streamed and with timings in every chunk."""
        body: dict[str, Any] = {
            "temperature": self.temperature,
            "cache_prompt": self.cache_prompt,
            "ignore_eos": self.ignore_eos,
            "timings_per_token": True,
            "stream": True,
        }
        if self.seed is not None:
            body["seed"] = self.seed
        if self.messages is None:
            body |= {"prompt": self.prompt, "n_predict": self.max_tokens, "return_tokens": False}
        else:
            body |= {
                "messages": list(self.messages),
                "max_tokens": self.max_tokens,
                "stream_options": {"include_usage": True},
            }
        return body | dict(self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One chunk of an answer."""

    text: str
    """New text; empty in chunks that only carry numbers or roles. Untrusted."""
    arrived: float
    """When its bytes arrived, on the client's clock, in seconds."""
    timings: CumulativeTimings | None = None
    """Cumulative timings, None where the server sends none."""
    tokens: int | None = None
    """Tokens in this chunk, where the server lists them."""
    final: bool = False
    """Whether the answer ends here; there is exactly one such event, the last, in an answer that was not cut."""
    stop_reason: str | None = None
    """eos, limit, word or what else the server calls it; chat cannot tell a stop word from eos and says eos."""
    truncated: bool = False
    """Whether the context overflowed and was shifted or cut."""


class StreamReader:
    """Payloads of one answer's events -> StreamEvents, for both formats; `finished` once the final one was made."""

    __slots__ = ("_last", "_stop", "finished")

    def __init__(self) -> None:
        self._last: CumulativeTimings | None = None
        self._stop: str | None = None
        self.finished = False

    def read(self, name: bytes, payload: bytes, arrived: float) -> StreamEvent | None:
        """The event of one payload, None if it says nothing. Raises ServerError for errors and malformed chunks."""
        if payload == b"[DONE]":
            return None if self.finished else self._final(arrived)
        chunk = parse_object(payload)
        if name == ERROR or chunk.get("error") is not None:
            raise error_of(500, chunk, where="the answer")
        raw = chunk.get("timings")
        timings = None if raw is None else read_timings(raw)
        if timings is not None:
            self._last = timings
        choices = chunk.get("choices")
        if choices is None:
            return self._completion(chunk, timings, arrived)
        return self._chat(choices, timings, arrived)

    def end(self, arrived: float) -> StreamEvent | None:
        """The final event when the stream ends without the usual mark, None when it was cut in the middle."""
        return self._final(arrived) if self._stop is not None and not self.finished else None

    def _completion(
        self, chunk: dict[str, Any], timings: CumulativeTimings | None, arrived: float
    ) -> StreamEvent:
        final = chunk.get("stop") is True
        if final:
            self.finished = True
            self._stop = _stop_type(chunk)
        return StreamEvent(
            text=_text(chunk.get("content")),
            arrived=arrived,
            timings=timings,
            tokens=_count(chunk.get("tokens")),
            final=final,
            stop_reason=self._stop,
            truncated=chunk.get("truncated") is True,
        )

    def _chat(self, choices: Any, timings: CumulativeTimings | None, arrived: float) -> StreamEvent:
        if not choices:
            return self._final(arrived)
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise ServerError("the answer has a chunk whose choices are malformed; is this a llama-server?")
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = _text(delta.get("reasoning_content")) + _text(delta.get("content"))
        else:
            text = _text(choice.get("text"))
        reason = choice.get("finish_reason")
        if reason is not None:
            self._stop = _CHAT_STOPS.get(str(reason), one_line(str(reason), 40))
        return StreamEvent(
            text=text,
            arrived=arrived,
            timings=timings,
            tokens=_count(choice.get("token_ids")),
            stop_reason=self._stop,
        )

    def _final(self, arrived: float) -> StreamEvent:
        self.finished = True
        return StreamEvent(text="", arrived=arrived, timings=self._last, final=True, stop_reason=self._stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Props:
    """What `/props` tells; None where this build does not say."""

    build_info: str | None = None
    """Build as b<number>-<commit>; distributions and forks often report number 1."""
    model_path: str | None = None
    """Target file as the server was given it."""
    model_alias: str | None = None
    """Name under which the model is served."""
    total_slots: int | None = None
    """Slots."""
    n_ctx: int | None = None
    """Context of one slot, in tokens."""
    speculative: bool | None = None
    """Whether slots speculate, in builds that say it here (before mid-2026 only)."""
    endpoint_slots: bool | None = None
    """Whether /slots is offered."""
    endpoint_metrics: bool | None = None
    """Whether /metrics is offered."""
    sleeping: bool | None = None
    """Whether the server sleeps until the next request."""
    chat_template: bool | None = None
    """Whether the model brings a chat template."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Props:
        """From the JSON object."""
        defaults = data.get("default_generation_settings")
        defaults = defaults if isinstance(defaults, dict) else {}
        template = data.get("chat_template")
        return cls(
            build_info=_word(data.get("build_info")),
            model_path=_word(data.get("model_path")),
            model_alias=_word(data.get("model_alias")),
            total_slots=_whole(data.get("total_slots")),
            n_ctx=_whole(defaults.get("n_ctx")),
            speculative=_switch(defaults.get("speculative")),
            endpoint_slots=_switch(data.get("endpoint_slots")),
            endpoint_metrics=_switch(data.get("endpoint_metrics")),
            sleeping=_switch(data.get("is_sleeping")),
            chat_template=bool(template) if isinstance(template, str) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotInfo:
    """One slot of `/slots`; None where this build, or a slot that never had a task, does not say."""

    id: int
    """Number of the slot."""
    is_processing: bool
    """Whether it works on a request."""
    speculative: bool | None = None
    """Whether it speculates: the one reliable on/off signal."""
    types: tuple[str, ...] | None = None
    """Speculation types of its last task; () is off. Servers write "none,draft-simple" for draft-simple."""
    n_ctx: int | None = None
    """Context, in tokens."""
    n_decoded: int | None = None
    """Tokens generated for the current request; moves live."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> SlotInfo:
        """From the slot's JSON object."""
        params = data.get("params")
        params = params if isinstance(params, dict) else {}
        following = data.get("next_token")
        if isinstance(following, list):
            following = following[0] if following else None
        return cls(
            id=_whole(data.get("id")) or 0,
            is_processing=data.get("is_processing") is True,
            speculative=_switch(data.get("speculative")),
            types=read_types(params.get("speculative.types", params.get("speculative.type"))),
            n_ctx=_whole(data.get("n_ctx")),
            n_decoded=_whole(following.get("n_decoded")) if isinstance(following, dict) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """One model of `/v1/models`."""

    name: str
    """Its id."""
    status: str | None = None
    """loaded, loading, unloaded, sleeping, ...: routers only."""
    args: tuple[str, ...] = ()
    """Command line of the model's own server: routers only."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ModelInfo:
        """From the model's JSON object."""
        status = data.get("status")
        status = status if isinstance(status, dict) else {}
        args = status.get("args")
        return cls(
            name=_word(data.get("id")) or "",
            status=_word(status.get("value")),
            args=tuple(one_line(str(a)) for a in args) if isinstance(args, list) else (),
        )


def read_types(value: Any) -> tuple[str, ...] | None:
    """Speculation types without the leading "none" that servers add; () is off, None unknown."""
    if not isinstance(value, str):
        return None
    names = (one_line(name.strip(), 60) for name in value.split(","))
    return tuple(name for name in names if name and name != _TYPE_NONE)


def read_timings(raw: Any) -> CumulativeTimings:
    """The `timings` object of a chunk. Raises ServerError when a number is missing or none."""
    try:
        get = raw.get
        timings = CumulativeTimings(
            predicted_n=int(raw["predicted_n"]),
            predicted_ms=float(raw["predicted_ms"]),
            draft_n=int(get("draft_n", 0)),
            draft_n_accepted=int(get("draft_n_accepted", 0)),
            prompt_n=int(get("prompt_n", 0)),
            prompt_ms=float(get("prompt_ms", 0.0)),
            cache_n=int(get("cache_n", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ServerError("the answer's timings are malformed; is this a llama-server?") from error
    if not (0.0 <= timings.predicted_ms < float("inf") and 0.0 <= timings.prompt_ms < float("inf")):
        raise ServerError("the answer's timings hold an impossible time; is this a llama-server?")
    return timings


def parse_object(payload: bytes) -> dict[str, Any]:
    """The JSON object in `payload`. Raises ServerError when it is none."""
    try:
        value = json.loads(payload.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        start = one_line(payload[:60].decode("utf-8", "replace"), 40)
        raise ServerError(
            f'the server sent something that is not JSON ("{start}"); is this a llama-server?'
        ) from error
    if not isinstance(value, dict):
        raise ServerError("the server sent JSON of another shape than expected; is this a llama-server?")
    return value


def error_of(status: int, body: Any, *, where: str) -> ServerError:
    """The exception for an error answer: `body` is its JSON object or None, `where` what was asked."""
    detail = body.get("error", body) if isinstance(body, dict) else None
    code, kind, said = status, "", ""
    if isinstance(detail, dict):
        stated = _whole(detail.get("code"))
        code = stated if stated is not None and 400 <= stated < 600 else status
        kind = str(detail.get("type") or "")
        said = one_line(str(detail.get("message") or ""), _MESSAGE_LIMIT)
    elif isinstance(detail, str):
        said = one_line(detail, _MESSAGE_LIMIT)
    if code in {401, 403}:
        return Unauthorized(
            f"{where} needs another API key; give the right one in the profile's api_key_env", status=code
        )
    if code == 501:
        hint = said or "the server was not started with this endpoint"
        return Unsupported(f"{where} is not offered: {hint}", status=code)
    if code in {404, 405}:
        return ServerError(
            f"{where} does not exist there; is this the address of a llama-server?", status=code
        )
    if kind == "exceed_context_size_error" and isinstance(detail, dict):
        need, have = _whole(detail.get("n_prompt_tokens")), _whole(detail.get("n_ctx"))
        size = "" if need is None or have is None else f" ({need} tokens for a context of {have})"
        return ServerError(
            f"the prompt does not fit the context{size}; shorten it or give the server a larger context",
            status=code,
        )
    if code == 503:
        return ServerError(
            f"{where} is not ready: {said or 'service unavailable'}; try again shortly", status=code
        )
    return ServerError(f"{where} failed with {code}: {said or 'no reason given'}", status=code)


def _stop_type(chunk: Mapping[str, Any]) -> str | None:
    named = chunk.get("stop_type")
    if isinstance(named, str):
        return one_line(named, 40) if named != _TYPE_NONE else None
    return next((name for key, name in _OLD_STOPS if chunk.get(key) is True), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _word(value: Any) -> str | None:
    return one_line(value, _MESSAGE_LIMIT) if isinstance(value, str) and value else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _switch(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
