"""Cumulative timings of a stream -> target passes.

llama.cpp sends one chunk per token with cumulative counters and never says where a target pass began. The
rules here rebuild the passes, and were checked against the counters and the per-pass trace of real servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

_FREE_TOKENS: Final = 1
"""The first token comes from the prompt's own pass and belongs to no target pass."""


@dataclass(frozen=True, slots=True)
class CumulativeTimings:
    """The `timings` object of one chunk (server-context.cpp); counts and milliseconds since the request began."""

    predicted_n: int
    predicted_ms: float
    draft_n: int = 0
    draft_n_accepted: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    cache_n: int = 0


@dataclass(frozen=True, slots=True)
class TargetPass:
    """One target pass, or several that arrived as one step (`merged` > 1).

    drafted: d, tokens sent to verification. accepted: a. committed: tokens that reached the request, a + 1 but
    fewer when the request ended inside the pass. ms: its time, None where the server does not give it.
    last: whether the request ended with it, so that d may be cut short.
    """

    drafted: int
    accepted: int
    committed: int
    ms: float | None
    merged: int = 1
    last: bool = False
    empty: int = 0
    """Passes of a group that drafted nothing; a pass apart shows that by drafted = 0."""

    @property
    def drafts(self) -> int:
        """Drafts that were not empty."""
        return self.merged - self.empty if self.drafted else 0

    @property
    def apart(self) -> bool:
        """Whether this is one pass and not a group, so that it may enter per-pass statistics."""
        return self.merged == 1

    @property
    def rejected(self) -> bool:
        """Whether a drafted token was turned down; full acceptance is censored, not a failure."""
        return self.accepted < self.drafted


@dataclass(frozen=True, slots=True)
class RequestPasses:
    """All that one request tells about the bet: the cluster that intervals are computed over.

    predicted_n counts the free first token; predicted_ms does not contain its time. ttft_ms is measured by the
    client. completed is False for a cancelled request, which counted further on the server than here.
    """

    passes: tuple[TargetPass, ...]
    drafted: int
    accepted: int
    predicted_n: int
    predicted_ms: float
    prompt_n: int = 0
    prompt_ms: float = 0.0
    ttft_ms: float | None = None
    completed: bool = True

    @property
    def committed(self) -> int:
        """Tokens that target passes committed: all but the free first one."""
        return max(0, self.predicted_n - _FREE_TOKENS)

    def cut_amid(self, longest: int) -> bool:
        """Whether a draft was shorter than `longest` where the request's end was still out of its reach."""
        left = self.committed
        for step in self.passes:
            if step.apart and step.drafted < longest and left > longest + 1:
                return True
            left -= step.committed
        return False

    @property
    def target_passes(self) -> int:
        """Number of target passes, groups counted by their size."""
        return sum(p.merged for p in self.passes)


class PassRebuilder:
    """Feed the timings of each chunk in order; take the passes as they close.

    draft_length is k where it is known, max_tokens the request's limit: both bound what a single step can hold.
    """

    def __init__(self, draft_length: int | None = None, max_tokens: int | None = None) -> None:
        self._k = draft_length
        self._max_tokens = max_tokens
        self._seen = CumulativeTimings(predicted_n=_FREE_TOKENS, predicted_ms=0.0)
        self._open: _OpenPass | None = None
        self._committed = _FREE_TOKENS
        self._passes: list[TargetPass] = []

    @property
    def passes(self) -> tuple[TargetPass, ...]:
        """Passes closed so far."""
        return tuple(self._passes)

    @property
    def timings(self) -> CumulativeTimings:
        """The latest timings seen."""
        return self._seen

    def feed(self, now: CumulativeTimings) -> TargetPass | None:
        """Take one chunk's timings; returns the pass that this chunk closed, if it did."""
        if now.predicted_n <= _FREE_TOKENS and now.draft_n == 0:
            return None
        closed = None
        if (
            now.draft_n != self._seen.draft_n
            or now.predicted_ms != self._seen.predicted_ms
            or self._open is None
        ):
            closed = self._close()
            self._open = _OpenPass(
                drafted=now.draft_n - self._seen.draft_n,
                accepted=now.draft_n_accepted - self._seen.draft_n_accepted,
                ms=now.predicted_ms - self._seen.predicted_ms,
                last_seen_n=now.predicted_n,
            )
        else:
            self._open.last_seen_n = max(self._open.last_seen_n, now.predicted_n)
        self._seen = now
        return closed

    def finish(self, final: CumulativeTimings | None = None) -> TargetPass | None:
        """End the request with the timings of its final chunk; returns the last pass, cut where it was cut."""
        if final is not None:
            self.feed(final)
        return self._close(last=True)

    def _close(self, *, last: bool = False) -> TargetPass | None:
        current, self._open = self._open, None
        if current is None:
            return None
        merged = self._passes_in(current)
        committed = current.accepted + merged
        empty = self._empty_in(current, merged)
        if last:
            committed = min(committed, max(0, self._seen.predicted_n - self._committed))
        self._committed += committed
        closed = TargetPass(
            drafted=current.drafted,
            accepted=current.accepted,
            committed=committed,
            ms=current.ms,
            merged=merged,
            last=last,
            empty=empty,
        )
        self._passes.append(closed)
        return closed

    def _passes_in(self, current: _OpenPass) -> int:
        """How many passes a step holds: withheld incomplete UTF-8 can hide the border between two.

        Every pass commits one token more than it accepts, so the tokens seen bound the number from below; so do
        k tokens at most per pass.
        """
        by_tokens = current.last_seen_n - self._committed - current.accepted
        by_length = -(-current.drafted // self._k) if self._k else 1
        return max(1, by_tokens, by_length)

    def _empty_in(self, current: _OpenPass, merged: int) -> int:
        """How many passes of a group drafted nothing.

        Near the request's limit a draft is cut to the room left but one, so that the very last token is drafted
        by nobody. If the first pass of a group alone may have drafted all of it, the others had no room.
        """
        if merged == 1 or not current.drafted:
            return 0
        if self._k is None or self._max_tokens is None:
            return max(0, merged - current.drafted)
        first = min(self._k, self._max_tokens - self._committed - 1)
        return merged - 1 if current.drafted <= first else 0


@dataclass(slots=True)
class _OpenPass:
    drafted: int
    accepted: int
    ms: float
    last_seen_n: int


def is_two_pass(passes: Sequence[TargetPass]) -> bool:
    """Whether these come from a server that makes two target passes per cycle (b4164 to b7322).

    Such a server's verifying passes move `draft_n` while `predicted_ms` stands still; nobody verifies in no time.
    """
    return any(p.drafted and p.ms == 0 for p in passes)


def in_cycles(request: RequestPasses) -> RequestPasses:
    """The request with its passes paired into cycles, if its server makes two per cycle; else as it is."""
    if not is_two_pass(request.passes):
        return request
    return replace(request, passes=pair_cycles(request.passes))


def pair_cycles(passes: tuple[TargetPass, ...]) -> tuple[TargetPass, ...]:
    """Join the plain and the verifying pass of each cycle of a two-pass server (b4164 to b7322).

    Those servers run one plain target pass, draft, then verify, and report times one pass late: the verifying
    step moves `draft_n` while `predicted_ms` stands still. A cycle commits a + 2 tokens in two target passes;
    its time is what the next plain step shows.
    """
    cycles: list[TargetPass] = []
    for index, step in enumerate(passes):
        if step.drafted == 0 and index + 1 < len(passes) and passes[index + 1].drafted:
            continue
        plain = passes[index - 1] if index and passes[index - 1].drafted == 0 and step.drafted else None
        follower = passes[index + 1] if index + 1 < len(passes) else None
        cycles.append(
            TargetPass(
                drafted=step.drafted,
                accepted=step.accepted,
                committed=step.committed + (plain.committed if plain else 0),
                ms=follower.ms if follower is not None else None,
                merged=step.merged,
                last=step.last,
            )
        )
    return tuple(cycles)
