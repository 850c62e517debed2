from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.passes import CumulativeTimings, PassRebuilder, TargetPass, pair_cycles
from spectui.llama.builds import TWO_PASSES


def stream_of(passes: list[tuple[int, int, int]]) -> list[CumulativeTimings]:
    """One chunk per token, as a server sends them, for passes given as (drafted, accepted, committed)."""
    chunks = [CumulativeTimings(predicted_n=1, predicted_ms=0.001)]
    n, drafted, accepted, ms = 1, 0, 0, 0.0
    for d, a, committed in passes:
        drafted, accepted, ms = drafted + d, accepted + a, ms + 10.0 + d
        for _ in range(committed):
            n += 1
            chunks.append(CumulativeTimings(n, ms, drafted, accepted))
    return chunks


def rebuild(
    chunks: list[CumulativeTimings], k: int | None = None, max_tokens: int | None = None
) -> tuple[TargetPass, ...]:
    rebuilder = PassRebuilder(k, max_tokens)
    for chunk in chunks:
        rebuilder.feed(chunk)
    rebuilder.finish(chunks[-1] if chunks else None)
    return rebuilder.passes


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]]]:
    k = draw(st.integers(1, 8))
    accepted = draw(st.lists(st.integers(0, k), min_size=1, max_size=30))
    passes = [(k, a, a + 1) for a in accepted]
    d, a, committed = passes[-1]
    passes[-1] = (d, a, draw(st.integers(1, committed)))
    return k, passes


@given(requests())
def test_passes_of_an_unbroken_stream_come_back(request: tuple[int, list[tuple[int, int, int]]]) -> None:
    k, passes = request
    found = rebuild(stream_of(passes), k)
    assert [(p.drafted, p.accepted, p.committed) for p in found] == passes
    assert all(p.apart for p in found)
    assert [p.last for p in found] == [False] * (len(passes) - 1) + [True]


@given(requests(), st.data())
def test_withheld_chunks_lose_no_token_draft_or_pass(
    request: tuple[int, list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    k, passes = request
    chunks = stream_of(passes)
    keep = data.draw(st.lists(st.booleans(), min_size=len(chunks) - 1, max_size=len(chunks) - 1))
    shown = [c for c, kept in zip(chunks[:-1], keep, strict=True) if kept]
    found = rebuild([*shown, chunks[-1]], k)
    assert sum(p.drafted for p in found) == sum(p[0] for p in passes)
    assert sum(p.accepted for p in found) == sum(p[1] for p in passes)
    assert sum(p.committed for p in found) <= sum(p[2] for p in passes)
    assert sum(p.merged for p in found) == len(passes)


def test_a_group_is_kept_out_of_per_pass_statistics() -> None:
    chunks = stream_of([(4, 0, 1), (4, 2, 3), (4, 1, 2)])
    hidden = [c for c in chunks if c.draft_n != 4]
    found = rebuild(hidden, 4)
    assert [(p.drafted, p.accepted, p.committed, p.merged) for p in found] == [(8, 2, 4, 2), (4, 1, 2, 1)]


def test_a_group_is_recognised_without_knowing_the_draft_length() -> None:
    chunks = stream_of([(1, 0, 1), (2, 2, 3), (1, 1, 2)])
    found = rebuild([c for c in chunks if c.draft_n != 1])
    assert [p.merged for p in found] == [2, 1]


def test_plain_passes_without_drafts_count() -> None:
    found = rebuild(stream_of([(0, 0, 1), (8, 8, 9), (0, 0, 1)]))
    assert [(p.drafted, p.committed) for p in found] == [(0, 1), (8, 9), (0, 1)]


def test_nothing_but_the_free_token_is_no_pass() -> None:
    assert rebuild([CumulativeTimings(1, 0.001)]) == ()
    assert rebuild([]) == ()


def test_a_cancelled_request_keeps_its_closed_passes() -> None:
    rebuilder = PassRebuilder(4)
    for chunk in stream_of([(4, 1, 2), (4, 4, 5)])[:-2]:
        rebuilder.feed(chunk)
    assert [(p.drafted, p.committed) for p in rebuilder.passes] == [(4, 2)]


def test_old_servers_pair_a_plain_and_a_verifying_pass() -> None:
    steps = (
        TargetPass(4, 3, 4, 0.0),
        TargetPass(0, 0, 1, 101.0),
        TargetPass(4, 1, 2, 0.0),
        TargetPass(0, 0, 1, 87.0),
        TargetPass(4, 3, 4, 0.0, last=True),
    )
    cycles = pair_cycles(steps)
    assert [(c.drafted, c.accepted, c.committed, c.ms) for c in cycles] == [
        (4, 3, 4, 101.0),
        (4, 1, 3, 87.0),
        (4, 3, 5, None),
    ]


def test_a_group_at_the_limit_knows_that_its_last_pass_had_no_room_to_draft() -> None:
    """As a server cuts drafts: committed 61 of 64 leaves room for 2, then 1, then none."""
    chunks = stream_of([(4, 1, 2), (2, 1, 2), (0, 0, 1)])
    shift = 59 - 1
    chunks = [
        CumulativeTimings(c.predicted_n + shift, c.predicted_ms, c.draft_n, c.draft_n_accepted)
        for c in chunks
    ]
    rebuilder = PassRebuilder(4, 64)
    rebuilder._committed = 59
    for chunk in chunks[1:3] + chunks[-1:]:
        rebuilder.feed(chunk)
    rebuilder.finish()
    assert [(p.drafted, p.merged, p.drafts) for p in rebuilder.passes] == [(4, 1, 1), (2, 2, 1)]


def test_builds_with_two_passes_per_cycle() -> None:
    """The server got a draft model in b4164 (llama.cpp #10455) and one pass per cycle in b7323 (#17808)."""
    assert [b for b in (None, 1, 4163, 4164, 7322, 7323, 10434) if b in TWO_PASSES] == [4164, 7322]
