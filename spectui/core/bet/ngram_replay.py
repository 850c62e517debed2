"""An answer's tokens -> the target passes that n-gram lookups would have made of it, without a server.

`ngram-simple` drafts from nothing but the text: where the last tokens stood before, it proposes what followed them
there. So the answers of a run without speculation tell what any lookup and length would have yielded on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spectui.core.bet.estimates import Estimate, LookupPrediction
from spectui.core.bet.intervals import TWO_STARTS_ERROR, RatioSums, ratio

REPLAY_ERROR: Final = 0.015
"""Standard error of a replay once the cost of its rows is known, beside that of the server starts (measured: twelve
cells of a sweep were within 4 % of what the run of another one told)."""
UNKNOWN_SURPLUS: Final = (0.0, 0.15)
"""Least and largest plain steps beyond V that a drafted row costs where nothing tells it (measured: 0.05 for a
model of 135 million parameters, whose output layer is a fifth of it; larger models have less)."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Token ids of one request: what the server was given, with its special tokens, and what it generated.

    limit: tokens that it might have generated, at least those that it has: a draft is cut to the room left but one.
    """

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class LookupPass:
    """One target pass: tokens sent to verification, and those of them that were right."""

    drafted: int
    accepted: int


class Lookups:
    """One request's text with every earlier place of its last `lookup` tokens, ready for drafts of any length."""

    def __init__(self, text: Answered, lookup: int) -> None:
        self.lookup = lookup
        self._tokens = (*text.prompt, *text.answer)
        self._first = len(text.prompt) + 1
        self._end = len(text.prompt) + text.limit
        self._goes_on = _continuations(self._tokens, self._first, lookup)

    def passes(self, length: int) -> tuple[LookupPass, ...]:
        """The passes of drafts of at most `length` tokens, from the first token, which the prompt's pass yields.

        As the server drafts (llama.cpp common/ngram-map.cpp, common_ngram_simple_draft): nothing until more than
        lookup + length + 1 tokens are stored, and nothing that is shorter than the lookup itself.
        """
        made = []
        at = self._first
        while at < len(self._tokens):
            drafted = max(0, min(self._found(at, length), self._end - at - 1))
            accepted = self._agreed(at, drafted)
            made.append(LookupPass(drafted, accepted))
            at += accepted + 1
        return tuple(made)

    def _found(self, at: int, length: int) -> int:
        """Tokens that a draft after the first `at` tokens has; 0 without one."""
        goes_on = self._goes_on[at - self._first]
        if not goes_on or at - 1 <= self.lookup + length + 1:
            return 0
        # The newest token is searched for, but not yet part of what is copied.
        copied = min(length, at - 1 - goes_on)
        return copied if copied >= self.lookup else 0

    def _agreed(self, at: int, drafted: int) -> int:
        goes_on = self._goes_on[at - self._first]
        for i in range(min(drafted, len(self._tokens) - at)):
            if self._tokens[at + i] != self._tokens[goes_on + i]:
                return i
        return min(drafted, len(self._tokens) - at)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a lookup makes of texts."""

    lookup: int
    """Tokens that must match."""
    length: int
    """Tokens that are drafted at most."""
    tokens: float
    """That the passes commit: of each text all but the first, and the one that ends it before its limit."""
    passes: int
    """Target passes that commit them."""
    steps: float
    """Plain steps that those take, by V."""
    rows: int
    """Tokens that are drafted in all."""
    error: float
    """Relative standard error between requests."""

    @property
    def ceiling(self) -> float:
        """The speedup if drafting and verifying were free: E."""
        return self.tokens / self.passes

    @property
    def row_cost(self) -> float:
        """Plain steps per drafted row, by V; only where something is drafted."""
        return (self.steps - self.passes) / self.rows

    def speedup(self, row_surplus: float) -> Estimate:
        """Over a plain run of the same texts. row_surplus: steps per drafted row that the probe does not see."""
        return Estimate(value=self.tokens / (self.steps + row_surplus * self.rows)).widened(self.error)

    def between(self, least: float, most: float) -> Estimate:
        """The speedup where the surplus is somewhere between: at its middle, with an interval that spans both."""
        middle, dear, cheap = (self.speedup(s) for s in ((least + most) / 2, most, least))
        return Estimate(value=middle.value, low=dear.low, high=cheap.high)


def replay_at(replays: Iterable[Replay], sizes: tuple[int | None, int | None]) -> Replay | None:
    """The replay of this lookup and length."""
    return next((replay for replay in replays if (replay.lookup, replay.length) == sizes), None)


def replay(texts: Sequence[Lookups], length: int, pass_cost: Callable[[int], float]) -> Replay | None:
    """Drafts of at most `length` tokens on all texts, at one lookup; None for fewer than two passes in all.

    pass_cost: R of a pass with d drafted tokens, in plain steps.
    """
    number, rows, clusters = 0, 0, []
    for text in texts:
        passes = text.passes(length)
        number += len(passes)
        rows += sum(p.drafted for p in passes)
        sums = RatioSums()
        for step in passes:
            sums = sums.plus(step.accepted + 1, pass_cost(step.drafted))
        if passes:
            clusters.append(sums)
    found = ratio(clusters)
    if found is None or found.standard_error is None:
        return None
    tokens, steps = math.fsum(c.x for c in clusters), math.fsum(c.y for c in clusters)
    return Replay(texts[0].lookup, length, tokens, number, steps, rows, found.standard_error / found.value)


@dataclass(frozen=True, slots=True)
class RowSurplus:
    """Plain steps that a drafted row costs beyond V, with its standard error."""

    value: float
    error: float


def row_surplus(runs: Iterable[tuple[Replay, float]], error: float) -> RowSurplus:
    """The surplus by what is known before and by runs of replayed settings, each weighed by its certainty.

    runs: each replay with the speedup that its setting was measured at, on the same answers; error: relative
    standard error of each of these. The surplus is the target's and the machine's alone (the probe computes logits
    for one row), so that one setting's run tells it for all; it is at least 0.
    """
    least, most = UNKNOWN_SURPLUS
    # Before any run: evenly spread between both.
    value, variance = (least + most) / 2, (most - least) ** 2 / 12
    for seen, speedup in runs:
        if seen.rows:
            taken = seen.tokens / speedup
            own, spread = (taken - seen.steps) / seen.rows, (error * taken / seen.rows) ** 2
            value = (value * spread + own * variance) / (variance + spread)
            variance = variance * spread / (variance + spread)
    return RowSurplus(max(0.0, value), math.sqrt(variance))


def best_lookup(
    replays: Iterable[Replay], surplus: tuple[float, float], ran: Mapping[tuple[int, int], float]
) -> LookupPrediction | None:
    """The replay that is predicted fastest of those that did not run; None without any that drafts.

    surplus: least and largest plain steps that a drafted row costs beyond V; their middle decides. ran: speedups
    that were measured, by lookup and length: where other answers repeat more or less than those that were replayed,
    all predictions are off by the same factor.
    """
    replays = tuple(replays)
    off = [
        math.log(ran[sizes] / replay.between(*surplus).value)
        for replay in replays
        if (sizes := (replay.lookup, replay.length)) in ran
    ]
    factor = math.exp(math.fsum(off) / len(off)) if off else 1.0
    drafting = [replay for replay in replays if replay.rows and (replay.lookup, replay.length) not in ran]
    if not drafting:
        return None
    best = max(drafting, key=lambda replay: replay.between(*surplus).value)
    speedup = best.between(*surplus).times(factor).widened(math.hypot(REPLAY_ERROR, TWO_STARTS_ERROR))
    return LookupPrediction(lookup=best.lookup, length=best.length, speedup=speedup)


def _continuations(tokens: Sequence[int], first: int, lookup: int) -> list[int]:
    """Where the latest earlier place of the last tokens goes on, after the first `first` tokens and each more.

    0 where there is none: the server takes a match at the very first token for none as well.
    """
    latest: dict[tuple[int, ...], int] = {}
    found, indexed = [], 1
    for end in range(first, len(tokens)):
        # A place may touch its own copy, but the newest token is not part of it.
        while indexed < end - 1 - lookup:
            latest[tuple(tokens[indexed : indexed + lookup])] = indexed + lookup
            indexed += 1
        found.append(latest.get(tuple(tokens[end - lookup : end]), 0) if end > lookup else 0)
    return found
