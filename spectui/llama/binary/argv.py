"""A tuning profile as the command line of one particular llama-server.

Everything that turns settings into flags is here, and only flags that this binary accepts come out: names and
defaults moved several times, so the type, the length and the thresholds of speculation are always written.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from typing import Final

from spectui.core.profile import (
    OFF,
    ServerSettings,
    SpeculationSettings,
    TuningProfile,
    is_ngram,
    needs_draft_model,
)
from spectui.core.secrets import redacted
from spectui.errors import FlagError, LaunchError
from spectui.llama.binary.capabilities import ALIASES, Capabilities, Flag, normalise

TRACE_VARIABLE: Final = "LLAMA_TRACE"
"""Set to 1, a server from b8983 on logs every target pass."""
_SCRUBBED: Final = ("LLAMA_ARG_", "LLAMA_LOG_")
_EVERY_LAYER: Final = "999"
"""What builds without the word `all` are given: more layers than any model has."""

MODEL_SOURCES: Final = frozenset(
    {"-m", "--model", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo", "-dr", "--docker-repo"}
)
DRAFT_SOURCES: Final = frozenset({*ALIASES[0], *ALIASES[9]})

_SERVER_FLAGS: Final = (
    ("model", ("-m", "--model")),
    ("context", ("-c", "--ctx-size")),
    ("parallel", ("-np", "--parallel")),
    ("threads", ("-t", "--threads")),
    ("gpu_layers", ("-ngl", "--n-gpu-layers", "--gpu-layers")),
    ("device", ("--device", "-dev")),
    ("split_mode", ("--split-mode", "-sm")),
    ("flash_attention", ("--flash-attn", "-fa")),
    ("cache_type_k", ("--cache-type-k", "-ctk")),
    ("cache_type_v", ("--cache-type-v", "-ctv")),
)
_DRAFT_FLAGS: Final = (
    ("draft_model", ALIASES[0]),
    ("draft_length", ALIASES[1]),
    ("draft_min", ALIASES[2]),
    ("p_min", ALIASES[3]),
    ("draft_gpu_layers", ALIASES[5]),
    ("draft_device", ALIASES[6]),
    ("draft_cache_type_k", ALIASES[7]),
    ("draft_cache_type_v", ALIASES[8]),
)


def ngram_flags(mode: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Fields of the profile and their flags for an n-gram mode, newest spelling first; ngram-cache has none."""
    if mode == "ngram-mod":
        return (
            ("ngram_lookup", ("--spec-ngram-mod-n-match", "--spec-ngram-size-n")),
            ("ngram_length", ("--spec-ngram-mod-n-max", "--draft-max")),
            ("draft_min", ("--spec-ngram-mod-n-min", "--draft-min")),
        )
    if mode == "ngram-cache":
        return ()
    return (
        ("ngram_lookup", (f"--spec-{mode}-size-n", "--spec-ngram-size-n")),
        ("ngram_length", (f"--spec-{mode}-size-m", "--spec-ngram-size-m")),
        ("ngram_min_hits", (f"--spec-{mode}-min-hits", "--spec-ngram-min-hits")),
    )


def build_argv(
    profile: TuningProfile,
    caps: Capabilities,
    *,
    binary: str,
    port: int,
    host: str = "127.0.0.1",
    reports: bool = True,
) -> tuple[str, ...]:
    """The command line that launches this profile with this binary.

    reports: whether the server tells what spectui reads. An option that stands in `extra_args` is left to them.
    Raises FlagError for a setting or mode that the binary does not have, LaunchError (code model-missing or
    draft-model-missing) for a model that is not named.
    """
    argv, problems = assemble(profile, caps, binary=binary, port=port, host=host, reports=reports)
    for problem in problems:
        raise problem
    return argv


def assemble(
    profile: TuningProfile,
    caps: Capabilities,
    *,
    binary: str,
    port: int,
    host: str = "127.0.0.1",
    reports: bool = True,
) -> tuple[tuple[str, ...], tuple[FlagError | LaunchError, ...]]:
    """As `build_argv`, with all that is wrong instead of an exception, and the command line without that."""
    server, speculation = profile.server, profile.speculation
    out = _Arguments(caps, server.extra_args)
    out.problems += unnamed_target(profile)
    _add_server(out, server)
    if speculation.mode != OFF:
        _add_speculation(out, profile, caps)
    out.add("server.host", host, ("--host",))
    out.add("server.port", port, ("--port",))
    if reports:
        _add_reports(out, caps)
    return (binary, *out.arguments, *server.extra_args), tuple(out.problems)


def unnamed_target(profile: TuningProfile) -> tuple[LaunchError, ...]:
    """The error for a target that the profile does not name; empty where it does."""
    server = profile.server
    if server.model is not None or MODEL_SOURCES.intersection(server.extra_args):
        return ()
    text = "the profile names no model: set server.model to a GGUF file"
    return (LaunchError(text, code="model-missing"),)


def unnamed_draft(profile: TuningProfile) -> tuple[LaunchError, ...]:
    """The error for a draft model that the mode needs and the profile does not name; empty where it does."""
    speculation = profile.speculation
    named = speculation.draft_model is not None or DRAFT_SOURCES.intersection(profile.server.extra_args)
    if named or not needs_draft_model(speculation.mode):
        return ()
    text = f"the mode {speculation.mode} needs a draft model: set speculation.draft_model to a GGUF file"
    return (LaunchError(text, code="draft-model-missing"),)


def command_line(argv: tuple[str, ...]) -> str:
    """The arguments as one line that a shell reads back, secrets hidden."""
    return shlex.join(redacted(argv))


def child_environment(
    environ: Mapping[str, str], *, inherit: bool, caps: Capabilities | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Environment for a server, and the names of variables in it that would change its settings.

    LLAMA_ARG_*, LLAMA_LOG_* and whatever else the binary's help names are left out unless `inherit`: an old name
    among them can stop a server.
    """
    named = {name for flag in caps.flags for name in flag.env} if caps is not None else set()
    found = tuple(sorted(name for name in environ if name.startswith(_SCRUBBED) or name in named))
    child = {name: value for name, value in environ.items() if inherit or name not in found}
    child[TRACE_VARIABLE] = "1"
    return child, found


class _Arguments:
    """Collects arguments, writing only what the binary accepts and the user did not write.

    problems: what cannot be written.
    """

    def __init__(self, caps: Capabilities, extra: tuple[str, ...]) -> None:
        self.arguments: list[str] = []
        self.problems: list[FlagError | LaunchError] = []
        self._caps = caps
        self._given = {flag.spellings for word in extra if (flag := caps.flag(word)) is not None}

    def add(self, setting: str, value: object, spellings: tuple[str, ...]) -> None:
        """Write one option in the newest spelling; a problem where there is none."""
        name = self._caps.first_of(*spellings)
        flag = self._caps.flag(name) if name is not None else None
        if name is None or flag is None:
            self.problems.append(_no_flag(setting, spellings, self._caps))
            return
        if flag.spellings in self._given:
            return
        try:
            text = _spelled(setting, value, flag)
        except FlagError as error:
            self.problems.append(error)
            return
        if text is not None:
            self.arguments += [name, text] if text else [name]

    def switch(self, name: str) -> None:
        """Write a flag without a value, where the binary has it."""
        flag = self._caps.flag(name)
        if flag is not None and self._caps.accepts(name) and flag.spellings not in self._given:
            self.arguments.append(name)


def _add_server(out: _Arguments, server: ServerSettings) -> None:
    for name, spellings in _SERVER_FLAGS:
        value = getattr(server, name)
        if value is not None:
            out.add(f"server.{name}", value, spellings)


def _add_speculation(out: _Arguments, profile: TuningProfile, caps: Capabilities) -> None:
    speculation, mode = profile.speculation, profile.speculation.mode
    if mode not in caps.modes:
        close = difflib.get_close_matches(mode, caps.modes, n=1)
        offered = ", ".join(caps.modes)
        problem = FlagError(
            f"this llama-server offers no mode {mode}: choose one of {offered}",
            flag=f"--spec-type {mode}",
            nearest=f"--spec-type {close[0]}" if close else None,
        )
        out.problems.append(problem)
        return
    type_name = caps.type_name(mode)
    if type_name is not None:
        out.add("speculation.mode", type_name, ("--spec-type",))
    if is_ngram(mode):
        _add_ngram(out, speculation)
        return
    out.problems += unnamed_draft(profile)
    for name, spellings in _DRAFT_FLAGS:
        value = getattr(speculation, name)
        unset = value is None or (name == "draft_min" and value == 0 and caps.first_of(*spellings) is None)
        if not unset:
            out.add(f"speculation.{name}", value, spellings)


def _add_ngram(out: _Arguments, speculation: SpeculationSettings) -> None:
    for name, spellings in ngram_flags(speculation.mode):
        value = getattr(speculation, name)
        # By default ngram-mod throws away drafts under 48 tokens, which a shorter length would never reach.
        unset = speculation.ngram_length is None and value == 0 if name == "draft_min" else value is None
        if not unset:
            out.add(f"speculation.{name}", value, spellings)


def _add_reports(out: _Arguments, caps: Capabilities) -> None:
    """Have the server tell what spectui reads: metrics, slots, and the lines that b9829 moved to verbosity 4."""
    out.switch("--metrics")
    slots, verbosity = caps.flag("--slots"), caps.flag("-lv")
    if slots is not None and slots.default == "disabled":
        out.switch("--slots")
    if verbosity is not None and "4: trace" in verbosity.text:
        out.add("log verbosity", 4, ("-lv",))


def _spelled(setting: str, value: object, flag: Flag) -> str | None:
    """The value as this flag takes it: "" for a switch that is on, None where nothing must be written."""
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    if not flag.hint:
        return "" if text == "on" else None
    if setting.endswith("gpu_layers") and text in {"auto", "all"} and "'all'" not in flag.text:
        return _EVERY_LAYER if text == "all" else None
    if flag.values and text not in flag.values:
        raise FlagError(
            f"{setting} cannot be {text}: {flag.spellings[-1]} of this llama-server takes {', '.join(flag.values)}",
            flag=f"{flag.spellings[-1]} {text}",
        )
    return text


def _no_flag(setting: str, spellings: tuple[str, ...], caps: Capabilities) -> FlagError:
    wanted = next((s for s in spellings if s.startswith("--")), spellings[0])
    nearest = caps.nearest(normalise(wanted))
    advice = f"the nearest flag is {nearest}" if nearest else f"leave {setting} unset or use a newer build"
    return FlagError(
        f"this llama-server has no {wanted} for {setting}: {advice}", flag=wanted, nearest=nearest
    )
