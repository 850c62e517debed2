"""What a plain server's answers predict of n-gram lookups, against a server that speculates with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectui.core.bet.ngram_replay import Lookups
from spectui.core.profile import TuningProfile
from spectui.lab.demo import DemoPair
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.ngram_replay import tokens_of
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from tests.harness import launched, pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

TOKENS = 24


async def answers(server: Server, profile: TuningProfile) -> list[RequestResult]:
    found: list[RequestResult] = []
    collector = Collector(profile, on_answer=found.append)
    await collector.send(server, PromptSequence(load_workload(profile.traffic)), requests=4)
    return found


@pytest.mark.parametrize("workload", ["rewrite", "code"])
async def test_drafts_are_predicted_to_the_token(
    demo_pair: DemoPair, server_binary: Path, workload: str
) -> None:
    plain = pair_profile(demo_pair.target, None, server_binary)
    plain = plain.with_traffic(workload=workload, max_tokens=TOKENS, warmup=0)
    async with launched(plain) as server:
        predicted = await answers(server, plain)
        texts = await tokens_of(server.client, predicted)
    assert len(texts) == len(predicted) == 4
    profile = plain.with_speculation(mode="ngram-simple", ngram_lookup=2, ngram_length=8)
    async with launched(profile) as server:
        seen = await answers(server, profile)
    # Verifying many rows at once rounds otherwise, which now and then turns a token of the text.
    alike = [
        (Lookups(text, 2).passes(8), result.passes)
        for text, one, result in zip(texts, predicted, seen, strict=True)
        if one.text == result.text
    ]
    assert len(alike) >= 3
    for passes, measured in alike:
        assert sum(p.drafted for p in passes) == measured.drafted
        assert sum(p.accepted for p in passes) == measured.accepted
    assert any(p.drafted for passes, _ in alike for p in passes)
