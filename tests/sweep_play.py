"""Sweeps whose servers the test plays: only the servers and what a cell yields are not real."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.segment import SpeedEstimate
from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.sweep.grid import PLAIN, Cell
from spectui.core.sweep.planner import Task
from spectui.errors import SpectuiError
from spectui.lab.experiments import sweep
from spectui.lab.experiments.sweep_record import Measured
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.results import ResultStore

Answer: TypeAlias = Callable[[Task], Awaitable[Measured]]


def ran(value: float, *, requests: int = 10, **more: Any) -> Measured:
    """A run so many times as fast as 20 tokens per second."""
    speed = SpeedEstimate(per_stream=Estimate(value=20 * value), streams=1.0, relative_error=0.01)
    return Measured(requests=requests, speed=speed, baseline=20.0, **more)


async def half_as_fast_again(task: Task) -> Measured:
    """Every setting, over the baseline."""
    return ran(1.0 if task.cell.setting == PLAIN else 1.5, requests=task.requests)


class SweepDesk:
    """A profile of files that are not there, and the stores of its sweeps."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.profile = TuningProfile(
            server=ServerSettings(binary=str(binary), model="/m/t.gguf"),
            speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/d.gguf"),
        )
        self.launcher = Launcher()
        self.results = ResultStore(folder / "results.sqlite3")
        self.baselines = BaselineStore(folder / "baselines.json")


class PlayedSweeps:
    """What stands in for servers, and which cells were asked of them."""

    def __init__(self) -> None:
        self.answer: Answer = half_as_fast_again
        """What a cell yields; it may wait, or raise as a server would."""
        self.may_check = asyncio.Event()
        self.may_check.set()
        self.problem: SpectuiError | None = None
        """Why no setting can be planned."""
        self.cells: list[Cell] = []


class _Runner:
    """What runs cells on a played server."""

    number = None

    def __init__(self, played: PlayedSweeps) -> None:
        self._played = played

    async def run(self, task: Task) -> Measured:
        self._played.cells.append(task.cell)
        return await self._played.answer(task)


class _Server:
    def __init__(self, plan: object) -> None:
        self.plan = plan

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def explain(self, error: SpectuiError) -> SpectuiError:
        return error


def played_sweeps(monkeypatch: pytest.MonkeyPatch) -> PlayedSweeps:
    """Play the servers of every sweep."""
    played = PlayedSweeps()

    async def plan(_launcher: Launcher, profile: TuningProfile) -> object:
        await played.may_check.wait()
        if played.problem is not None:
            raise played.problem
        return SimpleNamespace(profile=profile, command="llama-server")

    async def cells_on(_server: object, _found: object, **_how: Any) -> _Runner:
        return _Runner(played)

    monkeypatch.setattr(sweep, "LaunchedServer", _Server)
    monkeypatch.setattr(Launcher, "plan", plan)
    monkeypatch.setattr(sweep, "cells_on", cells_on)
    return played
