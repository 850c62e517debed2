"""What the results store keeps, as values: runs with their conditions and what they yielded, and sweeps.

Who measures, compares or prints needs no database for them. A field that is added here needs a default, or a step
of the schema in `results`: older rows are read without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge, Le

from spectui.core.bet.estimates import Costs, Estimate
from spectui.core.profile import TuningProfile, used_draft
from spectui.core.secrets import redacted, without_secrets
from spectui.core.views.run_list import RunSource
from spectui.store.baselines import FileIdentity

_STRICT: Final[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

Seconds = Annotated[float, Ge(0), Le(2.5e11)]
"""A moment in seconds since 1970, as far as calendars go."""
SweepState = Literal["running", "done", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that a server ran on."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    name: str
    """Host name."""
    cpu: str | None = None
    """Model of the processor, in its maker's words."""
    cores: Annotated[int, Ge(1)] | None = None
    """Physical cores."""
    memory_gib: float | None = None
    gpus: tuple[str, ...] = ()
    """Names of the GPUs that NVML sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConditions:
    """Everything that a run was measured under. Secrets among the arguments are taken out here."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    profile: TuningProfile
    """The settings that were measured; its traffic names the workload."""
    build: str | None = None
    """As the server names it, such as b10434."""
    argv: tuple[str, ...] = ()
    """Command line of our own server; empty for somebody else's."""
    binary: FileIdentity | None = None
    """None for a server of somebody else, as all below: its files may lie elsewhere."""
    model: FileIdentity | None = None
    draft: FileIdentity | None = None
    machine: Machine | None = None

    def __post_init__(self) -> None:
        kept = without_secrets(self.profile.server.extra_args)
        profile = self.profile
        if kept != profile.server.extra_args:
            profile = profile.with_server(extra_args=kept)
        object.__setattr__(self, "profile", profile)
        object.__setattr__(self, "argv", redacted(self.argv))

    @property
    def place(self) -> str | None:
        """Where the server is found: its address, or its binary. Another build there makes older runs stale."""
        return self.profile.server.url or (self.binary.path if self.binary else None)

    @property
    def draft_path(self) -> str | None:
        """File of the draft, where the mode uses one."""
        return used_draft(self.profile.speculation)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run yielded so far; the names are those of `core.bet.estimates.BetReading`, but for `round_cost`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    requests: Annotated[int, Ge(0)] = 0
    passes: Annotated[int, Ge(0)] = 0
    tokens: Annotated[int, Ge(0)] = 0
    drafted: Annotated[int, Ge(0)] = 0
    accepted: Annotated[int, Ge(0)] = 0
    tokens_per_second: Estimate | None = None
    """Over all streams."""
    time_to_first_token_ms: float | None = None
    alpha: Estimate | None = None
    acceptance_ratio: float | None = None
    tokens_per_pass: Estimate | None = None
    drafted_per_pass: float | None = None
    survival: tuple[float, ...] = ()
    """S(1), S(2), ..."""
    pass_ms: float | None = None
    round_cost: float | None = None
    """R, in plain steps."""
    costs: Costs = field(default_factory=Costs)
    baseline: Estimate | None = None
    """Plain speed, tokens per second over all streams."""
    baseline_source: str = ""
    speedup_actual: Estimate | None = None
    speedup_textbook: float | None = None
    speedup_predicted: float | None = None
    stalled: Annotated[int, Ge(0)] = 0
    """Passes that were held up by something else, and are left out of speeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured segment."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    id: int
    conditions: RunConditions
    started_at: Seconds
    source: RunSource = "measure"
    ended_at: Seconds | None = None
    """None while it runs, and for ever where spectui was killed."""
    failure: str | None = None
    """What ended it early; untrusted text."""
    summary: RunSummary = field(default_factory=RunSummary)
    sweep: int | None = None
    """Number of the sweep that a cell of comes from this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted: those that meet every condition that is not None."""

    workload: str | None = None
    mode: str | None = None
    draft: str | None = None
    """A part of the draft's path, as for the model."""
    model: str | None = None
    build: str | None = None
    source: str | None = None
    since: float | None = None
    """Started at this time or later, in seconds since 1970."""
    limit: int | None = None
    """The newest ones, so many at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCell:
    """One finished cell of a sweep."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    key: str
    """Names the cell within its sweep."""
    result: dict[str, Any]
    """JSON values."""
    done_at: Seconds
    run: int | None = None
    """Number of the run that it comes from; None where that is not kept, or was not linked yet when it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep with the cells that are finished, in the order in which they were."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    id: int
    plan: dict[str, Any]
    """JSON values; two sweeps with equal plans measure the same."""
    state: SweepState
    started_at: Seconds
    ended_at: Seconds | None = None
    cells: tuple[SweepCell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOwner:
    """The program that runs a sweep."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    host: str
    pid: Annotated[int, Ge(1), Le(2**31 - 1)]
    started: float
    """When its process began, in seconds since 1970: another one may get its number."""
