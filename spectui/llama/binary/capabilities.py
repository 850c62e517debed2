"""What one llama-server binary accepts, read from its own `--help`.

Flags were added, renamed and removed several times, and version strings are unreliable (packaged builds call
themselves build 1): only the help text tells. A flag whose help says "the argument has been removed" is still
listed, and is treated as absent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from spectui.core.profile import OFF

HELP_COLUMN: Final = 40
"""Column at which llama.cpp's help prints the explanation of a flag."""

REMOVED: Final = "the argument has been removed"

ALIASES: Final[tuple[tuple[str, ...], ...]] = (
    ("--spec-draft-model", "--model-draft", "-md", "--draft-model", "--draft-model-file"),
    ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft"),
    ("--spec-draft-n-min", "--draft-min", "--draft-n-min"),
    ("--spec-draft-p-min", "--draft-p-min", "--spec-draft-conf-min"),
    ("--spec-draft-p-split", "--draft-p-split"),
    ("--spec-draft-ngl", "--n-gpu-layers-draft", "--gpu-layers-draft", "-ngld"),
    ("--spec-draft-device", "--device-draft", "-devd"),
    ("--spec-draft-type-k", "--cache-type-k-draft", "-ctkd"),
    ("--spec-draft-type-v", "--cache-type-v-draft", "-ctvd"),
    ("--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd"),
    ("--spec-draft-threads", "--threads-draft", "-td"),
    ("--spec-draft-override-tensor", "--override-tensor-draft", "-otd"),
    ("--spec-draft-cpu-moe", "--cpu-moe-draft", "-cmoed"),
    ("--spec-draft-n-cpu-moe", "--n-cpu-moe-draft", "-ncmoed"),
)
"""Spellings of one setting over the years, newest first; some were never real but are common in how-tos."""

GONE: Final = frozenset({"-cd", "--ctx-size-draft", "--spec-replace"})
"""Flags that current builds dropped without a successor (b9109): the draft shares the target's context."""

_OLD_TYPES: Final = {
    "draft": "draft-simple",
    "simple": "draft-simple",
    "eagle3": "draft-eagle3",
    "mtp": "draft-mtp",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
}
_TYPE_WORD: Final = re.compile(r"\b(?:none|draft|ngram|eagle3|mtp|dflash|dspark|suffix)[a-z0-9_-]*")
_ENV: Final = re.compile(r"\(env: ([A-Z0-9_]+)\)")
_DEFAULT: Final = re.compile(r"\bdefault: ?['\"]?([^\s'\",;)]+)")
_ALLOWED_IN_HELP: Final = re.compile(r"allowed values: ([\w.]+(?:, ?[\w.]+)*)")
_ALLOWED_IN_HINT: Final = re.compile(r"^[{\[<]([\w.+-]+(?:[,|][\w.+-]+)+)[}\]>]$")
_BARE_LIST: Final = re.compile(r"^[a-z0-9_-]+(?:,[a-z0-9_-]+)+$")
_FLAG_IN_TEXT: Final = re.compile(r"--?[a-z0-9][\w*-]*")
_SPELLING: Final = re.compile(r"-{1,2}[A-Za-z0-9][\w.-]*")
_VERSION: Final = re.compile(
    r"version: (?P<text>(?:(?P<build>\d+) \((?P<commit>[0-9a-f]+)\))"
    r"|(?:\S+ \(build (?P<build2>\d+), commit (?P<commit2>[0-9a-f]+)\))|\S+)"
)


def normalise(flag: str) -> str:
    """The flag as help lists it: llama.cpp reads `_` in a long option as `-`."""
    return flag.replace("_", "-") if flag.startswith("--") else flag


def current_type(name: str) -> str:
    """A speculation type in the field's current spelling: `draft` and `ngram_simple` were renamed in b9131."""
    name = name.strip().replace("_", "-")
    return _OLD_TYPES.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What `--version` prints; builds from packages often say build 1, so nothing is decided by it."""

    build: int | None = None
    commit: str | None = None
    text: str = ""
    """The version as printed, without the leading word."""

    @property
    def label(self) -> str | None:
        """As a person names it, such as b10434, or as printed where there is no build number."""
        return f"b{self.build}" if self.build is not None else self.text or None


def parse_version(text: str) -> Version:
    """Read `--version` output of either format; all fields are empty where there is no version line."""
    match = _VERSION.search(text)
    if match is None:
        return Version()
    build = match["build"] or match["build2"]
    return Version(
        build=int(build) if build else None, commit=match["commit"] or match["commit2"], text=match["text"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option of the binary, with all its spellings."""

    spellings: tuple[str, ...]
    hint: str = ""
    """What follows the flag in help, such as N or FNAME; empty for a switch."""
    text: str = ""
    """The explanation, on one line."""
    env: tuple[str, ...] = ()
    """Environment variables that set it."""
    default: str | None = None
    """The default that help states. Help was wrong about p_min before b8955 (0.8 for a true 0.75)."""
    values: tuple[str, ...] = ()
    """Allowed values where help lists them."""
    removed: bool = False
    """Whether the binary only keeps it to say that it is gone."""

    @property
    def value_count(self) -> int:
        """How many arguments follow: 0 for a switch, 2 for flags like `--spec-replace TARGET DRAFT`."""
        if not self.hint:
            return 0
        words = self.hint.split(" ")
        return len(words) if all(word.isupper() for word in words) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the binary accepts."""

    flags: tuple[Flag, ...] = ()
    speculation_types: tuple[str, ...] = ()
    """Values of `--spec-type` in the binary's own spelling, without `none`; empty where it has no such flag."""
    version: Version = field(default_factory=Version)
    _index: Mapping[str, Flag] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {spelling: flag for flag in self.flags for spelling in flag.spellings}
        object.__setattr__(self, "_index", MappingProxyType(index))

    def flag(self, spelling: str) -> Flag | None:
        """The option behind a spelling, also when it was removed."""
        return self._index.get(normalise(spelling))

    def accepts(self, spelling: str) -> bool:
        """Whether the binary takes this flag."""
        flag = self.flag(spelling)
        return flag is not None and not flag.removed

    def first_of(self, *spellings: str) -> str | None:
        """The first of these that the binary takes."""
        return next((s for s in spellings if self.accepts(s)), None)

    def removed_advice(self, spelling: str) -> str | None:
        """What help says to use in place of a removed flag; None for a flag that was not removed."""
        flag = self.flag(spelling)
        if flag is None or not flag.removed:
            return None
        return flag.text.split(REMOVED, 1)[1].lstrip(". ") or "no replacement is named"

    def nearest(self, spelling: str) -> str | None:
        """The accepted flag that is meant: its replacement, its new or old name, or the closest spelling.

        None where nothing comes close, and for flags that were dropped without a successor.
        """
        wanted = normalise(spelling)
        if self.accepts(wanted):
            return wanted
        advice = self.removed_advice(wanted) or ""
        for pattern in _FLAG_IN_TEXT.findall(advice):
            found = next((s for s in self._accepted() if fnmatchcase(s, pattern)), None)
            if found is not None:
                return found
        for group in ALIASES:
            if wanted in group:
                return self.first_of(*group)
        if wanted in GONE or not wanted.startswith("--"):
            return None
        close = difflib.get_close_matches(wanted, list(self._accepted()), n=1, cutoff=0.6)
        return close[0] if close else None

    def type_name(self, mode: str) -> str | None:
        """The mode as this binary spells it for `--spec-type`; None where it is not among the values."""
        return next((name for name in self.speculation_types if current_type(name) == mode), None)

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes that can be launched, in current names, "off" first.

        Before b9109 a draft model alone speculates, and `--spec-type` (where it is) lists n-gram types only.
        """
        offered = [current_type(name) for name in self.speculation_types]
        drafts_by_type = any(name.startswith("draft-") for name in offered)
        if not drafts_by_type and self.first_of(*ALIASES[0][:3]) and self.first_of(*ALIASES[1]):
            offered.insert(0, "draft-simple")
        return tuple(dict.fromkeys((OFF, *offered)))

    def _accepted(self) -> tuple[str, ...]:
        return tuple(s for s, flag in self._index.items() if not flag.removed)


def parse_help(text: str, version: Version | None = None) -> Capabilities:
    """Read the whole help text. A text that is no help gives Capabilities without flags."""
    flags: list[Flag] = []
    for header, lines in _paragraphs(text):
        spellings, hint, first = _split_header(header)
        words = " ".join(part for part in (first, *lines) if part)
        flags.append(_flag(spellings, hint, words))
    spec_type = next((f for f in flags if "--spec-type" in f.spellings and not f.removed), None)
    return Capabilities(
        flags=tuple(flags),
        speculation_types=_types(spec_type) if spec_type is not None else (),
        version=version or Version(),
    )


def _paragraphs(text: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if _SPELLING.match(line):
            found.append((line, []))
        elif found and line.startswith(" "):
            found[-1][1].append(line.strip())
    return found


def _split_header(line: str) -> tuple[tuple[str, ...], str, str]:
    """Spellings, value hint and the start of the explanation.

    The spellings are padded to the help column, or stand alone where they are longer.
    """
    spellings: list[str] = []
    position = 0
    while match := _SPELLING.match(line, position):
        spellings.append(match.group())
        position = match.end()
        if not line.startswith(",", position):
            break
        position += len(line) - position - len(line[position + 1 :].lstrip())
    rest = line[position:]
    cut = HELP_COLUMN - position
    two_columns = cut > 0 and len(rest) > cut and rest[cut - 1] == " " and rest[cut] != " "
    hint = rest[:cut] if two_columns else rest
    if two_columns and hint.count("<") != hint.count(">"):
        two_columns, hint = False, rest
    return tuple(spellings), hint.strip(), rest[cut:].strip() if two_columns else ""


def _flag(spellings: tuple[str, ...], hint: str, text: str) -> Flag:
    default = _DEFAULT.search(text)
    return Flag(
        spellings=tuple(normalise(s) for s in spellings),
        hint=hint,
        text=_ENV.sub("", text).strip(),
        env=tuple(_ENV.findall(text)),
        default=default[1] if default else None,
        values=_values(hint, text),
        removed=REMOVED in text,
    )


def _values(hint: str, text: str) -> tuple[str, ...]:
    if (listed := _ALLOWED_IN_HINT.match(hint)) and not listed[1].endswith(".."):
        return tuple(re.split(r"[,|]", listed[1]))
    if _BARE_LIST.match(hint):
        return tuple(hint.split(","))
    if allowed := _ALLOWED_IN_HELP.search(text):
        return tuple(value.strip() for value in allowed[1].split(","))
    return ()


def _types(flag: Flag) -> tuple[str, ...]:
    names = flag.values or tuple(dict.fromkeys(_TYPE_WORD.findall(flag.text)))
    return tuple(name for name in names if name != "none")
