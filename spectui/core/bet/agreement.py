"""Target passes -> where draft and target agreed along the text, and what other draft lengths make of it.

Whether the next token of a draft model is the target's depends on the text before it and on no border of a pass.
(Heads that draft from the target's hidden state are surer of the first token behind a border.) So the passes of one
run at one length spell a string of agreements along each answer, and walking over the same string in other strides
gives the passes of any other length. That keeps what a survival curve loses: text comes in easy and hard stretches,
and a long draft begins elsewhere than a short one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from spectui.core.bet.intervals import RatioSums, ratio
from spectui.core.bet.passes import RequestPasses

REFUSED: Final = 0
AGREED: Final = 1
UNSEEN: Final = 2
"""The target's own token after a draft that was kept whole: nobody asked what the draft would have said."""

_FILLINGS: Final = 4
"""How often the unseen tokens are drawn; their spread enters the interval."""
_STEPS: Final = 3
"""Drawings between two that are used, so that they differ."""
_MEMORY: Final = 3
"""Run lengths that are told apart: the longer a run, the surer it goes on."""
_DOUBT: Final = 2.0
"""Letters that the prior of a chance is worth, spread as all seen letters are."""


def agreement(request: RequestPasses) -> bytes:
    """One letter per token that passes committed: AGREED, REFUSED or UNSEEN."""
    letters = bytearray()
    for step in request.passes:
        if step.apart and step.drafted:
            spelled = [AGREED] * step.accepted + [REFUSED if step.rejected else UNSEEN]
        else:
            spelled = [UNSEEN] * step.committed
        letters += bytes(spelled[: step.committed])
    return bytes(letters)


@dataclass(frozen=True, slots=True)
class Predicted:
    """Tokens per target pass and per plain step at one length; error: relative standard error of the latter."""

    tokens_per_pass: float
    speedup: float
    error: float | None


class Agreements:
    """The strings of a segment's requests with their unseen letters drawn, ready to be walked at any length."""

    def __init__(self, strings: Sequence[bytes], rng: Random) -> None:
        strings = [s for s in strings if s]
        chain = _Chain(strings, rng)
        self._fillings: list[list[list[int]]] = []
        for _ in range(_FILLINGS if any(UNSEEN in s for s in strings) else 1):
            for _ in range(_STEPS):
                chain.step()
            self._fillings.append([_runs(letters) for letters in chain.letters])
        self._walks: dict[int, list[list[_Walk]]] = {}

    def at(self, draft_length: int, pass_cost: Callable[[int], float]) -> Predicted | None:
        """What drafts of this length make of the same text; None without any token.

        pass_cost: R of a pass with d drafted tokens, in plain steps. The variance is that between requests plus
        that between the drawings (Rubin 1987, multiple imputation).
        """
        cost = [pass_cost(d) for d in range(draft_length + 1)]
        estimates, yields = [], []
        for walks in self._walked(draft_length):
            estimate = ratio([RatioSums().plus(walk.tokens, walk.steps(cost)) for walk in walks])
            if estimate is None:
                return None
            estimates.append(estimate)
            yields.append(sum(walk.tokens for walk in walks) / sum(walk.passes for walk in walks))
        count = len(estimates)
        value = math.fsum(e.value for e in estimates) / count
        within = [e.standard_error**2 for e in estimates if e.standard_error is not None]
        between = math.fsum((e.value - value) ** 2 for e in estimates) / (count - 1) if count > 1 else 0.0
        error = None
        if len(within) == count:
            error = math.sqrt(math.fsum(within) / count + (1 + 1 / count) * between) / value
        return Predicted(tokens_per_pass=math.fsum(yields) / count, speedup=value, error=error)

    def _walked(self, draft_length: int) -> list[list[_Walk]]:
        """Each filling's strings walked at this length; once, since the price of a pass moves no border."""
        if draft_length not in self._walks:
            self._walks[draft_length] = [
                [_walk(runs, draft_length) for runs in filling] for filling in self._fillings
            ]
        return self._walks[draft_length]


@dataclass(frozen=True, slots=True)
class _Walk:
    """One string in strides: its tokens, passes whose draft had its full length, and the shorter drafts."""

    tokens: int
    full: int
    cut: tuple[int, ...]

    @property
    def passes(self) -> int:
        """Target passes."""
        return self.full + len(self.cut)

    def steps(self, cost: Sequence[float]) -> float:
        """Plain steps. cost: of a pass by its drafted tokens, the last one at full length."""
        return self.full * cost[-1] + sum(cost[drafted] for drafted in self.cut)


class _Chain:
    """Chances of agreement by the length of the run before, and the unseen letters, each drawn given the other.

    A Gibbs sampler (Tanner and Wong 1987, data augmentation): which letters are unseen follows from those seen, so
    that leaving them out would be biased, and drawing them is not.
    """

    def __init__(self, strings: Sequence[bytes], rng: Random) -> None:
        self._rng = rng
        self._unseen = [[i for i, letter in enumerate(s) if letter == UNSEEN] for s in strings]
        self.letters = [bytearray(s) for s in strings]
        seen = [sum(s.count(letter) for s in strings) for letter in (REFUSED, AGREED)]
        share = (seen[AGREED] + 0.5) / (sum(seen) + 1)
        self._memory = max(1, min(_MEMORY, _longest_draft(strings) - 1))
        self._prior = (_DOUBT * (1 - share), _DOUBT * share)
        self._chances = [share] * (self._memory + 1)

    def step(self) -> None:
        """Draw the unseen letters anew, then the chances."""
        for letters, unseen in zip(self.letters, self._unseen, strict=True):
            for index in unseen:
                letters[index] = self._letter(letters, index)
        counts = [list(self._prior) for _ in self._chances]
        for letters in self.letters:
            run = 0
            for letter in letters:
                counts[run][letter] += 1
                run = min(self._memory, run + 1) if letter == AGREED else 0
        self._chances = [self._rng.betavariate(kept, lost) for lost, kept in counts]

    def _letter(self, letters: bytearray, index: int) -> int:
        run = 0
        while run < min(self._memory, index) and letters[index - run - 1] == AGREED:
            run += 1
        following = letters[index + 1 : index + 1 + self._memory]
        agreed = self._chances[run] * self._likelihood(following, min(self._memory, run + 1))
        refused = (1 - self._chances[run]) * self._likelihood(following, 0)
        return AGREED if self._rng.random() * (agreed + refused) < agreed else REFUSED

    def _likelihood(self, following: bytearray, run: int) -> float:
        """Of the letters up to the first refusal, from where on the run before no longer matters."""
        product = 1.0
        for letter in following:
            if letter != AGREED:
                return product * (1 - self._chances[run]) if letter == REFUSED else product
            product *= self._chances[run]
            run = min(self._memory, run + 1)
        return product


def _longest_draft(strings: Sequence[bytes]) -> int:
    """Length of the longest draft that was kept whole."""
    longest = run = 0
    for string in strings:
        for letter in string:
            if letter == UNSEEN:
                longest = max(longest, run)
            run = run + 1 if letter == AGREED else 0
    return longest


def _runs(letters: bytearray) -> list[int]:
    """Length of the run of agreement that begins at each token."""
    runs = [0] * len(letters)
    following = 0
    for index in range(len(letters) - 1, -1, -1):
        following = following + 1 if letters[index] == AGREED else 0
        runs[index] = following
    return runs


def _walk(runs: Sequence[int], draft_length: int) -> _Walk:
    """A draft is cut to the room left but one, as servers cut it."""
    at, full, length = 0, 0, len(runs)
    cut = []
    while at < length:
        drafted = min(draft_length, length - at - 1)
        at += min(runs[at], drafted) + 1
        if drafted == draft_length:
            full += 1
        else:
            cut.append(drafted)
    return _Walk(length, full, tuple(cut))
