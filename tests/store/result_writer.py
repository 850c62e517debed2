"""A program that keeps results as fast as it can and says what is kept: killed by tests, or run side by side.

    python result_writer.py FILE runs COUNT      so many runs with three updates each
    python result_writer.py FILE sweep CELLS     the cells of one sweep that are not there yet
    python result_writer.py FILE hold PLAN       a sweep with this plan, JSON, that goes on until stdin ends

Says one line for each call that returned: `run N`, `update N REQUESTS`, `end N`, `cell KEY`, `sweep N`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spectui.core.profile import TuningProfile
from spectui.store.records import RunConditions, RunSummary
from spectui.store.results import ResultStore

UPDATES = 3


def say(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def runs(store: ResultStore, count: str) -> None:
    for _ in range(int(count)):
        run = store.begin_run(RunConditions(profile=TuningProfile(), build="b10434"), at=1.0)
        say("run", run)
        for requests in range(1, UPDATES + 1):
            store.update_run(run, RunSummary(requests=requests))
            say("update", run, requests)
        store.end_run(run, RunSummary(requests=UPDATES), at=2.0)
        say("end", run)


def hold(store: ResultStore, plan: str) -> None:
    say("sweep", store.begin_sweep(json.loads(plan), at=1.0))
    sys.stdin.read()


def sweep(store: ResultStore, count: str) -> None:
    cells = int(count)
    plan = {"cells": cells}
    found = store.unfinished_sweep(plan)
    number = store.begin_sweep(plan, at=1.0) if found is None else found.id
    known = {cell.key for cell in found.cells} if found else set()
    for key in map(str, range(cells)):
        if key not in known:
            store.put_cell(number, key, {"speed": float(key)}, at=2.0)
            say("cell", key)
    store.end_sweep(number, "done", at=3.0)


if __name__ == "__main__":
    {"runs": runs, "sweep": sweep, "hold": hold}[sys.argv[2]](ResultStore(Path(sys.argv[1])), sys.argv[3])
