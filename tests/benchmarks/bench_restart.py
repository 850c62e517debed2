"""From the restart key to the first request accepted, against what the bare binary needs.

The bare binary: SIGTERM while idle until it is gone, plus exec until /health is ok, same arguments, same machine,
alternating with ours. Target: at most 0.3 s longer. "Accepted" is the server's own log line that it took a task.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from spectui.core.profile import TuningProfile
from spectui.core.views.snapshot import MachineView
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.session.session import Session
from spectui.llama.http.client import Health, LlamaClient
from spectui.llama.process.process import ServerProcess
from spectui.store.paths import Folders
from tests.benchmarks.bench_setup import small_pair, wheel_binary
from tests.benchmarks.budgets import Budget, missed
from tests.harness import pair_profile

ROUNDS = 7
TARGET_SECONDS = 0.3
POLL = 0.004


async def bare(profile: TuningProfile) -> float:
    """Seconds that the binary alone needs to stop when idle and to become healthy again."""
    plan = await Launcher().plan(profile)
    spent = 0.0
    async with LlamaClient(f"http://127.0.0.1:{plan.port}") as client:
        begun = time.perf_counter()
        process = await ServerProcess.start(plan.argv, plan.environment)
        while await client.health() is not Health.OK:
            await asyncio.sleep(POLL)
        spent += time.perf_counter() - begun
    # An open connection would hold the idle server up.
    begun = time.perf_counter()
    await process.stop()
    return spent + time.perf_counter() - begun


async def accepted(session: Session, before: object) -> None:
    """Until a new server of the session has taken its first task."""
    while True:
        server = session.server.current
        new = isinstance(server, LaunchedServer) and server is not before
        if server is not None and new and any("processing task" in line for line in server.log_tail(400)):
            return
        await asyncio.sleep(POLL)


async def ours(session: Session, k: int) -> float:
    """Seconds from the key to the first request accepted, with traffic flowing before."""
    before = session.server.current
    while not session.reading(MachineView()).live.bet.passes:
        await asyncio.sleep(POLL)
    session.stage(lambda p: p.with_speculation(draft_length=k))
    begun = time.perf_counter()
    session.restart()
    await accepted(session, before)
    return time.perf_counter() - begun


async def main() -> int:
    pair, binary = await small_pair(), wheel_binary()
    profile = pair_profile(pair.target, pair.drafts[0], binary)
    with tempfile.TemporaryDirectory() as home:
        root = Path(home)
        folders = Folders(config=root, cache=root, data=root, state=root, log=root)
        session = Session(profile, folders=folders)
        session.open(traffic=True)
        try:
            await accepted(session, None)
            alone, restarted = [], []
            for turn in range(ROUNDS):
                restarted.append(await ours(session, 3 + turn % 2))
                session.toggle_traffic()
                await session.settled()
                alone.append(await bare(profile))
                session.toggle_traffic()
                await session.settled()
                print(f"round {turn + 1}: key to accepted {restarted[-1]:.3f} s, bare {alone[-1]:.3f} s")
        finally:
            await session.aclose()
    extra = statistics.median(restarted) - statistics.median(alone)
    print(f"median: {statistics.median(restarted):.3f} s against {statistics.median(alone):.3f} s bare")
    name = "a restart, longer than the bare binary's"
    return int(missed(Budget(name=name, figure=extra, limit=TARGET_SECONDS, unit="s")))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
