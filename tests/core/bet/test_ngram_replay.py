"""N-gram lookups replayed on known answers: against a literal search, and by what any draft must keep to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.ngram_replay import (
    Answered,
    LookupPass,
    Lookups,
    Replay,
    best_lookup,
    replay,
    row_surplus,
)

TEXTS = st.builds(
    lambda prompt, answer, more: Answered(tuple(prompt), tuple(answer), len(answer) + more),
    st.lists(st.integers(0, 2), min_size=1, max_size=40),
    st.lists(st.integers(0, 2), min_size=1, max_size=40),
    st.integers(0, 5),
)
SIZES = st.integers(1, 5)


def drafted_by_search(before: tuple[int, ...], lookup: int, length: int) -> tuple[int, ...]:
    """Word for word: the newest token is searched for with those before it, from the newest place backwards."""
    *stored, newest = before
    if len(stored) <= lookup + length + 1:
        return ()
    wanted = [*stored[len(stored) - lookup + 1 :], newest]
    for place in range(len(stored) - lookup - 1, 0, -1):
        if stored[place : place + lookup] == wanted:
            copied = stored[place + lookup : place + lookup + length]
            return tuple(copied) if len(copied) >= lookup else ()
    return ()


@given(TEXTS, SIZES, SIZES)
def test_every_pass_is_what_a_literal_search_drafts(text: Answered, lookup: int, length: int) -> None:
    tokens = (*text.prompt, *text.answer)
    at = len(text.prompt) + 1
    for step in Lookups(text, lookup).passes(length):
        room = len(text.prompt) + text.limit - at - 1
        draft = drafted_by_search(tokens[:at], lookup, length)[:room]
        right = 0
        while right < len(draft) and at + right < len(tokens) and draft[right] == tokens[at + right]:
            right += 1
        assert step == LookupPass(len(draft), right)
        at += right + 1
    # The token that ends an answer before its limit is in no text.
    assert at in {len(tokens), len(tokens) + 1}
    assert at == len(tokens) or text.limit > len(text.answer)


def test_a_copy_of_the_prompt_is_drafted_and_the_end_cuts_it() -> None:
    lines = tuple(range(20))
    # The first token follows from the prompt; the last three are repeated before anything is found.
    text = Answered((*lines, 99), lines[2:12], limit=10)
    assert Lookups(text, 2).passes(4) == (
        LookupPass(0, 0),
        LookupPass(4, 4),
        LookupPass(2, 2),
    )
    assert Lookups(text, 2).passes(8)[1:] == (LookupPass(7, 7),)
    # Nothing that is shorter than the lookup itself is drafted.
    assert {p.drafted for p in Lookups(text, 6).passes(4)} == {0}


def test_no_earlier_place_means_no_draft() -> None:
    text = Answered(tuple(range(30)), tuple(range(100, 110)), limit=10)
    assert Lookups(text, 2).passes(8) == (LookupPass(0, 0),) * 9


@given(st.lists(TEXTS, min_size=1, max_size=6), SIZES, SIZES, st.floats(0, 0.2))
def test_a_run_of_one_setting_tells_the_surplus(
    texts: list[Answered], lookup: int, length: int, surplus: float
) -> None:
    ready = [Lookups(text, lookup) for text in texts]
    made = replay(ready, length, lambda drafted: 1 + 0.1 * drafted)
    passes = [p for text in ready for p in text.passes(length)]
    if made is None:
        assert len(passes) < 2
        return
    assert made.tokens == sum(p.accepted + 1 for p in passes)
    assert made.steps == pytest.approx(len(passes) + 0.1 * made.rows)
    assert made.rows == sum(p.drafted for p in passes)
    assert (made.lookup, made.length, made.passes) == (lookup, length, len(passes))
    if made.rows:
        assert made.row_cost == pytest.approx(0.1)
    found = row_surplus([(made, made.speedup(surplus).value)], 1e-9)
    assert found.value == pytest.approx(surplus if made.rows else 0.075, abs=1e-6)
    assert made.ceiling >= made.speedup(surplus).value * (1 - 1e-9)


def a_replay() -> Replay:
    made = replay(
        [Lookups(Answered((*range(20), 99), tuple(range(2, 12)), 10), 2)] * 2, 4, lambda d: 1 + 0.1 * d
    )
    assert made is not None
    return made


def test_a_run_counts_by_its_certainty_beside_what_is_usual() -> None:
    made = a_replay()
    assert (made.tokens, made.rows) == (18, 12)
    assert made.steps == pytest.approx(7.2)
    assert made.speedup(0.1).value == pytest.approx(18 / 8.4)
    usual = row_surplus([], 0.02)
    assert (usual.value, usual.error) == pytest.approx((0.075, 0.15 / math.sqrt(12)))
    # 0.1 per row, known to as much as the usual is: half way.
    same = usual.error * 12 / 8.4
    half = row_surplus([(made, 18 / 8.4)], same)
    assert half.value == pytest.approx((0.075 + 0.1) / 2)
    assert half.error == pytest.approx(usual.error / math.sqrt(2))
    sure = row_surplus([(made, 18 / 8.4)] * 3, 1e-6)
    assert sure.value == pytest.approx(0.1, abs=1e-6)
    # A run that is faster than the probe allows.
    assert row_surplus([(made, 5.0)], 0.001).value == 0
    nothing = Replay(12, 8, 100, 100, 100, 0, 0.0)
    assert row_surplus([(nothing, 0.9)], 0.02) == usual


def test_the_spread_is_that_of_passes_and_of_texts() -> None:
    def texts(number: int) -> list[Lookups]:
        return [
            Lookups(Answered((*range(20), 99), tuple(range(2, 12 - i)), 10 - i), 2) for i in range(number)
        ]

    several = replay(texts(4), 4, lambda _d: 1.0)
    assert several is not None
    # Two texts that agree are still made of passes that do not.
    assert a_replay().error > 0.05
    estimate = several.speedup(0.0)
    assert estimate.low == pytest.approx(estimate.value / math.exp(1.96 * several.error))
    # An answer of one token has no pass, and counts for nothing.
    short = Lookups(Answered((1, 2), (3,), 10), 2)
    assert replay([*texts(4), short], 4, lambda _d: 1.0) == several
    assert replay([short], 4, lambda _d: 1.0) is None


SHORT, LONG = Replay(2, 8, 100, 60, 66, 120, 0.1), Replay(2, 48, 100, 50, 60, 400, 0.1)


def test_the_best_lookup_spans_what_its_rows_may_cost() -> None:
    cheap = best_lookup([SHORT, LONG], (0.0, 0.0), {})
    assert cheap is not None
    assert (cheap.lookup, cheap.length) == (2, 48)
    assert cheap.speedup.value == pytest.approx(100 / 60)
    dear = best_lookup([SHORT, LONG], (0.0, 0.2), {})
    assert dear is not None
    assert dear.length == 8
    assert dear.speedup.value == pytest.approx(100 / (66 + 12))
    spread = math.exp(1.96 * (0.1 + math.hypot(0.015, 0.015, 0.015)))
    assert dear.speedup.low == pytest.approx(100 / (66 + 24) / spread)
    assert dear.speedup.high == pytest.approx(100 / 66 * spread)
    assert best_lookup([Replay(12, 8, 100, 100, 100, 0, 0.1)], (0.0, 0.1), {}) is None
    assert best_lookup([], (0.0, 0.1), {}) is None


def test_what_ran_is_not_predicted_and_moves_the_others() -> None:
    # On later answers the short one yielded four fifths of what it was predicted.
    found = best_lookup([SHORT, LONG], (0.1, 0.1), {(2, 8): 0.8 * 100 / 78, (9, 9): 5.0})
    assert found is not None
    assert found.length == 48
    assert found.speedup.value == pytest.approx(0.8 * 100 / 100)
    assert best_lookup([SHORT], (0.1, 0.1), {(2, 8): 1.2}) is None
