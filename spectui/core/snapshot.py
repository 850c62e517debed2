"""Snapshot: everything the dashboard shows at one instant, immutable, handed over once per tick.

The lab builds it, widgets read it. Every number carries its unit in its doc line; unknown is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spectui.core.profile import TuningProfile
from spectui.core.verdict import Outcome, Verdict


class ServerState(StrEnum):
    """Where the server in front is in its life."""

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
class Estimate:
    """A value with its 95 % interval; low and high are None where there is not enough to give one."""

    value: float
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> Estimate:
        """All of it multiplied by a number that is known."""
        low, high = (None if edge is None else edge * factor for edge in (self.low, self.high))
        return Estimate(value=self.value * factor, low=low, high=high)

    def widened(self, error: float) -> Estimate:
        """The same with another independent error, as a share of the value."""
        spread = math.exp(1.96 * error)
        low, high = (self.value if edge is None else edge for edge in (self.low, self.high))
        return Estimate(value=self.value, low=low / spread, high=high * spread)


class Source(StrEnum):
    """Where a cost comes from."""

    MEASURED = "measured"
    PROBED = "probed"
    FITTED = "fitted"
    ASSUMED = "assumed"
    GIVEN = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One part of a pass's price with its source and, where there is one, its 95 % interval."""

    value: float
    source: Source
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What is known of the price of a pass; in plain steps but for T1. Unknown is None."""

    t1_ms: Cost | None = None
    """T1, a plain decode step, in milliseconds."""
    c: Cost | None = None
    u: Cost | None = None
    v: Mapping[int, Cost] = field(default_factory=dict)
    """V(n) at the probed n."""
    pass_cost: Cost | None = None
    """R."""
    inseparable: str = ""
    """What the data cannot tell apart, in one sentence; empty when drafting and verifying stand apart."""


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
class PositionRow:
    """Survival at one position: the share of passes that accept at least `position` tokens."""

    position: int
    survival: float
    low: float | None = None
    high: float | None = None
    at_risk: int = 0
    """Passes that could have accepted this token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSplit:
    """Where the plain steps of one pass go; the parts sum to its whole cost R."""

    tokens: float
    """E: what the pass yields, in plain steps that it replaces."""
    target: float
    """The plain step that every pass contains: 1."""
    drafting: float
    verification: float
    """V - 1, with the surplus of the rows."""
    overhead: float
    """u."""
    unexplained: float
    """What is left of R."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetView:
    """The bet in the current segment, in the terms of the glossary."""

    requests: int = 0
    """Finished requests in the segment."""
    passes: int = 0
    tokens: int = 0
    """Committed tokens."""
    drafted: int = 0
    accepted: int = 0
    tokens_per_second: float | None = None
    """Aggregate decode speed of the segment; first tokens excluded."""
    live_tokens_per_second: float | None = None
    """The last seconds only; None while nothing streams."""
    time_to_first_token_ms: float | None = None
    """Median over the segment's requests."""
    alpha: Estimate | None = None
    acceptance_ratio: float | None = None
    tokens_per_pass: Estimate | None = None
    """E, measured."""
    drafted_per_pass: float | None = None
    pass_ms: float | None = None
    """Mean time of one target pass with its drafting, in milliseconds."""
    t1_ms: float | None = None
    """T1, a plain decode step, from the baseline, in milliseconds."""
    costs: Costs = field(default_factory=Costs)
    """The parts of the price with their sources and intervals."""
    draft_ms: float | None = None
    """Draft milliseconds per drafting step of all busy slots, from the statistics line."""
    c: float | None = None
    """draft_ms in plain steps."""
    pass_cost: float | None = None
    """R, in plain steps: tokens per pass over the actual speedup."""
    baseline: Estimate | None = None
    """Plain speed on the same prompts, tokens per second."""
    baseline_source: str = ""
    """Where the baseline comes from: measured, remembered, given, or second server."""
    fixed_length: bool = True
    """Whether every pass drafts k tokens, so that other lengths can be predicted from this one."""
    rereads: bool = True
    """Whether the draft reads the last accepted token again, d + 1 steps per pass, as builds since b9109 do."""
    streams: float = 1.0
    """Mean number of requests that decoded at once."""
    stalled: int = 0
    """Passes that took over ten times the usual time (a paused process, a swapped page): left out of speeds."""
    two_pass: bool = False
    """Whether the server makes two target passes per cycle (b4164 to b7322); passes are then cycles."""
    speedup_actual: Estimate | None = None
    speedup_textbook: float | None = None
    """E / (1 + k c): verification taken as free."""
    speedup_predicted: float | None = None
    """By the full cost of a pass; None where the cost of verification is not known."""
    survival: tuple[PositionRow, ...] = ()
    tokens_per_request: float | None = None
    """Committed tokens per finished request: what a request's end does to long drafts depends on it."""
    loss: LossSplit | None = None
    """Where the plain steps of a pass go; None until verification was probed."""


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
class CurvePoint:
    """Speedup at one draft length."""

    draft_length: int
    speedup: float
    low: float | None = None
    high: float | None = None
    measured: bool = False
    """Whether it was measured and not predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupPrediction:
    """An n-gram lookup and what it is predicted to yield over no speculation, before a server ran with it."""

    lookup: int
    """Tokens that must match."""
    length: int
    """Tokens that it drafts."""
    speedup: Estimate


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
    bet: BetView = field(default_factory=BetView)
    history: HistoryView = field(default_factory=HistoryView)
    curve: CurveView = field(default_factory=CurveView)
    verdict: Verdict = field(default_factory=Verdict)
    machine: MachineView = field(default_factory=MachineView)
    output: str = ""
    """The tail of what the model just wrote; untrusted text."""
    log_tail: tuple[str, ...] = ()
    """The server's last lines; untrusted text."""
    strip: StripView = field(default_factory=StripView)
