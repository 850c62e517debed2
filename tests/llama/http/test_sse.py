from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.llama.http.sse import DATA, ERROR, SseSplitter


def split(chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
    splitter = SseSplitter()
    events = [event for chunk in chunks for event in splitter.feed(chunk)]
    return events + splitter.end()


STREAM = (
    ': a comment\r\n\r\ndata: {"content":"größer ✓"}\r\n\r\ndata:no space\n\nevent: x\ndata: two\ndata: lines\n\n'
    '\n\nerror: {"code":500}\r\n\r\nid: 7\n\ndata\n\ndata: [DONE]\n\n'
).encode()
EVENTS = [
    (DATA, '{"content":"größer ✓"}'.encode()),
    (DATA, b"no space"),
    (DATA, b"two\nlines"),
    (ERROR, b'{"code":500}'),
    (DATA, b"[DONE]"),
]


def test_whole_stream_in_one_chunk() -> None:
    assert split([STREAM]) == EVENTS


def test_every_single_cut_gives_the_same_events() -> None:
    for cut in range(len(STREAM) + 1):
        assert split([STREAM[:cut], STREAM[cut:]]) == EVENTS


def test_byte_by_byte() -> None:
    assert split([bytes([b]) for b in STREAM]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cuts_give_the_same_events(cuts: list[int]) -> None:
    points = [0, *sorted(cuts), len(STREAM)]
    assert split([STREAM[a:b] for a, b in pairwise(points)]) == EVENTS


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_arbitrary_bytes_never_raise_and_do_not_depend_on_the_cuts(chunks: list[bytes]) -> None:
    assert split(chunks) == split([b"".join(chunks)])


def test_an_event_arrives_with_the_chunk_that_completes_it() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"data: a\n") == []
    assert splitter.feed(b"\ndata: b") == [(DATA, b"a")]
    assert splitter.end() == [(DATA, b"b")]


@pytest.mark.parametrize(
    "chunk", [b"x" * 30, b"data: xxxxxxxxxxxxxxxxxxx\n", b": c\ndata: 1234567890123\ndata: 12345678"]
)
def test_an_endless_event_is_refused(chunk: bytes) -> None:
    splitter = SseSplitter(limit=64)
    with pytest.raises(OverflowError, match="64 bytes"):
        splitter.feed(chunk * 8)


def test_a_long_stream_of_short_events_is_no_endless_event() -> None:
    splitter = SseSplitter(limit=64)
    for _ in range(100):
        assert splitter.feed(b"data: 12345678901234567890\n\n") == [(DATA, b"12345678901234567890")]
