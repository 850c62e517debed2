"""Passes rebuilt from streams against the server's own counters, as its only client."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectui.lab.demo import DemoPair
from tests.harness import MIXED, count_run, launched, pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@pytest.mark.parametrize(("concurrency", "temperature"), [(1, 0.8), (4, 0.0)])
async def test_counts_equal_the_servers(
    demo_pair: DemoPair, server_binary: Path, concurrency: int, temperature: float
) -> None:
    profile = (
        pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary)
        .with_server(parallel=concurrency)
        .with_sampling(temperature=temperature)
        .with_traffic(concurrency=concurrency, max_tokens=24)
    )
    async with launched(profile) as server:
        count = await count_run(server, profile, MIXED, 8)
    theirs = count.server
    assert count.requests == 8
    assert (count.drafted, count.accepted, count.drafts) == (theirs.drafted, theirs.accepted, theirs.drafts)
    ours = count.per_position + [0] * (len(theirs.accepted_per_position) - len(count.per_position))
    rest = [int(t) - o for t, o in zip(theirs.accepted_per_position, ours, strict=True)]
    assert min(rest) >= 0
    assert sum(rest) == count.accepted_in_groups
