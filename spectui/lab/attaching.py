"""What can be known of somebody else's server: its settings from its own command line or from what it says.

Only looks: at `/props` and `/slots`, and, where the server runs on this machine, at its process's command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from spectui.core.profile import OFF, TuningProfile
from spectui.errors import SpectuiError
from spectui.llama.capabilities import current_type
from spectui.llama.client import SlotInfo
from spectui.llama.pasted import parse_command

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_MODE: Final = "draft-simple"


@dataclass(frozen=True, slots=True)
class Discovered:
    """An attached server's settings; `length_known` is False where the draft length is yet to be seen."""

    profile: TuningProfile
    length_known: bool


def discover(profile: TuningProfile, slots: Sequence[SlotInfo], *, speculating: bool | None) -> Discovered:
    """Fill in what the user did not say: first from the process's command line, then from the slots."""
    if profile.speculation.mode != OFF:
        return Discovered(profile, length_known=True)
    said = _from_command(profile)
    if said is not None:
        return Discovered(said, length_known=True)
    if not speculating:
        return Discovered(profile, length_known=True)
    types = next((s.types for s in slots if s.types), ())
    mode = current_type(types[0]) if types else _DEFAULT_MODE
    return Discovered(profile.with_speculation(mode=mode), length_known=False)


def _from_command(profile: TuningProfile) -> TuningProfile | None:
    command = _local_command(profile.server.url or "")
    if command is None:
        return None
    try:
        found = parse_command(shlex.join(command))
    except SpectuiError:
        return None
    kept = profile.server
    server = replace(
        found.server, url=kept.url, api_key_env=kept.api_key_env, port=None, binary=kept.binary or command[0]
    )
    return replace(profile, server=server, speculation=found.speculation)


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
