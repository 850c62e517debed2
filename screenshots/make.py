"""Make the screenshots from a live run of the demo: `python screenshots/make.py`.

Runs the real dashboard on the real demo pair without a terminal, waits for what each picture is to show, and
writes SVG and PNG files beside this script. PNG needs rsvg-convert.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import OptionList

from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.verdict.verdict import Outcome
from spectui.core.views.snapshot import ServerState, Snapshot, TrafficState
from spectui.tui.app import SpectuiApp
from spectui.tui.control.opening import Opening
from spectui.tui.control.sessions import SessionsController

FOLDER = Path(__file__).parent
CELL = 12.2
"""Width of one character in Textual's SVG."""
ADVANCE = 0.60205
"""Width of a character of DejaVu Sans Mono in its size, so that box drawing joins without gaps."""
FEW = 3
"""Requests that a picture shows at least."""
FONTS = '"DejaVu Sans Mono", "Menlo", "Consolas", monospace'


async def until(
    pilot: Pilot[None], fits: Callable[[Snapshot], bool], what: str, seconds: float = 600
) -> None:
    """Wait for a snapshot that fits."""
    app = pilot.app
    if not isinstance(app, SpectuiApp):
        sys.exit("this script drives spectui only")
    print(f"waiting for {what}", flush=True)
    async with asyncio.timeout(seconds):
        while not fits(app.snapshot):
            await asyncio.sleep(0.2)
    await pilot.pause()


def save(app: SpectuiApp, name: str) -> None:
    """Write one picture as SVG, with fonts that every machine has, and as PNG."""
    svg = _portable(app.export_screenshot(title="spectui"))
    target = FOLDER / f"{name}.svg"
    target.write_text(svg, encoding="utf-8")
    converter = shutil.which("rsvg-convert")
    if converter is None:
        sys.exit("rsvg-convert is missing: install librsvg2-bin")
    subprocess.run(
        [converter, "--zoom", "1.2", "-o", str(target.with_suffix(".png")), str(target)], check=True
    )
    print(f"wrote {target.name} and its PNG", flush=True)


def _portable(svg: str) -> str:
    """Without fonts from the network; leading blanks become positions, since renderers drop them."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", FONTS).replace(
        "font-size: 20px", f"font-size: {CELL / ADVANCE:.3f}px"
    )

    def shifted(match: re.Match[str]) -> str:
        blanks = match["blanks"].count("&#160;")
        x = float(match["x"]) + blanks * CELL
        length = float(match["length"]) - blanks * CELL
        if not match["text"]:
            return ""
        head = f'<text class="{match["class"]}" x="{x:g}" y="{match["y"]}" textLength="{length:g}"'
        return f"{head}{match['rest']}>{match['text']}</text>"

    pattern = (
        r'<text class="(?P<class>[^"]*)" x="(?P<x>[^"]*)" y="(?P<y>[^"]*)" textLength="(?P<length>[^"]*)"'
        r"(?P<rest>[^>]*)>(?P<blanks>(?:&#160;)*)(?P<text>[^<]*)</text>"
    )
    return re.sub(pattern, shifted, svg)


def judged(outcome: Outcome, requests: int) -> Callable[[Snapshot], bool]:
    """A verdict over so many requests of a running server."""
    return lambda s: (
        s.verdict.outcome is outcome and s.bet.requests >= requests and s.server.state is ServerState.RUNNING
    )


async def main() -> None:
    """The story of the README: a draft that loses, and n-grams that are advised and win on another workload."""
    app = SpectuiApp(SessionsController(Opening(demo=True, environ=dict(os.environ))))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, judged(Outcome.LOSING, FEW), "a losing verdict at draft length 8")
        save(app, "losing")
        await pilot.press("w")
        await pilot.pause()
        save(app, "workloads")
        await pilot.press("escape", "question_mark")
        await pilot.pause()
        save(app, "help")
        await pilot.press("escape")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        save(app, "small")
        await pilot.resize_terminal(120, 36)
        await win(app, pilot)
        save(app, "winning")
        await pilot.press("q")


async def win(app: SpectuiApp, pilot: Pilot[None]) -> None:
    """Rewriting: the plain run's answers predict what n-grams would yield, and one key restarts with them."""
    await choose(pilot, "w", "rewrite")
    await until(pilot, lambda s: s.settings.staged.traffic.workload == "rewrite", "the workload")
    await pilot.press("b", "y")
    await until(pilot, lambda s: s.traffic is TrafficState.BASELINE, "the baseline to begin")
    await until(pilot, advised("ngram-better"), "n-grams to be advised")
    save(app, "advice")
    await pilot.press("B")
    await until(
        pilot,
        lambda s: s.settings.running is not None and s.settings.running.speculation.mode == NGRAM_SIMPLE,
        "n-grams to run",
    )
    await until(pilot, judged(Outcome.WINNING, 4), "a winning verdict")


def advised(code: str) -> Callable[[Snapshot], bool]:
    """A change that the first finding about the bet advises, over a few requests."""
    return lambda s: (
        s.verdict.change is not None
        and s.bet.requests >= FEW
        and code in {finding.code for finding in s.verdict.findings if finding.change == s.verdict.change}
    )


async def choose(pilot: Pilot[None], key: str, label: str) -> None:
    """Open the list of a key and take the line with this label."""
    await pilot.press(key)
    await pilot.pause()
    options = pilot.app.screen.query_one(OptionList)
    lines = [str(option.prompt) for option in options.options]
    wanted = next(index for index, line in enumerate(lines) if label in line)
    steps = wanted - (options.highlighted or 0)
    await pilot.press(*["down" if steps > 0 else "up"] * abs(steps), "enter")


if __name__ == "__main__":
    asyncio.run(main())
