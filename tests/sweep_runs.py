"""Sweeps as a user starts them, and what is kept of one that was killed: for tests and benchmarks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.records import Sweep
from spectui.store.results import ResultStore
from tests.contract import printed
from tests.harness import pair_profile

SMALL = ("--mode", "draft-simple", "--k", "1,2,4", "--workload", "code", "--runs", "2", "--tokens", "10")


def saved_pair(pair: DemoPair, binary: Path, path: Path) -> Path:
    """A profile of the demo pair as a file."""
    save(pair_profile(pair.target, pair.drafts[0], binary), path, Folders.default())
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "spectui", *map(str, arguments)]


def spectui(*arguments: object, timeout: float = 280) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command."""
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=dict(os.environ),
    )
    return done.returncode, done.stdout, done.stderr


def swept(*arguments: object, timeout: float = 280) -> tuple[dict[str, Any], str]:
    """The object and the progress of a sweep that ends well."""
    status, out, err = spectui("sweep", *arguments, "--json", timeout=timeout)
    if status != 0:
        raise AssertionError(err)
    return printed(out, "sweep", *arguments), err


def kept() -> tuple[Sweep, ...]:
    """The sweeps in the user's store, the newest first."""
    return ResultStore.default(Folders.default()).sweeps()


def kept_keys(sweep: Sweep) -> list[str]:
    """The runs of cells, without the seconds that belong to none."""
    return [cell.key for cell in sweep.cells if not cell.key.startswith("rest ")]


def killed_after(seconds: float, arguments: Sequence[object]) -> bool:
    """Start a sweep and kill it, and nothing else, after so long; False where it had ended by then."""
    process = subprocess.Popen(
        command("sweep", *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    timer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
    timer.start()
    try:
        return process.wait() == -signal.SIGKILL
    finally:
        timer.cancel()


def killed_and_resumed(rounds: int, rng: Random, arguments: Sequence[object]) -> list[str]:
    """Kill a sweep at random moments, run it to its end, and return what was wrong on the way.

    A kill may come before the sweep is kept, or after it is done; neither has anything to lose.
    """
    begun = time.monotonic()
    first, _ = swept(*arguments)
    whole = time.monotonic() - begun
    wrong: list[str] = []
    before: dict[str, Any] = {}
    number: int | None = None
    for round_ in range(rounds):
        killed = killed_after(rng.uniform(0.1, 0.7) * whole, arguments)
        newest = kept()[0]
        if newest.id == first["sweep"]:
            continue
        if number is not None and newest.id != number:
            wrong.append(f"round {round_}: sweep {number} was not resumed")
        keys = kept_keys(newest)
        wrong += [f"round {round_}: {key} twice" for key in set(keys) if keys.count(key) > 1]
        number, before = newest.id, _unchanged(newest, before, f"round {round_}", wrong)
        if not killed or newest.state == "done":
            return wrong
    data, _ = swept(*arguments)
    final = next(sweep for sweep in kept() if sweep.id == data["sweep"])
    if number is not None and final.id != number:
        wrong.append(f"sweep {number} was not resumed to its end")
    _unchanged(final, before, "at the end", wrong)
    if not data["finished"] or final.state != "done":
        wrong.append("the sweep did not come to its end")
    return wrong


def _unchanged(sweep: Sweep, before: dict[str, Any], when: str, wrong: list[str]) -> dict[str, Any]:
    """The results by key; whatever was there before must be as it was."""
    now = {cell.key: cell.result for cell in sweep.cells}
    wrong += [f"{when}: {key} was lost" for key in before if now.get(key) != before[key]]
    return now
