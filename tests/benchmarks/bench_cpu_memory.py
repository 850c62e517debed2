"""CPU and memory of the dashboard on a scripted server: with traffic of 60 tokens/s, and idle.

The plain speed and V(n) come from a second scripted server first, so that the full curve is predicted on the way.
Targets: 6 % of one core with traffic and all charts at 120x36, 2 % idle, 80 MiB resident. For orientation also
what a Textual app takes that does nothing, and one httpx client that only reads the same stream.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.benchmarks.bench_terminal import Terminal, load, scripted_server, spectui, terminal
from tests.benchmarks.budgets import Budget, missed

BUSY_PERCENT = 6.0
IDLE_PERCENT = 2.0
MEMORY_MIB = 80.0
WARM_UP_SECONDS = 15
PLAIN_RATE = 34.0
PREDICTED = " check"
"""On screen once V(n) explains what a pass costs."""
BEST = "\u2605"
"""On screen once the speedup curve is drawn."""
PROFILE = """
description = "benchmark"

[server]
url = "{url}"

[speculation]
mode = "draft-simple"
draft_length = 4

[traffic]
workload = "prose"
max_tokens = 200
"""
BARE_APP = "from textual.app import App; App().run()"
BARE_READER = """
import asyncio, httpx, sys
async def main():
    async with httpx.AsyncClient(trust_env=False, timeout=None) as http:
        while True:
            body = {"prompt": "p", "n_predict": 200, "stream": True}
            async with http.stream("POST", sys.argv[1] + "/completion", json=body) as answer:
                async for _ in answer.aiter_bytes():
                    pass
asyncio.run(main())
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="watch the memory for 20 minutes instead of 3")
    parser.add_argument("--quick", action="store_true", help="no memory after minutes")
    parser.add_argument("--rate", type=float, default=60.0, help="tokens per second")
    given = parser.parse_args()
    with (
        scripted_server("--rate", str(given.rate)) as url,
        scripted_server(f"{PLAIN_RATE:g}", module="tests.benchmarks.plain_server") as plain,
    ):
        bad = _dashboard(url, plain, minutes=0 if given.quick else 20 if given.long else 3)
        with terminal([sys.executable, "-c", BARE_APP]) as opened:
            time.sleep(3)
            print(f"for orientation: a Textual app that does nothing {_percent(opened, 10):.1f} %, "
                  f"{_mib(opened):.0f} MiB")  # fmt: skip
        with terminal([sys.executable, "-c", BARE_READER, url]) as opened:
            time.sleep(3)
            print(f"for orientation: httpx reading the same stream {_percent(opened, 15):.1f} %, "
                  f"{_mib(opened):.0f} MiB")  # fmt: skip
    return int(bad)


def _dashboard(url: str, plain: str, *, minutes: int) -> bool:
    with _opened(url) as dashboard:
        dashboard.type(b"b")
        dashboard.wait_for("second server")
        dashboard.type(plain.encode() + b"\r")
        dashboard.wait_for(f"{PLAIN_RATE:.1f}", timeout=120)
        began = time.monotonic()
        dashboard.type(b" ")
        dashboard.wait_for(PREDICTED, timeout=60)
        dashboard.wait_for(BEST, timeout=60)
        time.sleep(WARM_UP_SECONDS)
        painted = len(dashboard.drawn)
        busy = _percent(dashboard, 30)
        painted_a_second = (len(dashboard.drawn) - painted) / 30
        bad = _print("with traffic, CPU of one core", busy, BUSY_PERCENT, "%")
        bad |= _print(f"resident after {time.monotonic() - began:.0f} s", _mib(dashboard), MEMORY_MIB, "MiB")
        print(f"  {painted_a_second / 1000:.1f} kB drawn per second")
        if minutes:
            time.sleep(max(0.0, began + minutes * 60 - time.monotonic()))
            bad |= _print(f"resident after {minutes} min", _mib(dashboard), MEMORY_MIB, "MiB")
        dashboard.type(b" ")
        time.sleep(5)
        bad |= _print("idle, CPU of one core", _percent(dashboard, 20), IDLE_PERCENT, "%")
    return bad


@contextmanager
def _opened(url: str) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "bench.toml"
        profile.write_text(PROFILE.format(url=url))
        with terminal(spectui("run", str(profile)), columns=120, rows=36) as opened:
            opened.wait_for("b10434")
            yield opened


def _percent(opened: Terminal, seconds: float) -> float:
    """CPU time of the process over `seconds`, in percent of one core."""
    process = psutil.Process(opened.process.pid)
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, elapsed = process.cpu_times(), time.monotonic() - began
    return 100 * (after.user + after.system - before.user - before.system) / elapsed


def _mib(opened: Terminal) -> float:
    return float(psutil.Process(opened.process.pid).memory_info().rss) / 2**20


def _print(what: str, value: float, target: float, unit: str) -> bool:
    over = missed(Budget(name=what, figure=value, limit=target, unit=unit))
    print(f"  {load()}")
    return over


if __name__ == "__main__":
    sys.exit(main())
