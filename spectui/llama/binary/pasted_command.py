"""A command line that a person pasted: its words, its options, and the tuning profile it amounts to.

The reverse of `argv`, kept apart because it must take what any build and any how-to writes, with or without the
binary at hand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from spectui.core.profile import MAX_DRAFT_LENGTH, OFF, SpeculationSettings, TuningProfile, is_ngram
from spectui.errors import UsageError
from spectui.llama.binary.argv import ngram_flags
from spectui.llama.binary.capabilities import ALIASES, Capabilities, current_type, normalise
from spectui.llama.binary.find import BINARY_NAME

_CONTINUATION: Final = re.compile(r"\\\r?\n")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SHELL_END: Final = re.compile(r"\|\|?|&&?|;|\d?>>?.*|\d?<.*")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_OLD_LENGTH: Final = 16
_OLD_P_MIN: Final = 0.75
_SIZE_FIELDS: Final = frozenset({"ngram_lookup", "ngram_length", "ngram_min_hits"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The parts of a pasted command."""

    binary: str | None
    """As written; None where the text begins with arguments."""
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    """Assignments in front of the command."""


@dataclass(frozen=True, slots=True)
class GivenOption:
    """One option as it was written."""

    flag: str
    values: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """As it stands on the command line."""
        return (self.flag, *self.values)


def split_command(text: str) -> CommandLine:
    """Split a pasted command; continuations are joined, redirections and what follows them are left out.

    Raises UsageError for an open quote or an empty text.
    """
    try:
        words = shlex.split(_CONTINUATION.sub(" ", text))
    except ValueError as error:
        raise UsageError(f"the command cannot be read ({error}): check its quotes") from error
    end = next((i for i, word in enumerate(words) if _SHELL_END.fullmatch(word)), len(words))
    words = words[:end]
    if not words:
        raise UsageError("the command is empty: paste a llama-server command line")
    start = next((i for i, word in enumerate(words) if PurePath(word).stem == BINARY_NAME), None)
    environment = tuple(
        (match[1], match[2]) for word in words[: start or 0] if (match := _ASSIGNMENT.fullmatch(word))
    )
    if start is not None:
        return CommandLine(binary=words[start], arguments=tuple(words[start + 1 :]), environment=environment)
    if words[0].startswith("-"):
        return CommandLine(binary=None, arguments=tuple(words))
    raise UsageError(f"{words[0]} is no llama-server command: paste one that starts llama-server")


def given_options(arguments: tuple[str, ...], caps: Capabilities | None = None) -> tuple[GivenOption, ...]:
    """Group arguments into options; without the binary's help, what does not look like a flag is a value."""
    options: list[GivenOption] = []
    position = 0
    while position < len(arguments):
        word = arguments[position]
        count = _value_count(word, arguments[position + 1 : position + 2], caps)
        values = arguments[position + 1 : position + 1 + count]
        options.append(GivenOption(word, values))
        position += 1 + len(values)
    return tuple(options)


def _value_count(word: str, following: tuple[str, ...], caps: Capabilities | None) -> int:
    looks_like_value = bool(following) and (
        not following[0].startswith("-") or _NUMBER.fullmatch(following[0]) is not None
    )
    flag = caps.flag(word) if caps is not None else None
    if flag is not None and not (flag.hint.startswith("[on|") and not looks_like_value):
        return flag.value_count
    return int(word.startswith("-") and looks_like_value)


def parse_command(text: str, caps: Capabilities | None = None) -> TuningProfile:
    """The profile that a pasted `llama-server` command amounts to; unknown arguments go to `extra_args`.

    A draft model without a type counts as a wish to speculate. Raises UsageError, naming the flag and the value.
    """
    command = split_command(text)
    options = given_options(command.arguments, caps)
    mode = _mode(options)
    readers = {**_READERS, **_ngram_readers(mode)}
    sections: dict[str, dict[str, Any]] = {"server": {}, "speculation": {"mode": mode}, "sampling": {}}
    extra: list[str] = []
    for option in options:
        reader = readers.get(normalise(option.flag))
        if reader is None:
            ours = normalise(option.flag) in _OURS or option.words == _OUR_HOST
            extra += () if ours else option.words
            continue
        value = reader.read(option)
        if value is None:
            extra += option.words
        else:
            sections[reader.section][reader.field] = value
    if sections["speculation"].get("draft_length") == 0:
        sections["speculation"].update(mode=OFF, draft_length=1)
    if command.binary not in {None, BINARY_NAME}:
        sections["server"]["binary"] = command.binary
    profile = TuningProfile()
    return replace(
        profile,
        server=replace(profile.server, extra_args=tuple(extra), **sections["server"]),
        speculation=replace(_defaults(caps), **sections["speculation"]),
        sampling=replace(profile.sampling, **sections["sampling"]),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where an option goes; `read` gives None for a value that only the server understands."""

    section: str
    field: str
    convert: Callable[[str], Any]

    def read(self, option: GivenOption) -> Any:
        text = option.values[0] if option.values else ""
        try:
            return self.convert(text)
        except ValueError as error:
            raise UsageError(f"{option.flag} cannot be {text or 'empty'}: {error}") from error


def _text(text: str) -> str:
    if not text:
        raise ValueError("it needs a value")
    return text


def _whole(low: int, high: int | None = None) -> Callable[[str], int | None]:
    def convert(text: str) -> int | None:
        if not re.fullmatch(r"-?\d+", text):
            raise ValueError("it takes a whole number")
        if int(text) == -1:
            return None
        if int(text) < low or (high is not None and int(text) > high):
            raise ValueError(f"it takes {low} to {high}" if high is not None else f"it takes {low} or more")
        return int(text)

    return convert


def _share(text: str) -> float:
    return _real(0.0, 1.0)(text)


def _real(low: float, high: float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        if not re.fullmatch(r"-?(?:\d+\.?\d*|\.\d+)", text) or not low <= float(text) <= high:
            raise ValueError(f"it takes a number from {low:g} to {high:g}")
        return float(text)

    return convert


def _layers(text: str) -> int | str | None:
    return text if text in {"auto", "all"} else _whole(0)(text)


def _one_of(*names: str, empty: str | None = None) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if not text and empty is not None:
            return empty
        if text not in names:
            raise ValueError(f"it takes {', '.join(names)}")
        return text

    return convert


def _flags(section: str, field: str, convert: Callable[[str], Any], *spellings: str) -> dict[str, _Reader]:
    return dict.fromkeys(spellings, _Reader(section, field, convert))


_LENGTH: Final = _whole(0, MAX_DRAFT_LENGTH)
_READERS: Final[dict[str, _Reader]] = {
    **_flags("server", "model", _text, "-m", "--model"),
    **_flags("server", "context", _whole(0), "-c", "--ctx-size"),
    **_flags("server", "parallel", _whole(1, 64), "-np", "--parallel"),
    **_flags("server", "threads", _whole(1), "-t", "--threads"),
    **_flags("server", "gpu_layers", _layers, "-ngl", "--n-gpu-layers", "--gpu-layers"),
    **_flags("server", "device", _text, "-dev", "--device"),
    **_flags("server", "split_mode", _one_of("none", "layer", "row", "tensor"), "-sm", "--split-mode"),
    **_flags("server", "flash_attention", _one_of("on", "off", "auto", empty="on"), "-fa", "--flash-attn"),
    **_flags("server", "cache_type_k", _text, "-ctk", "--cache-type-k"),
    **_flags("server", "cache_type_v", _text, "-ctv", "--cache-type-v"),
    **_flags("server", "port", _whole(1, 65535), "--port"),
    **_flags("speculation", "draft_model", _text, *ALIASES[0]),
    **_flags("speculation", "draft_length", _LENGTH, *ALIASES[1]),
    **_flags("speculation", "draft_min", _LENGTH, *ALIASES[2]),
    **_flags("speculation", "p_min", _share, *ALIASES[3]),
    **_flags("speculation", "draft_gpu_layers", _layers, *ALIASES[5]),
    **_flags("speculation", "draft_device", _text, *ALIASES[6]),
    **_flags("speculation", "draft_cache_type_k", _text, *ALIASES[7]),
    **_flags("speculation", "draft_cache_type_v", _text, *ALIASES[8]),
    **_flags("sampling", "temperature", _real(0.0, 5.0), "--temp", "--temperature"),
    **_flags("sampling", "seed", _whole(0, 2**31 - 1), "-s", "--seed"),
}
_OUR_HOST: Final = ("--host", "127.0.0.1")
_OURS: Final = frozenset(
    {"--metrics", "--slots", "-lv", "--verbosity", "--log-verbosity", "--spec-type", "--spec-default"}
)
"""Written by spectui in any case, or read as the mode."""


def _ngram_readers(mode: str) -> dict[str, _Reader]:
    if not is_ngram(mode):
        return {}
    readers: dict[str, _Reader] = {}
    for field, spellings in ngram_flags(mode):
        convert = _whole(1, 1024) if field in _SIZE_FIELDS else _LENGTH
        readers.update(_flags("speculation", field, convert, *spellings))
    return readers


def _mode(options: tuple[GivenOption, ...]) -> str:
    types: list[str] = []
    draft = False
    for option in options:
        flag = normalise(option.flag)
        if flag == "--spec-type" and option.values:
            types += [current_type(name) for name in option.values[0].split(",")]
        elif flag == "--spec-default":
            types.append("ngram-mod")
        draft = draft or flag in ALIASES[0] or flag in ALIASES[9]
    chosen = tuple(dict.fromkeys(name for name in types if name and name != "none"))
    if len(chosen) > 1:
        raise UsageError(f"--spec-type chains {', '.join(chosen)}: a profile holds one type, so name one")
    if chosen:
        return chosen[0]
    return "draft-simple" if draft and not types else OFF


def _defaults(caps: Capabilities | None) -> SpeculationSettings:
    """What the binary does where the command says nothing: builds before b9235 draft 16 tokens and use p_min."""
    settings = SpeculationSettings()
    length = caps.flag(next(iter(filter(caps.accepts, ALIASES[1])), "")) if caps is not None else None
    if length is None or length.default != str(_OLD_LENGTH):
        return settings
    return replace(settings, draft_length=_OLD_LENGTH, p_min=_OLD_P_MIN)
