"""Time from exec to the first frame of `spectui attach`, in a terminal of 120x36 on a scripted server.

In turn with a Textual app that shows one Static, so that a busy machine slows both. Targets: 0.4 s, median of 10,
at most 1.7 times that app, and none of the heavy libraries loaded by then. `--why` lists what the imports cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import psutil

from tests.benchmarks.bench_terminal import load, scripted_server, spectui, terminal
from tests.benchmarks.budgets import Budget, missed

TARGET_SECONDS = 0.4
TARGET_RATIO = 1.7
RUNS = 10
TEXT = "the bet"
BARE_APP = f"""
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static({TEXT!r})
Bare().run()
"""
HEAVY = (
    "httpx",
    "pydantic",
    "plotext",
    "numpy",
    "llama_cpp",
    "psutil",
    "gguf",
    "prometheus_client",
    "pynvml",
)
PROBE = """
import os, sys
from spectui.tui.control import session
def start(self, sink):
    open(sys.argv[1], "w").write("\\n".join(sorted(sys.modules)))
    os._exit(0)
session.SessionController.start = start
from spectui.cli.main import main
main(["attach", sys.argv[2]])
"""
"""Writes what is loaded at the moment when the controller is started, which is after the first frame."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--why", action="store_true", help="list what the imports cost")
    given = parser.parse_args()
    with scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        python = [_seconds([sys.executable, "-c", f"print({TEXT!r})"])[0] for _ in range(given.runs)]
        turns = [
            (_seconds([sys.executable, "-c", BARE_APP])[0], _seconds(spectui("attach", url)))
            for _ in range(given.runs + 1)
        ][1:]
        loaded = _loaded(Path(folder), url)
        if given.why:
            _why(Path(folder), url)
    bare = [elapsed for elapsed, _ in turns]
    seconds = [elapsed for _, (elapsed, _) in turns]
    middle = median(seconds)
    print(f"  from {min(seconds):.3f} to {max(seconds):.3f} s in {given.runs} runs; on a processor "
          f"{median(used for _, (_, used) in turns):.2f} s, the rest waited for one")  # fmt: skip
    print(f"  a Textual app with one Static: {median(bare):.3f} s, from {min(bare):.3f} to {max(bare):.3f}")
    print(f"  a Python that only prints: {median(python):.3f} s; {load()}")
    heavy = [name for name in HEAVY if name in loaded]
    print(
        f"  loaded at the first frame: {len(loaded)} modules; of the heavy ones {', '.join(heavy) or 'none'}"
    )
    return int(
        missed(
            Budget(name="first frame", figure=middle, limit=TARGET_SECONDS, unit="s"),
            Budget(
                name="first frame, of a bare Textual app's",
                figure=middle / median(bare),
                limit=TARGET_RATIO,
                unit="x",
            ),
            Budget(name="heavy libraries loaded at the first frame", figure=len(heavy), limit=0),
        )
    )


def _seconds(argv: list[str]) -> tuple[float, float]:
    """Until the text is drawn: elapsed, and CPU time in steps of 0.01."""
    with terminal(argv) as opened:
        elapsed = opened.wait_for(TEXT)
        used = psutil.Process(opened.process.pid).cpu_times() if opened.process.poll() is None else None
        return elapsed, used.user + used.system if used else 0.0


def _loaded(folder: Path, url: str) -> set[str]:
    names = folder / "modules"
    with terminal([sys.executable, "-c", PROBE, str(names), url]) as opened:
        opened.process.wait(20)
    return set(names.read_text().split())


def _why(folder: Path, url: str) -> None:
    """Import time by top package and the dearest modules, up to the first frame."""
    report = folder / "imports"
    argv = [sys.executable, "-X", "importtime", "-c", PROBE, str(folder / "modules"), url]
    with report.open("w") as file, terminal(argv, stderr=file.fileno()) as opened:
        opened.process.wait(30)
    own: dict[str, int] = {}
    for line in report.read_text("utf-8", "replace").splitlines():
        *_, rest = line.partition("import time:")
        parts = rest.split("|")
        if len(parts) == 3 and parts[0].strip().isdigit():
            own[parts[2].strip()] = int(parts[0])
    packages: dict[str, int] = {}
    for name, micros in own.items():
        package = ".".join(name.split(".")[: 2 if name.startswith("spectui") else 1])
        packages[package] = packages.get(package, 0) + micros
    print(
        f"imports up to the first frame, {sum(own.values()) / 1000:.0f} ms of their own (measuring slows them):"
    )
    for title, table in (("package", packages), ("module", own)):
        for name, micros in sorted(table.items(), key=lambda item: -item[1])[:20]:
            print(f"  {title} {name:42} {micros / 1000:7.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
