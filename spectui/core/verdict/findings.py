"""Findings as values, and the launch table: what a failure's code means for the reader.

Apart from the measurement table in `verdict`, because a failed launch or a refused command line is judged without
any measurement. The codes are part of the headless contract and stay stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final


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


LAUNCH_ADVICE: Final[Mapping[str, tuple[Group, str]]] = MappingProxyType(
    {
        "flag-removed": (Group.CANNOT_START, "use the flag that the message names"),
        "flag-unknown": (Group.CANNOT_START, "remove the flag, or use a binary that has it"),
        "flag-value": (Group.CANNOT_START, "correct the value"),
        "type-renamed": (Group.CANNOT_START, "choose one of the modes that this binary offers"),
        "draft-type-missing": (Group.CANNOT_START, "give the speculation type as well"),
        "draft-model-missing": (Group.CANNOT_START, "choose a draft model"),
        "n-max-zero": (Group.CANNOT_START, "turn speculation off by mode, not by length 0"),
        "n-min-above-n-max": (Group.CANNOT_START, "make the least length smaller than the draft length"),
        "env-stale": (Group.CANNOT_START, "unset the variable"),
        "model-missing": (Group.CANNOT_START, "correct the path of the model"),
        "model-corrupt": (Group.CANNOT_START, "download or convert the file again"),
        "arch-unknown": (Group.CANNOT_START, "use a newer llama-server for this model"),
        "vocab-mismatch": (Group.CANNOT_START, "choose a draft with the target's tokenizer"),
        "port-in-use": (Group.CANNOT_START, "free the port, or leave it out of the profile"),
        "known-bad-build": (Group.CANNOT_START, "use another build"),
        "binary-missing": (Group.CANNOT_START, "install llama-server, or set SPECTUI_LLAMA_SERVER"),
        "speculation-off": (Group.NOT_SPECULATING, "the log says why; the draft only costs memory now"),
        "out-of-memory": (
            Group.FAILING,
            "use a smaller context, fewer layers on the GPU, or a smaller draft",
        ),
        "server-crashed": (
            Group.FAILING,
            "the log shows its last lines; go back to settings that ran",
        ),
        "server-hung": (Group.FAILING, "restart it"),
        "server-error": (Group.FAILING, "restart it, or go back to the last settings"),
        "unauthorized": (Group.FAILING, "give the API key in the variable that api_key_env names"),
        "metrics-disabled": (Group.FAILING, "start the server with --metrics"),
        "server-unreachable": (Group.FAILING, "check the address, and that the server runs"),
    }
)
"""The launch table: what a failure's code means for the reader."""


def launch_finding(
    failure: Failure,
    advice: str | None = None,
    evidence: Mapping[str, float | int | str | None] | None = None,
) -> Finding:
    """A failure as a finding; `advice` where more is known than the table says."""
    group, usual = LAUNCH_ADVICE.get(failure.code, (Group.FAILING, "see the server's log"))
    return Finding(
        code=failure.code,
        group=group,
        message=failure.text,
        advice=usual if advice is None else advice,
        evidence=evidence or {},
    )
