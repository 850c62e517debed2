"""SweepView: everything the sweep screen shows at one instant, immutable; apart from the snapshot of a session.

The lab builds it, the screen reads it. Unknown is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spectui.core.sweep.defaults import DRAFT_LENGTHS, P_MINS
from spectui.core.sweep.recommendation import Recommendation
from spectui.core.views.heatmap import CellState, HeatBlock


class SweepStage(StrEnum):
    """How far the sweep has come."""

    READY = "not started"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    """Paused when the cell that is being measured is done."""
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """Before everything was settled; it can go on."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepChoice:
    """The axes that the user chooses."""

    workloads: tuple[str, ...]
    modes: tuple[str, ...]
    ks: tuple[int, ...] = DRAFT_LENGTHS
    p_mins: tuple[float, ...] = P_MINS


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a sweep would take. Server starts, and seconds: those for sure, and those at most."""

    cells: int
    starts: tuple[int, int]
    seconds: tuple[float, float]
    tokens: int
    """Per answer at most."""
    speed: float
    """Plain tokens per second that the time is reckoned with."""
    measured: bool
    """Whether that speed was measured with this model on this machine, or is assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMap:
    """A workload, with its temperature where several are swept: its heat map and what to use."""

    name: str
    plain: float | None = None
    """Tokens per second without speculation."""
    blocks: tuple[HeatBlock, ...] = ()
    best: Recommendation | None = None
    """None while nothing was tried beyond the baseline."""
    said: str = ""
    """The recommendation in one sentence, with what makes it doubtful."""

    @property
    def top(self) -> float | None:
        """The largest measured speedup."""
        cells = (cell for block in self.blocks for row in block.rows for cell in row.cells)
        found = [c.speedup.value for c in cells if c.state is CellState.MEASURED and c.speedup is not None]
        return max(found, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepView:
    """One instant of a sweep."""

    stage: SweepStage = SweepStage.READY
    choice: SweepChoice | None = None
    workloads: tuple[str, ...] = ()
    """Those to choose from, as are `modes`."""
    modes: tuple[str, ...] = ()
    model: str = ""
    """File of the target; untrusted text."""
    plan: SweepPlan | None = None
    number: int | None = None
    """In the results store; None while nothing is kept."""
    unkept: str = ""
    """What is not kept and why, as long as something cannot be."""
    maps: tuple[ConditionMap, ...] = ()
    done: int = 0
    """Cells that are known, without the baselines."""
    left: tuple[float, float] | None = None
    """Seconds that are left: for sure, and at most."""
    note: str = ""
    """What is going on, in a few words; names of models may be in it."""
    problem: str = ""
    """What ended the sweep early or keeps it from starting."""
    command: str = ""
    """The command line to use instead, for a server that we may not restart."""

    @property
    def busy(self) -> bool:
        """Whether the sweep has the device, or is about to."""
        idle = {SweepStage.READY, SweepStage.STOPPED, SweepStage.DONE, SweepStage.FAILED}
        return self.stage not in idle

    @property
    def finished(self) -> bool:
        """Whether everything is settled."""
        return self.stage is SweepStage.DONE

    @property
    def startable(self) -> bool:
        """Whether a key would start it or go on with it."""
        return not self.busy and self.plan is not None and not self.command


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSweep:
    """A sweep of the results store in a list."""

    number: int
    started: str
    """Local time, to the minute."""
    state: str
    model: str = ""
    """File of the target; untrusted text, as are the workloads."""
    workloads: tuple[str, ...] = ()
    known: int = 0
    cells: int = 0
    problem: str = ""
    """Why it cannot be opened; empty when it can."""


def export_command(number: int) -> str:
    """The command line that writes out what a sweep recommends."""
    return f"spectui export {number} --format preset models.ini"
