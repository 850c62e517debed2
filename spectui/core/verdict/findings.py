"""Findings as values, and the launch table: what a failure's code means for the reader.

A failed launch or a refused command line is judged by it without any measurement; `rules` has the table for what
was measured. The codes are part of the headless contract and stay stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Group(IntEnum):
    """Rank of a finding: the first group wins."""

    CANNOT_START = 1
    NOT_SPECULATING = 2
    FAILING = 3
    CANNOT_JUDGE = 4
    THE_BET = 5
    TO_KNOW = 6


class Outcome(StrEnum):
    """The bet in one word."""

    WINNING = "winning"
    LOSING = "losing"
    EVEN = "even"
    OFF = "off"
    UNKNOWN = "unknown"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting that a finding advises, so that one key can apply it."""

    mode: str | None = None
    draft_length: int | None = None
    p_min: float | None = None
    ngram_lookup: int | None = None
    """Tokens that must match for an n-gram mode to draft."""
    ngram_length: int | None = None
    """Tokens that an n-gram mode drafts at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement with its evidence. message and advice are each one sentence; advice may be empty."""

    code: str
    group: Group
    message: str
    advice: str = ""
    evidence: Mapping[str, float | int | str | None] = field(default_factory=dict)
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The ranked findings of one segment and the sentence that heads them."""

    outcome: Outcome = Outcome.UNKNOWN
    headline: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def change(self) -> Change | None:
        """The first change that a finding advises."""
        return next((f.change for f in self.findings if f.change is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that a launch, a log or an HTTP answer said; code as in the launch table, text as it was said."""

    code: str
    text: str


class LaunchRow(NamedTuple):
    """What a failure's code means: its rank, and in general what happened and what to do."""

    group: Group
    meaning: str
    advice: str


_UNLISTED: Final = LaunchRow(Group.FAILING, "something else failed", "see the server's log")
_LAUNCH: Final[Mapping[Group, Mapping[str, tuple[str, str]]]] = {
    Group.CANNOT_START: {
        "flag-removed": (
            "a flag that this build of llama-server has no more",
            "use the flag that the message names",
        ),
        "flag-unknown": (
            "a flag that this build of llama-server does not know",
            "remove the flag, or use a binary that has it",
        ),
        "flag-value": ("a flag has a value that is not allowed, or none", "correct the value"),
        "type-renamed": (
            "the mode is called otherwise in this build, or this build has none of that name",
            "choose one of the modes that this binary offers",
        ),
        "draft-type-missing": (
            "a draft model is named, and this build also needs to be told the speculation type",
            "give the speculation type as well",
        ),
        "draft-model-missing": (
            "the mode drafts with a model, and no draft model is named",
            "choose a draft model",
        ),
        "n-max-zero": (
            "a draft length of 0, which aborts the server",
            "turn speculation off by mode, not by length 0",
        ),
        "n-min-above-n-max": (
            "the least draft length is above the draft length",
            "make the least length smaller than the draft length",
        ),
        "env-stale": (
            "an environment variable sets a flag that is gone, so it is ignored or stops the server",
            "unset the variable",
        ),
        "model-missing": ("there is no model file at this path", "correct the path of the model"),
        "model-corrupt": (
            "the model file cannot be read to its end, or is no GGUF file",
            "download or convert the file again",
        ),
        "arch-unknown": (
            "the model's architecture is newer than this llama.cpp",
            "use a newer llama-server for this model",
        ),
        "vocab-mismatch": (
            "draft and target have different tokenizers",
            "choose a draft with the target's tokenizer",
        ),
        "port-in-use": (
            "another program listens on the port",
            "free the port, or leave it out of the profile",
        ),
        "known-bad-build": ("this build is known to fail with this mode", "use another build"),
        "binary-missing": (
            "no llama-server was found, or it cannot be run",
            "install llama-server, or set SPECTUI_LLAMA_SERVER",
        ),
    },
    Group.NOT_SPECULATING: {
        "speculation-off": (
            "the server runs, and does not speculate although a mode was asked for",
            "the log says why; the draft only costs memory now",
        ),
    },
    Group.FAILING: {
        "out-of-memory": (
            "memory of the GPU or of the machine ran out",
            "use a smaller context, fewer layers on the GPU, or a smaller draft",
        ),
        "server-crashed": (
            "the server's process ended by itself",
            "the log shows its last lines; go back to settings that ran",
        ),
        "server-hung": ("the server does not answer any more", "restart it"),
        "server-error": (
            "the server answered a request with an error",
            "restart it, or go back to the last settings",
        ),
        "unauthorized": (
            "the server wants an API key, or another one",
            "give the API key in the variable that api_key_env names",
        ),
        "metrics-disabled": ("the server does not show its counters", "start the server with --metrics"),
        "server-unreachable": (
            "nothing answers at the address",
            "check the address, and that the server runs",
        ),
        "internal-error": ("spectui itself failed", "report it with the log that the message names"),
    },
}
LAUNCH_ADVICE: Final[Mapping[str, LaunchRow]] = MappingProxyType(
    {code: LaunchRow(group, *texts) for group, rows in _LAUNCH.items() for code, texts in rows.items()}
)
"""The launch table: what a failure's code means for the reader."""


def launch_finding(
    failure: Failure,
    advice: str | None = None,
    evidence: Mapping[str, float | int | str | None] | None = None,
) -> Finding:
    """A failure as a finding; `advice` where more is known than the table says."""
    row = LAUNCH_ADVICE.get(failure.code, _UNLISTED)
    return Finding(
        code=failure.code,
        group=row.group,
        message=failure.text,
        advice=row.advice if advice is None else advice,
        evidence=evidence or {},
    )
