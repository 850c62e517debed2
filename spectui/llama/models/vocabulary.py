"""Whether a draft's tokenizer fits a target's, by the servers' own rules, and why not.

The rules are those of llama.cpp's `common_speculative_are_compatible`: since b9109 a server whose pair breaks one
of them runs on, silently, without speculation, and its message says "vocab type" whichever it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spectui.core.text import one_line

MAX_SIZE_DIFFERENCE: Final = 128
"""Tokens by which two vocabularies may differ in size (SPEC_VOCAB_MAX_SIZE_DIFFERENCE)."""
FIRST_COMPARED: Final = 5
"""First token whose text must agree (SPEC_VOCAB_CHECK_START_TOKEN_ID)."""

# How byte-level BPE (GPT-2 and its kin) spells the bytes that have no letter of their own.
_SPELLED: Final = {0x100 + byte: byte for byte in range(0x21)}


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """The token that begins or ends a text."""

    added: bool
    """Whether the tokenizer adds it by itself."""
    token: int
    """Its id; -1 for none."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the rules compare of a tokenizer."""

    kind: str
    """Kind of tokenizer, such as BPE."""
    begin: SpecialToken
    end: SpecialToken
    texts: Sequence[bytes]
    """Text of each token, by id."""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a server would speculate with this draft."""

    compatible: bool | None
    """None where a file could not be read."""
    reason: str | None = None
    """Which rule is broken, and where; None for a draft that fits."""


def compare_vocabularies(target: Vocabulary, draft: Vocabulary) -> Compatibility:
    """Whether the pair keeps all rules; if not, the first that it breaks, in the server's order."""
    difference = _difference(target, draft)
    return Compatibility(compatible=difference is None, reason=difference)


def _difference(target: Vocabulary, draft: Vocabulary) -> str | None:
    if target.kind != draft.kind:
        return f"tokenizer types differ: target {target.kind}, draft {draft.kind}"
    for name, ours, theirs in (
        ("begin-of-text", target.begin, draft.begin),
        ("end-of-text", target.end, draft.end),
    ):
        if ours.added != theirs.added or (ours.added and ours.token != theirs.token):
            return f"{name} tokens differ: target {_special(ours)}, draft {_special(theirs)}"
    if abs(len(target.texts) - len(draft.texts)) > MAX_SIZE_DIFFERENCE:
        sizes = f"target {len(target.texts)}, draft {len(draft.texts)} tokens"
        return f"vocabulary sizes differ by more than {MAX_SIZE_DIFFERENCE}: {sizes}"
    for token in range(FIRST_COMPARED, min(len(target.texts), len(draft.texts))):
        if target.texts[token] != draft.texts[token]:
            texts = f"target {_shown(target.texts[token])}, draft {_shown(draft.texts[token])}"
            return f"token {token} differs: {texts}"
    return None


def _special(token: SpecialToken) -> str:
    return f"adds token {token.token}" if token.added else "adds none"


def _shown(text: bytes) -> str:
    """A token's text in quotes, with spaces as spaces and without what a terminal would obey."""
    spelled = text.decode(errors="replace").translate(_SPELLED).replace("\N{LOWER ONE EIGHTH BLOCK}", " ")
    return f"'{one_line(spelled, 60)}'"
