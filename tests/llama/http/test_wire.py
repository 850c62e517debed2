from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spectui.core.bet.passes import CumulativeTimings, PassRebuilder, TargetPass
from spectui.errors import ServerError, Unauthorized, Unsupported, UsageError
from spectui.llama.http.sse import DATA, ERROR, SseSplitter
from spectui.llama.http.wire import (
    CompletionRequest,
    Props,
    SlotInfo,
    StreamEvent,
    StreamReader,
    error_of,
    parse_object,
    read_timings,
    read_types,
)

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def replay(name: str, chunk: int = 1 << 20) -> list[StreamEvent]:
    raw = (STREAMS / f"{name}.txt").read_bytes()
    splitter, reader = SseSplitter(), StreamReader()
    events = []
    for start in range(0, len(raw), chunk):
        for field, payload in splitter.feed(raw[start : start + chunk]):
            event = reader.read(field, payload, 1.5)
            if event is not None:
                events.append(event)
    return events


def rebuild(events: list[StreamEvent], k: int | None) -> tuple[TargetPass, ...]:
    rebuilder = PassRebuilder(k)
    for event in events[:-1]:
        if event.timings is not None:
            rebuilder.feed(event.timings)
    rebuilder.finish(events[-1].timings)
    return rebuilder.passes


@pytest.mark.parametrize(
    ("name", "k", "counted", "tokens"),
    [
        ("b10434-draft-completion", 4, (87, 39, 23), 64),
        ("b10434-draft-chat", 4, (72, 12, 18), 28),
        ("b10434-draft-pmin-completion", 8, (33, 32, 16), 64),
        ("b10434-draft-pmin-chat", 8, (8, 8, 4), 28),
        ("b10434-ngram-completion", 8, (74, 45, 10), 64),
        ("b10434-ngram-chat", 8, (16, 10, 2), 17),
    ],
)
def test_a_recorded_stream_gives_the_passes_that_the_server_counted(
    name: str, k: int, counted: tuple[int, int, int], tokens: int
) -> None:
    events = replay(name)
    passes = rebuild(events, k)

    drafts = sum(1 for p in passes if p.drafted)
    assert (sum(p.drafted for p in passes), sum(p.accepted for p in passes), drafts) == counted
    assert sum(p.committed for p in passes) == tokens - 1
    assert [e.final for e in events].count(True) == 1
    assert events[-1].final
    assert events[-1].timings is not None
    assert events[-1].timings.predicted_n == tokens


@pytest.mark.parametrize(
    ("names", "k", "kept"),
    [
        (("b10434-draft-completion", "b10434-draft-chat"), 4, [24, 13, 9, 5]),
        (("b10434-draft-pmin-completion", "b10434-draft-pmin-chat"), 8, [20, 9, 6, 4, 1, 0, 0, 0]),
        (("b10434-ngram-completion", "b10434-ngram-chat"), 8, [9, 8, 7, 7, 6, 6, 6, 6]),
    ],
)
def test_kept_positions_equal_the_servers_metrics(names: tuple[str, ...], k: int, kept: list[int]) -> None:
    at_position: Counter[int] = Counter()
    for name in names:
        for one in rebuild(replay(name), k):
            at_position.update(range(one.accepted))
    assert [at_position[j] for j in range(k)] == kept


@pytest.mark.parametrize(
    ("name", "drafted", "accepted", "tokens"), [("b6xxx-completion", 66, 28, 64), ("b6xxx-chat", 56, 13, 41)]
)
def test_an_old_servers_stream_keeps_its_totals(name: str, drafted: int, accepted: int, tokens: int) -> None:
    events = replay(name)
    passes = rebuild(events, 4)
    assert (sum(p.drafted for p in passes), sum(p.accepted for p in passes)) == (drafted, accepted)
    assert events[-1].final
    assert events[-1].timings is not None
    assert events[-1].timings.predicted_n == tokens


@pytest.mark.parametrize("name", ["b10434-draft-completion", "b10434-draft-chat", "b6xxx-chat", "vllm-chat"])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunk_size_does_not_matter(name: str, chunk: int) -> None:
    assert replay(name, chunk) == replay(name)


def test_texts_and_stop_reasons() -> None:
    completion = replay("b10434-draft-completion")
    assert "".join(e.text for e in completion).startswith("```\n\nThis")
    assert (completion[-1].stop_reason, completion[-1].truncated) == ("limit", False)
    chat = replay("b10434-draft-chat")
    assert chat[0].text == ""
    assert "".join(e.text for e in chat).startswith("The rain is a")
    assert chat[-1].stop_reason == "eos"


def test_a_vllm_stream_lists_the_tokens_of_each_chunk_and_has_no_timings() -> None:
    events = replay("vllm-chat")
    assert all(e.timings is None for e in events)
    assert sum(e.tokens or 0 for e in events) == 32
    assert (events[-1].final, events[-1].stop_reason) == (True, "limit")


def chunk(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_reasoning_counts_as_text() -> None:
    event = StreamReader().read(
        DATA, chunk(choices=[{"delta": {"reasoning_content": "hm", "content": None}}]), 0.0
    )
    assert event is not None
    assert event.text == "hm"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stop_type": "eos"}, "eos"),
        ({"stop_type": "word"}, "word"),
        ({"stop_type": "none"}, None),
        ({"stopped_eos": False, "stopped_limit": True}, "limit"),
        ({}, None),
    ],
)
def test_stop_reasons_of_completion(fields: dict[str, object], reason: str | None) -> None:
    event = StreamReader().read(DATA, chunk(content="", stop=True, truncated=True, **fields), 0.0)
    assert event is not None
    assert (event.final, event.stop_reason, event.truncated) == (True, reason, True)


def test_done_without_a_usage_chunk_ends_with_the_last_timings() -> None:
    reader = StreamReader()
    timings = {"predicted_n": 5, "predicted_ms": 9.5}
    reader.read(DATA, chunk(choices=[{"delta": {"content": "x"}}], timings=timings), 0.0)
    reader.read(DATA, chunk(choices=[{"delta": {}, "finish_reason": "length"}]), 0.0)
    final = reader.read(DATA, b"[DONE]", 2.0)
    assert final == StreamEvent(
        text="", arrived=2.0, timings=CumulativeTimings(5, 9.5), final=True, stop_reason="limit"
    )
    assert reader.read(DATA, b"[DONE]", 3.0) is None


def test_end_of_stream_counts_only_after_a_finish_reason() -> None:
    reader = StreamReader()
    reader.read(DATA, chunk(choices=[{"delta": {"content": "x"}}]), 0.0)
    assert reader.end(1.0) is None
    reader.read(DATA, chunk(choices=[{"delta": {}, "finish_reason": "stop"}]), 0.0)
    final = reader.end(1.0)
    assert final is not None
    assert final.stop_reason == "eos"


@pytest.mark.parametrize(
    ("field", "payload", "words"),
    [
        (DATA, b'{"error":{"code":500,"message":"decode() failed"}}', "failed with 500: decode() failed"),
        (ERROR, b'{"code":500,"message":"compute \\u001b[31merror","type":"x"}', "500: compute error"),
        (DATA, b'{"error":"plain words"}', "plain words"),
        (DATA, b"<html>", "not JSON"),
        (DATA, b"[1,2]", "another shape"),
        (DATA, b"[" * 100_000, "not JSON"),
        (DATA, b'{"choices":"x"}', "choices are malformed"),
        (DATA, b'{"content":"x","timings":{"predicted_n":1}}', "timings are malformed"),
        (DATA, b'{"content":"x","timings":[]}', "timings are malformed"),
        (DATA, b'{"content":"x","timings":{"predicted_n":1,"predicted_ms":NaN}}', "impossible time"),
        (DATA, b'{"content":"x","timings":{"predicted_n":1,"predicted_ms":-4}}', "impossible time"),
    ],
)
def test_errors_and_nonsense_in_a_stream(field: bytes, payload: bytes, words: str) -> None:
    with pytest.raises(ServerError) as caught:
        StreamReader().read(field, payload, 0.0)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_invalid_utf8_is_replaced() -> None:
    assert parse_object(b'{"content":"\xff"}') == {"content": "\ufffd"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"error": {"message": "Invalid API Key", "code": 401}}, Unauthorized, "api_key_env"),
        (
            501,
            {"error": {"message": "Start it with `--metrics`", "code": 501}},
            Unsupported,
            "Start it with `--metrics`",
        ),
        (501, None, Unsupported, "not started with this endpoint"),
        (404, None, ServerError, "is this the address of a llama-server?"),
        (405, {"detail": "Method Not Allowed"}, ServerError, "is this the address of a llama-server?"),
        (503, {"error": {"message": "Loading model", "code": 503}}, ServerError, "Loading model"),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "m",
                    "n_prompt_tokens": 900,
                    "n_ctx": 512,
                }
            },
            ServerError,
            "900 tokens for a context of 512",
        ),
        (400, {"error": {"type": "exceed_context_size_error", "code": 400}}, ServerError, "does not fit"),
        (500, None, ServerError, "no reason given"),
        (500, {"error": {"message": "x" * 9000, "code": True}}, ServerError, "xxx"),
    ],
)
def test_error_answers(status: int, body: object, kind: type[ServerError], words: str) -> None:
    error = error_of(status, body, where="http://h/p")
    assert type(error) is kind
    assert error.status == status
    assert words in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("value", "types"),
    [
        ("none,draft-simple", ("draft-simple",)),
        ("none", ()),
        ("ngram-mod,draft-mtp", ("ngram-mod", "draft-mtp")),
        (None, None),
        (3, None),
    ],
)
def test_types(value: object, types: tuple[str, ...] | None) -> None:
    assert read_types(value) == types


def test_slots_and_props_of_a_current_server() -> None:
    (slot,) = json.loads((STREAMS / "b10434-draft-slots.json").read_text())
    assert SlotInfo.read(slot) == SlotInfo(
        id=0, is_processing=False, speculative=True, types=("draft-simple",), n_ctx=2048, n_decoded=0
    )
    props = Props.read(json.loads((STREAMS / "b10434-draft-props.json").read_text()))
    assert (props.build_info, props.total_slots, props.n_ctx) == ("b1-7e4c0a9", 1, 2048)
    assert (props.speculative, props.endpoint_slots, props.endpoint_metrics) == (None, True, True)
    assert (props.model_path, props.sleeping, props.chat_template) == ("deep90.gguf", False, True)


def test_props_of_an_old_server_say_whether_it_speculates() -> None:
    props = Props.read(json.loads((STREAMS / "b6xxx-props.json").read_text()))
    assert (props.speculative, props.endpoint_slots) == (True, None)


def test_a_slot_without_a_task_and_one_of_an_older_build() -> None:
    assert SlotInfo.read({"id": 3, "speculative": False, "is_processing": False}) == SlotInfo(
        id=3, is_processing=False, speculative=False
    )
    old = SlotInfo.read({"id": 0, "is_processing": True, "next_token": {"n_decoded": 7}, "params": []})
    assert (old.is_processing, old.speculative, old.n_decoded) == (True, None, 7)


def test_props_of_nonsense_are_unknown() -> None:
    assert Props.read({"total_slots": "4", "build_info": 3, "default_generation_settings": []}) == Props()


def test_bodies() -> None:
    raw = CompletionRequest(prompt="p", max_tokens=9, seed=4, extra={"top_k": 1, "cache_prompt": True})
    assert raw.path == "/completion"
    assert raw.body() == {
        "prompt": "p",
        "n_predict": 9,
        "return_tokens": False,
        "temperature": 0.0,
        "seed": 4,
        "cache_prompt": True,
        "ignore_eos": False,
        "timings_per_token": True,
        "stream": True,
        "top_k": 1,
    }
    chat = CompletionRequest(messages=({"role": "user", "content": "hi"},), max_tokens=9)
    assert chat.path == "/v1/chat/completions"
    body = chat.body()
    assert (body["max_tokens"], body["stream_options"]) == (9, {"include_usage": True})
    assert "seed" not in body


@pytest.mark.parametrize("fields", [{}, {"prompt": "a", "messages": ()}])
def test_a_request_is_either_raw_or_chat(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        CompletionRequest(**fields)  # type: ignore[arg-type]


def test_timings_read_what_is_there() -> None:
    timings = read_timings({"predicted_n": 2, "predicted_ms": 3, "draft_n": 4, "cache_n": 5})
    assert timings == CumulativeTimings(predicted_n=2, predicted_ms=3.0, draft_n=4, cache_n=5)
