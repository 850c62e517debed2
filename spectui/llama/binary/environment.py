"""LLAMA_* variables that a binary obeyed once: which it ignores or chokes on now, and what took their place.

The names moved together with the flags (b4311, b8955, b9151), and an old one is mostly ignored without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spectui.llama.binary.capabilities import ALIASES, Capabilities

_PREFIX: Final = "LLAMA_ARG_"
_NEGATED: Final = "LLAMA_ARG_NO_"
_LOG_NAMES: Final = {
    "LLAMA_LOG_PREFIX": ("--log-prefix",),
    "LLAMA_LOG_TIMESTAMPS": ("--log-timestamps",),
}
_GROUPS: Final = {
    "MODEL": 0,
    "N_MAX": 1,
    "N_MIN": 2,
    "P_MIN": 3,
    "P_SPLIT": 4,
    "CACHE_TYPE_K": 7,
    "CACHE_TYPE_V": 8,
    "HF_REPO": 9,
    "CPU_MOE": 12,
    "N_CPU_MOE": 13,
}
"""What follows LLAMA_ARG_SPEC_DRAFT_ since b8955, and the flags behind it in ALIASES."""
_OLD_NAMES: Final = {
    "DRAFT_MAX": "N_MAX",
    "DRAFT_MIN": "N_MIN",
    "DRAFT_P_MIN": "P_MIN",
    "DRAFT_P_SPLIT": "P_SPLIT",
    "MODEL_DRAFT": "MODEL",
    "HFD_REPO": "HF_REPO",
    "CACHE_TYPE_K_DRAFT": "CACHE_TYPE_K",
    "CACHE_TYPE_V_DRAFT": "CACHE_TYPE_V",
    "CPU_MOE_DRAFT": "CPU_MOE",
    "N_CPU_MOE_DRAFT": "N_CPU_MOE",
}
"""What followed LLAMA_ARG_ before b8955."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that this binary does not obey."""

    name: str
    value: str
    fatal: bool
    """Whether the binary stops at it; else it is ignored without a word."""
    flags: tuple[str, ...] = ()
    """Spellings of the flag that it set; empty where the setting is gone or was never known."""


def stale_variables(environ: Mapping[str, str], caps: Capabilities) -> tuple[Variable, ...]:
    """Variables that look like llama.cpp's and do nothing, or harm, with this binary; by name."""
    known = {name: flag for flag in caps.flags for name in flag.env}
    found: list[Variable] = []
    for name in sorted(environ):
        flag = known.get(name) or known.get(name.replace(_NEGATED, _PREFIX, 1))
        ours = name.startswith(_PREFIX) or name in _LOG_NAMES
        if ours and (flag is None or flag.removed):
            found.append(
                Variable(name=name, value=environ[name], fatal=flag is not None, flags=_flags_behind(name))
            )
    return tuple(found)


def _flags_behind(name: str) -> tuple[str, ...]:
    if name in _LOG_NAMES:
        return _LOG_NAMES[name]
    setting = name.removeprefix(_PREFIX)
    current = _OLD_NAMES.get(setting, setting.removeprefix("SPEC_DRAFT_"))
    return ALIASES[_GROUPS[current]] if current in _GROUPS and setting != current else ()
