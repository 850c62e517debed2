"""AbView: everything the A/B screen shows at one instant, immutable; apart from the snapshot of a session.

The lab builds it, the screen reads it. Unknown is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from spectui.core.ab.divergence import Divergence
from spectui.core.bet.estimates import BetReading, Estimate
from spectui.core.profile import SamplingSettings, TuningProfile, restart_changes

ArmName = Literal["a", "b"]

PAIRS: Final = 24
"""Prompts at most; a clear result ends a run earlier."""


class AbState(StrEnum):
    """How far the run has come."""

    READY = "not started"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """By the user, before anything was decided."""
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmView:
    """One side: its settings, what they are called, and what it has shown so far."""

    profile: TuningProfile
    name: str
    """Such as "running", "staged" or a profile's name."""
    bet: BetReading = field(default_factory=BetReading)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsView:
    """What both arms wrote at temperature 0."""

    compared: int
    """Answers that both arms gave."""
    different: int
    prompt: str = ""
    """The first prompt whose answers part; untrusted text."""
    first: Divergence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbView:
    """One instant of an A/B run."""

    a: ArmView | None = None
    b: ArmView | None = None
    """None until a second configuration is chosen."""
    state: AbState = AbState.READY
    turn: ArmName | None = None
    """The arm that answers now."""
    planned: int = PAIRS
    """Pairs at most."""
    pairs: int = 0
    ratios: tuple[float, ...] = ()
    """B over A in each pair, in the order in which they were measured."""
    ratio: Estimate | None = None
    """B's tokens per second over A's; while the run goes on its interval holds for this moment alone."""
    faster: ArmName | None = None
    """The faster arm, once the run ended and the interval tells."""
    sentence: str = ""
    """The result in one sentence; empty until the run ended."""
    remarks: tuple[str, ...] = ()
    """Warnings about the result, such as a machine that drifted."""
    outputs: OutputsView | None = None
    note: str = ""
    """What is going on, in a few words; names of models may be in it."""
    problem: str = ""
    """What ended the run early or kept it from starting."""

    @property
    def busy(self) -> bool:
        """Whether the run has servers, or is about to."""
        return self.state in {AbState.STARTING, AbState.RUNNING, AbState.STOPPING}

    def arm(self, name: ArmName) -> ArmView | None:
        """One side by its name."""
        return self.a if name == "a" else self.b


def differences(a: TuningProfile, b: TuningProfile) -> tuple[str, ...]:
    """Names of what the arms differ in, as `section.field`: settings of server, speculation and sampling.

    Traffic and seed are A's for both.
    """
    sampling = (
        f"sampling.{name}"
        for name in SamplingSettings.__dataclass_fields__
        if name != "seed" and getattr(a.sampling, name) != getattr(b.sampling, name)
    )
    return (*restart_changes(a, b), *sampling)
