"""What live tests and benchmarks share: profiles on the small demo pair, and the count of a run by both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.lab.measuring.traffic import RequestResult, Traffic
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.workloads.workloads import Message, Prompt, PromptSequence, Workload
from spectui.llama.http.metrics import ServerCounters, parse_metrics

DEMO_TEST_BLOCKS = 32
"""Blocks of the tests' target: quick, and yet slower than its drafts."""

MIXED = Workload(
    name="mixed",
    description="text that breaks into incomplete UTF-8 between tokens",
    prompts=tuple(
        Prompt(id=f"mixed-{i}", text=None, messages=(Message(role="user", content=text),))
        for i, text in enumerate(
            (
                "Answer with emoji only: 🐢🚀🎉 and then twenty more of them.",
                "次の文を続けてください。むかしむかし、あるところに、おじいさんと",
                "Translate into Japanese and repeat three times: the sea is calm today.",
                "Write a list of fruit, one emoji per line: 🍎 apple\n🍌 banana\n",
                "Explain in two sentences why the sky is blue. 🌤️",
                "「猫」という漢字を十回書いて、そのあと意味を説明してください。",
                "Count from one to thirty in words.",
                "Write the alphabet with a flag emoji after each letter: A 🇦🇹, B 🇧🇪, C",
            )
        )
    ),
)


def pair_profile(target: Path, draft: Path | None, binary: Path, **speculation: Any) -> TuningProfile:
    """A small, quick server on the demo pair with one thread; without a draft it does not speculate."""
    mode = "draft-simple" if draft else "off"
    return TuningProfile(
        # Threads that wait for each other take ten times as long where a test runner needs a core as well.
        server=ServerSettings(
            binary=str(binary), model=str(target), context=4096, threads=1, ready_timeout=120.0
        ),
        speculation=SpeculationSettings(
            **{"mode": mode, "draft_model": str(draft) if draft else None, "draft_length": 4, **speculation}
        ),
        traffic=TrafficSettings(max_tokens=24, workload="prose"),
    )


@asynccontextmanager
async def launched(profile: TuningProfile) -> AsyncIterator[LaunchedServer]:
    """A running server of our own, ended on the way out."""
    server = LaunchedServer(await Launcher().plan(profile))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@dataclass
class Count:
    """One run, counted from the stream and by the server."""

    drafted: int = 0
    accepted: int = 0
    drafts: int = 0
    per_position: list[int] = field(default_factory=list)
    requests: int = 0
    groups: int = 0
    accepted_in_groups: int = 0
    before: ServerCounters = field(default_factory=ServerCounters)
    after: ServerCounters = field(default_factory=ServerCounters)

    def warmed_up(self) -> None:
        """Nothing to do."""

    def decoding_begins(self, at: float) -> None:
        """Nothing to do."""

    def tokens_arrived(self, count: int, at: float, text: str) -> None:
        """Nothing to do."""

    def request_ended(self, result: RequestResult) -> None:
        """Add a counted request."""
        if not result.counted:
            return
        self.requests += 1
        self.drafted += result.passes.drafted
        self.accepted += result.passes.accepted
        for step in result.passes.passes:
            self.drafts += step.drafts
            self.groups += not step.apart
            self.accepted_in_groups += 0 if step.apart else step.accepted
            for position in range(step.accepted if step.apart else 0):
                while len(self.per_position) <= position:
                    self.per_position.append(0)
                self.per_position[position] += 1

    @property
    def server(self) -> ServerCounters:
        """The server's own count of the same requests."""
        return self.after.minus(self.before)


async def count_run(
    server: LaunchedServer, profile: TuningProfile, workload: Workload, requests: int
) -> Count:
    """Send warm-up and counted requests as the only client, with a scrape before and after the counted ones."""
    count, prompts = Count(), PromptSequence(workload)

    async def send(profile: TuningProfile, requests: int) -> ServerCounters:
        # As many prompts as are wanted: a dropped request counts further on the server.
        these = islice(prompts, profile.traffic.warmup + requests)
        traffic = Traffic(server.client, these, profile, count, cache_prompt=server.cache_prompt)
        await traffic.run(requests=requests)
        return parse_metrics(await server.client.metrics_text())

    count.before = await send(profile, 0)
    count.after = await send(profile.with_traffic(warmup=0), requests)
    return count
