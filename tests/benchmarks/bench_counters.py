"""Stream against /metrics over 50 requests: concurrency 1 and 4, temperature 0 and 0.8, emoji and Japanese.

Prints each count beside the server's own. Target: equal; where two passes arrived as one step, the positions of
that step are left out on our side and named.
"""

from __future__ import annotations

import asyncio
import sys

from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.harness import MIXED, Count, count_run, launched, pair_profile

REQUESTS = 50
TOKENS = int(sys.argv[1]) if len(sys.argv) > 1 else 48
"""Tokens per request at most."""


async def main() -> int:
    pair, binary = await small_pair(), wheel_binary()
    bad = 0
    for concurrency in (1, 4):
        profile = pair_profile(pair.target, pair.drafts[0], binary).with_server(parallel=concurrency)
        async with launched(profile) as server:
            for temperature in (0.0, 0.8):
                settings = profile.with_sampling(temperature=temperature).with_traffic(
                    concurrency=concurrency, max_tokens=TOKENS
                )
                count = await count_run(server, settings, MIXED, REQUESTS)
                theirs = count.server
                rows: list[tuple[str, object, object]] = [
                    ("drafted", count.drafted, theirs.drafted),
                    ("accepted", count.accepted, theirs.accepted),
                    ("non-empty drafts", count.drafts, theirs.drafts),
                ]
                if not count.groups:
                    positions = [int(x) for x in theirs.accepted_per_position]
                    rows.append(("per position", count.per_position, positions))
                print(f"concurrency {concurrency}, temperature {temperature}: {count.requests} requests, "
                      f"{count.groups} steps held more than one pass")  # fmt: skip
                for name, ours, server_says in rows:
                    equal = ours == server_says
                    bad += not equal
                    said = "equal" if equal else "DIFFERENT"
                    print(f"  {name:18} ours {ours!s:22} server {server_says!s:22} {said}")
                if count.groups:
                    bad += not _positions_fit(count)
    return int(missed(Budget(name="counts that differ from the server's own", figure=bad, limit=0)))


def _positions_fit(count: Count) -> bool:
    """What the server counts beyond our passes apart must be exactly what the groups accepted."""
    theirs = [int(x) for x in count.server.accepted_per_position]
    ours = count.per_position + [0] * (len(theirs) - len(count.per_position))
    rest = [t - o for t, o in zip(theirs, ours, strict=True)]
    fits = min(rest) >= 0 and sum(rest) == count.accepted_in_groups
    print(
        f"  per position       ours {ours}, server {theirs}: the rest {rest} sums to {sum(rest)}, "
        f"the groups accepted {count.accepted_in_groups}: {'equal' if fits else 'DIFFERENT'}"
    )
    return fits


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
