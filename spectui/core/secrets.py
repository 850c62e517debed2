"""Which arguments of a command line are secrets, so that none is shown, printed or stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SECRET_ARGUMENTS: Final = ("--api-key", "--hf-token", "-hft")
_HIDDEN: Final = "***"


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
