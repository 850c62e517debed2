"""Snapshot: everything the dashboard shows at one instant, immutable, handed over once per tick.

The lab builds it, widgets read it. Every number carries its unit in its doc line; unknown is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from spectui.core.bet.estimates import BetReading, CurvePoint, LookupPrediction
from spectui.core.profile import TuningProfile
from spectui.core.verdict.verdict import Outcome, Verdict


class ServerState(StrEnum):
    """How far the server in front has come."""

    NONE = "no server"
    STARTING = "starting"
    LOADING = "loading"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"
    GONE = "gone"
    ATTACHED = "attached"


class TrafficState(StrEnum):
    """What the test traffic does."""

    OFF = "off"
    WARMUP = "warm-up"
    ON = "on"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """The server in front."""

    state: ServerState = ServerState.NONE
    owned: bool = False
    """Whether spectui started it and may stop it."""
    url: str | None = None
    build: str | None = None
    """As the server names it, such as b10434."""
    pid: int | None = None
    progress: float | None = None
    """Share of the load done, 0 to 1."""
    note: str = ""
    """What is going on, in a few words."""
    target: str | None = None
    """Name of the target model."""
    target_place: str | None = None
    """Where its layers are, such as "GPU 33/33" or "CPU"."""
    draft: str | None = None
    draft_place: str | None = None
    devices: tuple[str, ...] = ()
    """What its own models compute on, such as "the CPU" or "GPU 0"; empty while unknown, or of a foreign server."""
    speculating: bool | None = None
    """What /slots says; None before it was asked."""
    slots: int | None = None
    context: int | None = None
    """Tokens per slot."""
    padded: bool = False
    """Whether the target is the demo's, padded with blocks that compute nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOption:
    """One draft file in the picker."""

    path: str
    name: str
    size_bytes: int | None = None
    quantisation: str | None = None
    blocks: int | None = None
    architecture: str | None = None
    compatible: bool | None = None
    """By the server's own tokenizer rules; None while unknown."""
    reason: str = ""
    """Why it is not compatible, naming the first token that differs, or why it could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    """What runs, and what is staged for the next restart."""

    running: TuningProfile | None = None
    """None before anything ran."""
    staged: TuningProfile = field(default_factory=TuningProfile)
    changes: tuple[str, ...] = ()
    """Names of staged settings that need a restart, as section.field."""
    command: str = ""
    """The exact command line of the staged settings."""
    problem: str = ""
    """Why the staged settings cannot be launched; empty when they can."""
    modes: tuple[str, ...] = ("off",)
    """Modes that the binary offers."""
    workloads: tuple[str, ...] = ("code", "prose", "json", "rewrite", "chat", "summarise")
    """Workloads on offer; "own" among them where the profile names prompts."""
    environment: tuple[str, ...] = ()
    """LLAMA_ARG_* names found in the environment."""
    drafting_known: bool = True
    """Whether draft length and p_min are known; of a foreign server they show in its first drafts."""
    drafts_vary: bool = False
    """Whether a foreign server's drafts were seen to vary in length, as a p_min above 0 makes them."""
    can_undo: bool = False
    profile_name: str | None = None

    @property
    def unreached(self) -> bool:
        """Whether it is about somebody else's server that never answered: what it runs with is not known."""
        return self.staged.attached and self.running is None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """Speed at one moment."""

    t: float
    """Seconds since the session began."""
    tokens_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMark:
    """A moment where the settings changed."""

    t: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """Speed over the whole session, across restarts."""

    points: tuple[HistoryPoint, ...] = ()
    marks: tuple[HistoryMark, ...] = ()
    baseline: float | None = None
    """Tokens per second, for the reference line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveView:
    """Speedup by draft length, and what n-grams would yield. Redrawn when `revision` moves."""

    revision: int = 0
    textbook: tuple[CurvePoint, ...] = ()
    """E(k) / (1 + k c): verification taken as free."""
    predicted: tuple[CurvePoint, ...] = ()
    """By the full cost where verification was probed, else by what a drafted token really cost in all."""
    measured: tuple[CurvePoint, ...] = ()
    """Segments of this session with the same workload, temperature, mode and draft."""
    now: int | None = None
    best: CurvePoint | None = None
    lookup: LookupPrediction | None = None
    """The best n-gram lookup, as the baseline's answers predict it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """What the machine is doing."""

    gpu_used_gib: float | None = None
    gpu_total_gib: float | None = None
    gpu_percent: float | None = None
    cpu_percent: float | None = None
    memory_used_gib: float | None = None
    memory_total_gib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMark:
    """One session in the strip."""

    number: int
    """Its place, from 1, and the key that brings it to the front."""
    label: str
    """Profile or address; untrusted text."""
    front: bool = False
    state: ServerState = ServerState.NONE
    owned: bool = False
    tokens_per_second: float | None = None
    """Mean of the current segment; the live reading before there is one."""
    outcome: Outcome = Outcome.UNKNOWN
    sending: bool = False
    """Whether its traffic, baseline, A/B run or sweep loads the device now."""
    measuring: bool = False
    """Whether that is one that other traffic on the device would spoil: a baseline, an A/B run or a sweep."""
    devices: tuple[str, ...] = ()
    """As in ServerView."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDevice:
    """A device that servers of several sessions compute on."""

    device: str
    numbers: tuple[int, ...]
    """Sessions that send while two or more do; else all that share it."""
    disturbed: bool
    """Whether two or more of them send, so that neither speed is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripView:
    """All sessions, in their order. Empty while there is only one."""

    marks: tuple[SessionMark, ...] = ()
    shared: tuple[SharedDevice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One instant of one session, beside the marks of the others."""

    tick: int = 0
    t: float = 0.0
    """Seconds since the session began."""
    server: ServerView = field(default_factory=ServerView)
    settings: SettingsView = field(default_factory=SettingsView)
    traffic: TrafficState = TrafficState.OFF
    traffic_note: str = ""
    """Progress of warm-up or baseline in a few words."""
    lent_to: str = ""
    """Who has the device while the server or the traffic of the session is down, as "the sweep"; else empty."""
    bet: BetReading = field(default_factory=BetReading)
    history: HistoryView = field(default_factory=HistoryView)
    curve: CurveView = field(default_factory=CurveView)
    verdict: Verdict = field(default_factory=Verdict)
    machine: MachineView = field(default_factory=MachineView)
    output: str = ""
    """The tail of what the model just wrote; untrusted text."""
    log_tail: tuple[str, ...] = ()
    """The server's last lines; untrusted text."""
    strip: StripView = field(default_factory=StripView)
