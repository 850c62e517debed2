"""Strings of agreement: spelled by passes, walked at other lengths."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.bet.acceptance import sums_of, survival_shares
from spectui.core.bet.agreement import AGREED, REFUSED, UNSEEN, Agreements, agreement
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.bet.speedup import tokens_at

texts = st.lists(
    st.lists(st.sampled_from([REFUSED, AGREED]), min_size=1, max_size=60), min_size=1, max_size=6
)


def passes_over(text: list[int], draft_length: int) -> RequestPasses:
    """What a server would do with a draft that agrees where the text says 1."""
    passes, at = [], 0
    while at < len(text):
        drafted = min(draft_length, len(text) - at - 1)
        accepted = 0
        while accepted < drafted and text[at + accepted] == AGREED:
            accepted += 1
        at += accepted + 1
        passes.append(TargetPass(drafted, accepted, accepted + 1, 1.0, last=at == len(text)))
    return request_of(passes)


def request_of(passes: list[TargetPass]) -> RequestPasses:
    return RequestPasses(
        passes=tuple(passes),
        drafted=sum(p.drafted for p in passes),
        accepted=sum(p.accepted for p in passes),
        predicted_n=1 + sum(p.committed for p in passes),
        predicted_ms=float(len(passes)),
    )


def per_pass(requests: list[RequestPasses]) -> float:
    return sum(r.committed for r in requests) / sum(r.target_passes for r in requests)


def plain_steps(drafted: int) -> float:
    return 1.0 + 0.1 * drafted


def test_passes_spell_what_was_kept_refused_and_never_asked() -> None:
    spelled = agreement(
        request_of([TargetPass(3, 1, 2, 1.0), TargetPass(3, 3, 4, 1.0), TargetPass(0, 0, 1, 1.0)])
    )
    assert list(spelled) == [AGREED, REFUSED, AGREED, AGREED, AGREED, UNSEEN, UNSEEN]


def test_a_request_that_ended_amid_a_pass_and_a_group_spell_no_more_than_came() -> None:
    ended = agreement(request_of([TargetPass(4, 4, 2, 1.0, last=True)]))
    group = agreement(request_of([TargetPass(6, 4, 6, 1.0, merged=2)]))
    assert list(ended) == [AGREED, AGREED]
    assert list(group) == [UNSEEN] * 6


@given(texts, st.integers(1, 16))
def test_at_the_length_that_ran_the_walk_is_the_run(corpus: list[list[int]], k: int) -> None:
    requests = [passes_over(text, k) for text in corpus]
    found = Agreements([agreement(r) for r in requests], Random(1)).at(k, lambda _d: 1.0)
    assert found is not None
    assert found.tokens_per_pass == pytest.approx(per_pass(requests))
    assert found.speedup == pytest.approx(found.tokens_per_pass)


@given(texts, st.integers(1, 64))
def test_where_all_was_asked_every_length_is_exact(corpus: list[list[int]], k: int) -> None:
    seen = Agreements([bytes(text) for text in corpus], Random(1))
    requests = [passes_over(text, k) for text in corpus]
    found = seen.at(k, plain_steps)
    assert found is not None
    assert found.tokens_per_pass == pytest.approx(per_pass(requests))
    steps = sum(plain_steps(p.drafted) for r in requests for p in r.passes)
    assert found.speedup == pytest.approx(sum(r.committed for r in requests) / steps)


def stretches(rng: Random, tokens: int) -> list[int]:
    """A text of easy and hard stretches of some twenty tokens, as answers have them."""
    text: list[int] = []
    while len(text) < tokens:
        chance = rng.choice([0.97, 0.4])
        text += [AGREED if rng.random() < chance else REFUSED for _ in range(rng.randint(10, 30))]
    return text[:tokens]


@pytest.mark.parametrize("calibrated", [2, 4])
def test_easy_and_hard_stretches_are_kept_apart(calibrated: int) -> None:
    rng = Random(3)
    corpus = [stretches(rng, 200) for _ in range(30)]
    runs = [passes_over(t, calibrated) for t in corpus]
    known = Agreements([agreement(r) for r in runs], Random(1))
    for k in (1, 3, 8, 16):
        true = per_pass([passes_over(t, k) for t in corpus])
        found = known.at(k, lambda _d: 1.0)
        assert found is not None
        assert found.tokens_per_pass == pytest.approx(true, rel=0.06)
    sums = [sums_of(r, fixed_length=True, positions=calibrated) for r in runs]
    assert found is not None
    by_survival = tokens_at(survival_shares(sums), 16)
    assert abs(found.tokens_per_pass / true - 1) < abs(by_survival / true - 1)


def test_the_interval_holds_what_other_texts_of_the_kind_do() -> None:
    rng = Random(5)
    truth = per_pass([passes_over(stretches(rng, 200), 8) for _ in range(600)])
    held = 0
    for _ in range(60):
        strings = [agreement(passes_over(stretches(rng, 200), 4)) for _ in range(12)]
        found = Agreements(strings, rng).at(8, lambda _d: 1.0)
        assert found is not None
        assert found.error is not None
        held += abs(found.speedup / truth - 1) < 1.96 * found.error
    assert held >= 51


def test_the_same_source_of_chance_gives_the_same_answer_and_no_text_none() -> None:
    strings = [agreement(passes_over(stretches(Random(7), 200), 1))]
    twice = [Agreements(strings, Random(2)).at(9, plain_steps) for _ in range(2)]
    assert twice[0] == twice[1]
    assert Agreements([b""], Random(1)).at(4, plain_steps) is None
    assert Agreements([], Random(1)).at(4, plain_steps) is None


def test_one_short_request_has_no_interval() -> None:
    found = Agreements([bytes([AGREED])], Random(1)).at(4, plain_steps)
    assert found is not None
    assert found.error is None
