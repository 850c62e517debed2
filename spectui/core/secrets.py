"""Secrets: which arguments hold one, so that none is shown or stored, and which key goes to which server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spectui.core.profile import TuningProfile

KEY_VARIABLE: Final = "SPECTUI_API_KEY"
"""Variable with the API key of attached servers whose profile names no variable of its own."""
SECRET_ARGUMENTS: Final = ("--api-key", "--hf-token", "-hft")
_HIDDEN: Final = "***"
_ANNOUNCED: Final = re.compile(
    r"""(?ix)
    ( --?(?:api[-_]key|hf[-_]token|hft)['"]?[=,\s]+['"]? | \b(?:\w+_)?(?:api_key|token)=['"]? | \bbearer\s+ )
    [^\s'"&,)\]}]+"""
)
_LOGIN: Final = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^/\s@'\"]+@")


def key_variable_of(profile: TuningProfile) -> str:
    """The variable that holds the key of a server that the user names, or whose profile he opens."""
    return profile.server.api_key_env or KEY_VARIABLE


def api_key_of(profile: TuningProfile, environ: Mapping[str, str]) -> str | None:
    """That key; None where the environment has none."""
    return environ.get(key_variable_of(profile)) or None


def is_secret(argument: str) -> bool:
    """Whether an argument, alone or as `--name=value`, carries a secret or announces one."""
    return argument.partition("=")[0].replace("_", "-") in SECRET_ARGUMENTS


def redacted(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments with every secret's value replaced."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        if hide_next:
            shown.append(_HIDDEN)
            hide_next = False
        elif is_secret(argument):
            name, equals, _ = argument.partition("=")
            shown.append(f"{name}={_HIDDEN}" if equals else name)
            hide_next = not equals
        else:
            shown.append(argument)
    return tuple(shown)


def scrubbed(text: str) -> str:
    """A text of any kind, such as a traceback, with the values of keys, tokens and logins in addresses replaced."""
    return _LOGIN.sub(rf"\1{_HIDDEN}@", _ANNOUNCED.sub(rf"\1{_HIDDEN}", text))


def without_secrets(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments without secrets and the flags that announce them."""
    kept: list[str] = []
    skip_next = False
    for argument in arguments:
        if skip_next:
            skip_next = False
        elif is_secret(argument):
            skip_next = "=" not in argument
        else:
            kept.append(argument)
    return tuple(kept)
