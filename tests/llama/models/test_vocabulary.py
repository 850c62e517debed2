from __future__ import annotations

from dataclasses import replace

import pytest

from spectui.llama.models.vocabulary import Compatibility, SpecialToken, Vocabulary, compare_vocabularies

TARGET = Vocabulary(
    kind="BPE",
    begin=SpecialToken(False, 1),
    end=SpecialToken(False, 2),
    texts=[b"token %d" % n for n in range(1000)],
)


def changed(token: int, text: bytes) -> list[bytes]:
    texts = list(TARGET.texts)
    texts[token] = text
    return texts


def test_the_same_tokenizer_fits() -> None:
    assert compare_vocabularies(TARGET, TARGET) == Compatibility(compatible=True)


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (replace(TARGET, kind="SPM"), "tokenizer types differ: target BPE, draft SPM"),
        (
            replace(TARGET, begin=SpecialToken(True, 1)),
            "begin-of-text tokens differ: target adds none, draft adds token 1",
        ),
        (
            replace(TARGET, end=SpecialToken(True, 7)),
            "end-of-text tokens differ: target adds none, draft adds token 7",
        ),
        (
            replace(TARGET, texts=TARGET.texts[:871]),
            "vocabulary sizes differ by more than 128: target 1000, draft 871 tokens",
        ),
        (
            replace(TARGET, texts=changed(5, "\u0120functiox".encode())),
            "token 5 differs: target 'token 5', draft ' functiox'",
        ),
        (
            replace(TARGET, texts=changed(9, b"\x1b[2Jevil\x07")),
            "token 9 differs: target 'token 9', draft 'evil '",
        ),
        (replace(TARGET, texts=changed(9, b"\xff")), "token 9 differs: target 'token 9', draft '\ufffd'"),
    ],
)
def test_each_rule_names_what_it_found(draft: Vocabulary, reason: str) -> None:
    assert compare_vocabularies(TARGET, draft) == Compatibility(compatible=False, reason=reason)


@pytest.mark.parametrize(
    "draft",
    [
        replace(TARGET, begin=SpecialToken(False, 99)),
        replace(TARGET, texts=TARGET.texts[:872]),
        replace(TARGET, texts=changed(4, b"other")),
    ],
    ids=["ids of tokens that nobody adds", "128 tokens fewer", "a token before the first compared"],
)
def test_what_servers_let_pass(draft: Vocabulary) -> None:
    assert compare_vocabularies(TARGET, draft).compatible is True


def test_added_begin_tokens_must_have_one_id() -> None:
    target, draft = (replace(TARGET, begin=SpecialToken(True, token)) for token in (1, 3))
    assert compare_vocabularies(target, draft).reason == (
        "begin-of-text tokens differ: target adds token 1, draft adds token 3"
    )
