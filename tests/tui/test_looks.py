"""What the screens look like; regenerate with --snapshot-update and look at every picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from spectui.core.views.ab import AbState, AbView
from spectui.core.views.run_list import RunList
from spectui.core.views.snapshot import Snapshot
from spectui.core.views.sweep import SweepStage, SweepView
from spectui.tui.app import SpectuiApp
from tests.tui import fakes

SMALL, LARGE = (80, 24), (160, 48)

LOOKS: list[tuple[str, Snapshot, tuple[int, int], tuple[str, ...]]] = [
    ("winning_large", fakes.winning(), LARGE, ()),
    ("losing_small", fakes.losing(), SMALL, ()),
    ("losing_large", fakes.losing(), LARGE, ()),
    ("staged_small_curve", fakes.staged(), SMALL, ("g", "g")),
    ("verifying_small", fakes.losing(), SMALL, ("g", "g", "g")),
    ("loading_small", fakes.loading(), SMALL, ()),
    ("failed_small", fakes.failed(), SMALL, ()),
    ("silent_large", fakes.silent(), LARGE, ()),
    ("mode_picker_small", fakes.losing(), SMALL, ("n",)),
    ("draft_picker_large", fakes.losing(), LARGE, ("d",)),
    ("help_small", fakes.losing(), SMALL, ("question_mark",)),
    ("written_large", fakes.losing(), LARGE, ("o",)),
    ("sessions_small", fakes.several(), SMALL, ()),
    ("sessions_large", fakes.several(), LARGE, ()),
]
COMPARISONS: list[tuple[str, AbView, tuple[int, int], tuple[str, ...]]] = [
    ("ready_small", fakes.ab(), SMALL, ("a",)),
    ("no_b_large", replace(fakes.ab(), b=None), LARGE, ("a",)),
    ("running_small", fakes.ab(AbState.RUNNING), SMALL, ("a",)),
    ("running_large", fakes.ab(AbState.RUNNING), LARGE, ("a",)),
    ("decided_small", fakes.ab(AbState.ENDED), SMALL, ("a",)),
    ("decided_large", fakes.ab(AbState.ENDED), LARGE, ("a", "1")),
]
SWEEPS: list[tuple[str, SweepView, tuple[int, int], tuple[str, ...]]] = [
    ("planned_small", fakes.sweep(), SMALL, ("S",)),
    ("running_small", fakes.sweep(SweepStage.RUNNING), SMALL, ("S",)),
    ("done_large", fakes.sweep(SweepStage.DONE), LARGE, ("S",)),
    ("modes_small", fakes.sweep(), SMALL, ("S", "n")),
]
HISTORIES: list[tuple[str, RunList, tuple[int, int], tuple[str, ...]]] = [
    ("empty_small", RunList(), SMALL, ("h",)),
    ("runs_small", fakes.kept_runs(), SMALL, ("h", "space")),
    ("compared_large", fakes.kept_runs(), LARGE, ("h", "space", "down", "c")),
]


@pytest.mark.parametrize(("name", "instant", "size", "keys"), LOOKS, ids=[look[0] for look in LOOKS])
def test_looks(
    snap_compare: Any, name: str, instant: Snapshot, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    assert snap_compare(
        SpectuiApp(fakes.FakeController(instant)), terminal_size=size, run_before=_press(*keys)
    ), name


@pytest.mark.parametrize(("name", "view", "size", "keys"), COMPARISONS, ids=[ab[0] for ab in COMPARISONS])
def test_ab_looks(
    snap_compare: Any, name: str, view: AbView, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    controller = fakes.FakeController(fakes.losing())
    controller.ab.view = view
    assert snap_compare(SpectuiApp(controller), terminal_size=size, run_before=_press(*keys)), name


@pytest.mark.parametrize(("name", "view", "size", "keys"), SWEEPS, ids=[look[0] for look in SWEEPS])
def test_sweep_looks(
    snap_compare: Any, name: str, view: SweepView, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    controller = fakes.FakeController(fakes.losing())
    controller.sweep.view = view
    assert snap_compare(SpectuiApp(controller), terminal_size=size, run_before=_press(*keys)), name


@pytest.mark.parametrize(("name", "runs", "size", "keys"), HISTORIES, ids=[look[0] for look in HISTORIES])
def test_history_looks(
    snap_compare: Any, name: str, runs: RunList, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    controller = fakes.FakeController(fakes.losing())
    controller.runs.list = runs
    assert snap_compare(SpectuiApp(controller), terminal_size=size, run_before=_press(*keys)), name


def test_welcome_looks(snap_compare: Any) -> None:
    app = SpectuiApp(fakes.FakeController(Snapshot()), welcome=True)
    assert snap_compare(app, terminal_size=SMALL, run_before=_press())


def _press(*keys: str) -> Any:
    async def run(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        for key in keys:
            await pilot.press(key)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()

    return run
