"""What a server's log can tell, as values: one small frozen class per kind of line.

How lines are read is in parser.py; whoever consumes events does not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

_NUMBER: Final = re.compile(r"\d+")


class Role(StrEnum):
    """Which model a line is about: the one that was being loaded when it was printed."""

    TARGET = "target"
    DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The build that writes this log; packaged builds often call themselves build 1."""

    build: int
    commit: str | None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far the load is: a share from 0 to 1 (stages, not bytes) and what is going on."""

    fraction: float
    note: str


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """All models are loaded."""


@dataclass(frozen=True, slots=True)
class Listening:
    """The server takes requests."""

    url: str


@dataclass(frozen=True, slots=True)
class DeviceFound:
    """A device in the list that the server prints at start."""

    name: str
    description: str
    total_mib: float
    free_mib: float


@dataclass(frozen=True, slots=True)
class BufferPlaced:
    """A buffer with weights of one model on one device."""

    role: Role
    device: str
    """Buffer type as printed, such as CUDA0, Vulkan0 or CPU_Mapped."""
    mib: float

    @property
    def on_gpu(self) -> bool:
        """Whether the buffer is in a GPU's own memory; host memory has CPU or _Host in its name."""
        return not (self.device.startswith(("CPU", "AMX", "BLAS")) or self.device.endswith("_Host"))


@dataclass(frozen=True, slots=True)
class LayersOffloaded:
    """Layers that were given to the GPU; a build without any GPU prints this line too."""

    role: Role
    layers: int
    total: int


@dataclass(frozen=True, slots=True)
class SpeculationInit:
    """A speculation type was set up; the lengths come in the line after it, where the type prints them."""

    type: str
    """In the field's current spelling."""
    n_max: int | None = None
    n_min: int | None = None
    p_min: float | None = None


@dataclass(frozen=True, slots=True)
class SpeculationOff:
    """The server says that it does not speculate; one that was started without any draft may say so too."""

    reason: str
    draft_loaded: bool = False
    """Whether a draft model was loaded all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts of one implementation since the server started; None where that era's line has no such number."""

    implementation: str
    """In the field's current spelling."""
    calls: int | None = None
    """Rounds in which it was asked for a draft; with p_min more than came to anything."""
    drafts: int
    """Drafts that were not empty."""
    accepted_drafts: int
    """Drafts of which at least one token was accepted."""
    drafted: int
    """Tokens drafted; drafts cut to the room left make it more than were verified."""
    accepted: int
    draft_ms: float | None = None
    """Milliseconds spent drafting, without the draft's re-reading of accepted tokens."""
    mean_length: float | None = None
    """Tokens per pass, over passes that had a draft."""
    per_position: tuple[float, ...] = ()
    """Share of drafts whose token at this position was accepted, position 1 first."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Totals of one finished request."""

    accepted: int
    drafted: int
    mean_length: float | None = None


@dataclass(frozen=True, slots=True)
class PromptRead:
    """The prompt of a request that ended: tokens read anew, and their time."""

    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class Generated:
    """The answer of a request that ended; its first token came from the prompt's pass and took none of the time."""

    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class PassTrace:
    """One target pass, as a server with LLAMA_TRACE=1 logs it."""

    accepted: int
    drafted: int
    restored: bool = False
    """Whether the state was rolled back to a checkpoint: expensive on recurrent models."""


@dataclass(frozen=True, slots=True)
class LogFailure:
    """Something went wrong; `code` is the finding's code."""

    code: str
    text: str
    """The server's words, without prefix and control characters."""
    subject: str | None = None
    """The flag, variable, file, type or architecture that it is about."""


Event = (
    BuildInfo
    | LoadProgress
    | ModelLoaded
    | Listening
    | DeviceFound
    | BufferPlaced
    | LayersOffloaded
    | SpeculationInit
    | SpeculationOff
    | Statistics
    | Acceptance
    | PromptRead
    | Generated
    | PassTrace
    | LogFailure
)

GENERIC_FAILURE = "server-crashed"


def root_failure(failures: Iterable[LogFailure]) -> LogFailure | None:
    """The failure that explains the others: the first with a code of its own, else the first.

    A damaged model's own line names a tensor; the file stands in the general line after it.
    """
    seen = tuple(failures)
    root = next((f for f in seen if f.code != GENERIC_FAILURE), seen[0] if seen else None)
    if root is not None and root.code == "model-corrupt":
        file = next((f.subject for f in seen if f.code == GENERIC_FAILURE and f.subject), None)
        return replace(root, subject=file or root.subject)
    return root


class Placement:
    """Where the layers of target and draft are, from the events of one load."""

    def __init__(self) -> None:
        self._layers: dict[Role, LayersOffloaded] = {}
        self._buffers: dict[Role, list[BufferPlaced]] = {}

    def add(self, event: Event) -> bool:
        """Take an event; True where it was about placement."""
        if isinstance(event, BufferPlaced):
            self._buffers.setdefault(event.role, []).append(event)
            return True
        if isinstance(event, LayersOffloaded):
            self._layers[event.role] = event
            return True
        return False

    @property
    def target_place(self) -> str | None:
        """Such as "GPU 33/33", "GPU 20/33" or "CPU"; None before its buffers were seen."""
        return self._place(Role.TARGET)

    @property
    def draft_place(self) -> str | None:
        """As `target_place`, for the draft model."""
        return self._place(Role.DRAFT)

    @property
    def devices(self) -> tuple[str, ...]:
        """What the models compute on, such as "the CPU" or "GPU 0"; empty before their buffers were seen.

        A model that is wholly on GPUs keeps its token embeddings in host memory; that is no computing on the CPU.
        Each backend names a card in its own way: only the number counts.
        """
        found: dict[str, None] = {}
        for role, buffers in self._buffers.items():
            layers = self._layers.get(role)
            gpus = [buffer for buffer in buffers if buffer.on_gpu]
            if not gpus or (layers is not None and layers.layers < layers.total):
                found["the CPU"] = None
            for buffer in gpus:
                number = _NUMBER.search(buffer.device)
                remote = buffer.device.startswith("RPC")
                found[buffer.device if remote else f"GPU {number[0] if number else 0}"] = None
        return tuple(sorted(found))

    def gpu_mib(self, role: Role) -> float | None:
        """Megabytes of the model's weights in GPU memory; None before its buffers were seen."""
        buffers = self._buffers.get(role)
        return sum(b.mib for b in buffers if b.on_gpu) if buffers is not None else None

    def _place(self, role: Role) -> str | None:
        on_gpu = self.gpu_mib(role)
        if on_gpu is None:
            return None
        if on_gpu == 0.0:
            return "CPU"
        layers = self._layers.get(role)
        return f"GPU {layers.layers}/{layers.total}" if layers is not None else "GPU"
