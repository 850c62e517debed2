"""The verification probe: what a target pass over n tokens costs, in plain steps, on any llama-server.

A prefix stays in the slot's cache; n new tokens and one predicted token make one pass over n tokens, whose time the
server reports as prompt_ms. It must run where nothing speculates: a draft would read the new tokens too. The probe
computes logits for one row and verification for all, so it can read low; one speculating run corrects that
(`core.bet.cost`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from spectui.core.bet.passes import CumulativeTimings
from spectui.core.profile import TuningProfile
from spectui.errors import ServerError
from spectui.lab.workloads.filler_text import sentences
from spectui.llama.http.client import LlamaClient

DEFAULT_TOKENS: Final = (1, 2, 3, 4, 5, 8, 9, 16, 17)
"""Rows are computed in tiles of powers of two: V steps up behind each (measured, 2.83 at 8 and 3.70 at 9 rows), so
that both sides of a step are needed."""
PREFIX_TOKENS: Final = 64
MOST_TOKENS: Final = 512
"""More rows than this make no pass of a usual batch."""
ROUNDS: Final = 5
_SLOT: Final = 0
_OF_A_MEDIAN: Final = 1.2533
"""Standard error of a median over that of a mean, for a normal spread: sqrt(pi / 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """V(n) by n. dropped: the n that the server did not run as asked (another prompt_n, or no cached prefix)."""

    t1_ms: float | None = None
    """One pass over one token, in milliseconds, by the probe's own clock: the server's prompt_ms."""
    v: dict[int, float] = field(default_factory=dict)
    error: dict[int, float] = field(default_factory=dict)
    """Relative standard error of V(n); of those n that were timed at least twice."""
    dropped: tuple[int, ...] = ()


def probe_points(profile: TuningProfile) -> tuple[int, ...]:
    """The usual n, and with several slots what all of them verify together."""
    slots = profile.traffic.concurrency
    if slots == 1:
        return DEFAULT_TOKENS
    most = min(MOST_TOKENS, slots * (profile.speculation.draft_length + 1))
    return tuple(sorted({*DEFAULT_TOKENS, slots, 2 * slots, most}))


async def probe(
    client: LlamaClient,
    tokens: Sequence[int] = DEFAULT_TOKENS,
    *,
    rounds: int = ROUNDS,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ProbeResult:
    """Measure V at each n of `tokens`; n = 1 is always measured along.

    Rounds go through all n in turn, so that a machine that slows down hits all alike; medians are taken. Raises
    ServerError when not even n = 1 can be measured.
    """
    wanted = sorted({1, *tokens})
    ids = await _token_ids(client, PREFIX_TOKENS + (rounds + 1) * len(wanted) * 2 + max(wanted))
    prefix, fresh = ids[:PREFIX_TOKENS], itertools.cycle(ids[PREFIX_TOKENS:])
    await client.prompt_only(prefix, slot=_SLOT)
    times: dict[int, list[float]] = {n: [] for n in wanted}
    turns = [n for turn in range(rounds + 1) for n in (wanted if turn % 2 == 0 else reversed(wanted))]
    for done, n in enumerate(turns):
        timings = await client.prompt_only([*prefix, *_distinct(fresh, n)], slot=_SLOT)
        warm_up = done < len(wanted)
        if not warm_up and _as_asked(timings, n):
            times[n].append(timings.prompt_ms)
        on_progress(done + 1, len(turns))
    if not times[1]:
        raise ServerError(
            f"{client.base_url} does not keep a cached prefix, so that verification cannot be probed on it"
        )
    t1 = median(times[1])
    return ProbeResult(
        t1_ms=t1,
        v={n: median(measured) / t1 for n, measured in times.items() if measured},
        error=_errors(times),
        dropped=tuple(n for n, measured in times.items() if not measured),
    )


def _errors(times: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Of the ratio of two medians, from the median absolute deviation of each (1.4826: of a normal spread)."""
    spread = {
        n: 1.4826 * _deviation(t) / median(t) / math.sqrt(len(t)) for n, t in times.items() if len(t) > 1
    }
    one = spread.get(1)
    if one is None:
        return {}
    return {n: _OF_A_MEDIAN * math.hypot(error, one) for n, error in spread.items() if n > 1}


def _deviation(times: Sequence[float]) -> float:
    middle = median(times)
    return median(abs(t - middle) for t in times)


def _as_asked(timings: CumulativeTimings, n: int) -> bool:
    return timings.prompt_n == n and timings.cache_n in {0, PREFIX_TOKENS} and timings.prompt_ms > 0


def _distinct(fresh: itertools.cycle[int], n: int) -> list[int]:
    """The next n tokens; the cycle's period differs from what is cached, so that no more than the prefix fits."""
    return [next(fresh) for _ in range(n)]


async def _token_ids(client: LlamaClient, count: int) -> list[int]:
    """Ids of ordinary text in the server's vocabulary."""
    pieces: list[str] = []
    ids: tuple[int, ...] = ()
    for sentence in sentences(0):
        pieces.append(sentence)
        if len(pieces) * 6 >= count:
            ids = await client.token_ids(" ".join(pieces))
            if len(ids) >= count:
                break
    return list(ids[:count])
