"""What can be known of somebody else's server: its settings from its own command line or from what it says.

Only looks: at `/props` and `/slots`, and, where the server runs on this machine, at its process's command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from spectui.core.profile import OFF, TuningProfile, is_ngram
from spectui.core.secrets import without_secrets
from spectui.errors import SpectuiError
from spectui.llama.binary import BINARY_NAME
from spectui.llama.capabilities import ALIASES, current_type, normalise
from spectui.llama.client import SlotInfo
from spectui.llama.pasted import given_options, parse_command

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_MODE: Final = "draft-simple"
_LENGTH_FLAGS: Final = frozenset(ALIASES[1])
_P_MIN_FLAGS: Final = frozenset(ALIASES[3])


@dataclass(frozen=True, slots=True)
class Discovered:
    """An attached server's settings; `length_known`: False where answers must show k or p_min."""

    profile: TuningProfile
    length_known: bool


def discover(profile: TuningProfile, slots: Sequence[SlotInfo], *, speculating: bool | None) -> Discovered:
    """Fill in what the user did not say: first from the process's command line, then from the slots.

    A length that no flag names is not known: defaults differ by build. A server that speculates though its command
    line does not ask for it got that from its environment or a preset.
    """
    if profile.speculation.mode != OFF:
        return Discovered(profile, length_known=True)
    found = _from_command(profile)
    if found is not None and (found.profile.speculation.mode != OFF or not speculating):
        return found
    if not speculating:
        return Discovered(profile, length_known=True)
    types = next((s.types for s in slots if s.types), ())
    mode = current_type(types[0]) if types else _DEFAULT_MODE
    base = found.profile if found is not None else profile
    return Discovered(base.with_speculation(mode=mode), length_known=False)


def _from_command(profile: TuningProfile) -> Discovered | None:
    command = _local_command(profile.server.url or "")
    if command is None:
        return None
    arguments = without_secrets(command[1:])
    try:
        parsed = parse_command(shlex.join([BINARY_NAME, *arguments]))
    except SpectuiError:
        return None
    flags = {normalise(option.flag) for option in given_options(arguments)}
    kept = profile.server
    server = replace(
        parsed.server, url=kept.url, api_key_env=kept.api_key_env, port=None, binary=kept.binary or command[0]
    )
    mode = parsed.speculation.mode
    said = not flags.isdisjoint(_LENGTH_FLAGS) and (is_ngram(mode) or not flags.isdisjoint(_P_MIN_FLAGS))
    return Discovered(
        replace(profile, server=server, speculation=parsed.speculation), length_known=mode == OFF or said
    )


def _local_command(url: str) -> list[str] | None:
    """Command line of the llama-server that listens at this address; None where it cannot be seen."""
    import psutil  # noqa: PLC0415  loaded when needed: it takes 20 ms

    parts = urlsplit(url)
    if parts.hostname not in _LOOPBACK:
        return None
    port = parts.port or 80
    for process in psutil.process_iter():
        try:
            if "llama" not in process.name():
                continue
            listens = any(
                c.status == psutil.CONN_LISTEN and c.laddr.port == port
                for c in process.net_connections(kind="inet")
            )
            if listens:
                return process.cmdline() or None
        except psutil.Error:
            continue
    return None
