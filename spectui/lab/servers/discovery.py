"""What can be known of somebody else's server: its settings from its own command line or from what it says.

Only looks: at `/props` and `/slots`, and, where the server runs on this machine, at its process's command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from spectui.core.profile import OFF, TuningProfile, is_ngram
from spectui.core.secrets import without_secrets
from spectui.errors import SpectuiError
from spectui.llama.binary.capabilities import ALIASES, current_type, normalise
from spectui.llama.binary.find import BINARY_NAME
from spectui.llama.binary.pasted_command import given_options, parse_command
from spectui.llama.http.client import SlotInfo

if TYPE_CHECKING:
    from psutil import Process

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_VARIABLES: Final = ("LLAMA_ARG_", "LLAMA_LOG_")
_DEFAULT_MODE: Final = "draft-simple"
_LENGTH_FLAGS: Final = frozenset(ALIASES[1])
_P_MIN_FLAGS: Final = frozenset(ALIASES[3])


@dataclass(frozen=True, slots=True)
class Discovered:
    """An attached server's settings; `length_known`: False where answers must show k or p_min."""

    profile: TuningProfile
    length_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A running llama-server of this machine, as its process shows it."""

    words: tuple[str, ...]
    """Its command line, secrets included."""
    binary: Path
    """Its program."""
    folder: Path
    """Where paths of its command line begin."""
    environment: Mapping[str, str]
    """Variables that set options of a llama-server."""

    def names(self, flags: Collection[str]) -> bool:
        """Whether one of these flags stands on the command line."""
        return any(normalise(option.flag) in flags for option in given_options(self.words[1:]))


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


def local_server(url: str) -> LocalServer | None:
    """The llama-server of this machine that listens at this address; None where it cannot be seen."""
    import psutil  # noqa: PLC0415  loaded when needed: it takes 20 ms

    process = _listener(url)
    if process is None:
        return None
    try:
        words, binary, folder = process.cmdline(), process.exe(), process.cwd()
        environ = process.environ()
    except psutil.Error:
        return None
    ours = {name: value for name, value in environ.items() if name.startswith(_VARIABLES)}
    if not (words and binary):
        return None
    return LocalServer(words=tuple(words), binary=Path(binary), folder=Path(folder), environment=ours)


def _local_command(url: str) -> list[str] | None:
    """Command line of the llama-server that listens at this address; None where it cannot be seen."""
    import psutil  # noqa: PLC0415

    process = _listener(url)
    try:
        return process.cmdline() or None if process is not None else None
    except psutil.Error:
        return None


def _listener(url: str) -> Process | None:
    """The process of a llama-server of this machine that listens at this address."""
    import psutil  # noqa: PLC0415

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
                return process
        except psutil.Error:
            continue
    return None
