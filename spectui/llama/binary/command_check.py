"""A pasted command line against what one binary accepts: what is wrong with it, and the line put right.

The line may come from a how-to of any year. Nothing is run, and no file is looked at.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spectui.core.profile import is_ngram
from spectui.core.text import one_line
from spectui.core.verdict.findings import Failure, Finding, launch_finding
from spectui.llama.binary.argv import DRAFT_SOURCES, ngram_flags
from spectui.llama.binary.capabilities import ALIASES, GONE, Capabilities, Flag, current_type, normalise
from spectui.llama.binary.environment import Variable, stale_variables
from spectui.llama.binary.find import BINARY_NAME
from spectui.llama.binary.pasted_command import CommandLine, GivenOption, given_options
from spectui.llama.builds import BAD, DRAFT_ALONE

_TYPE_FLAG: Final = "--spec-type"
_DEFAULT_FLAG: Final = "--spec-default"
_LENGTH, _LEAST = ALIASES[1], ALIASES[2]
_NUMBER_START: Final = re.compile(r"\s*[-+]?\.?\d")
_WHOLE: Final = re.compile(r"\d+")
_INTEGER: Final = re.compile(r"[-+]?\d{1,10}")
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {"--port": (0, 65_535), "--parallel": (1, 2**31 - 1)}
"""Least and largest value of flags whose help names neither."""
_SWITCH_WORDS: Final = frozenset(
    {"on", "off", "auto", "true", "false", "1", "0", "enabled", "disabled", "-1"}
)
_LONGEST: Final = 60
_ENDING: Final = frozenset(
    {"-h", "--help", "--usage", "--version", "--license", "-cl", "--cache-list", "--completion-bash"}
    | {"--list-devices"}
)
"""Flags that print something and end the program."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong, in the order of the command line, and the words of the line that would work.

    words is None where something cannot be put right without asking.
    """

    findings: tuple[Finding, ...]
    words: tuple[str, ...] | None
    types: tuple[str, ...] = ()
    """Speculation types that the corrected line asks for, in their current names."""


def check_command(
    command: CommandLine, caps: Capabilities, environ: Mapping[str, str], *, binary: str | None = None
) -> Checked:
    """Check a command line and the LLAMA_* variables it would run with; `binary` replaces its first word."""
    check = _Check(command, caps, environ)
    check.flags()
    check.variables()
    check.types()
    check.draft()
    check.lengths()
    check.build()
    words = (
        *check.prefix,
        binary or command.binary or BINARY_NAME,
        *(w for o in check.kept for w in o.words),
    )
    return Checked(tuple(check.findings), words if check.correctable else None, check.types_wanted)


def bad_builds(build: int | None, types: Sequence[str]) -> list[Finding]:
    """What is known to fail in this build with these speculation types, in their current names."""
    return [
        launch_finding(
            Failure(code="known-bad-build", text=f"b{build} {bad.what}"), f"use {bad.good} or later"
        )
        for bad in BAD
        if build in bad.builds and bad.kind in types
    ]


@dataclass(slots=True)
class _Check:
    """One check in progress. kept: the options as the corrected line has them."""

    command: CommandLine
    caps: Capabilities
    environ: Mapping[str, str]
    findings: list[Finding] = field(default_factory=list)
    kept: list[GivenOption] = field(default_factory=list)
    inherited: list[GivenOption] = field(default_factory=list)
    """What variables of the environment set, as options."""
    prefix: tuple[str, ...] = ()
    correctable: bool = True

    def flags(self) -> None:
        """Each option: does the binary take it, and its value."""
        options = given_options(self.command.arguments, self.caps)
        # Which n-gram setting a removed flag meant depends on the type, wherever that stands in the line.
        types = tuple(o for o in options if normalise(o.flag) == _TYPE_FLAG)
        for option in options:
            flag = self.caps.flag(option.flag)
            if flag is None:
                self._unknown(option)
            elif flag.removed:
                self._removed(option, types)
            elif option.flag in _ENDING:
                text = f"{option.flag} prints something and ends the program"
                self._say("flag-value", text, "leave it out")
            else:
                self._value(option, flag)
                self.kept.append(option)

    def variables(self) -> None:
        """Variables that the binary no longer obeys, and those that it does."""
        given = dict(self.command.environment)
        stale = stale_variables({**self.environ, **given}, self.caps)
        for variable in stale:
            self._stale(variable)
        names = {v.name for v in stale}
        unset = [w for v in stale if v.fatal and v.name in self.environ for w in ("-u", v.name)]
        assigned = [f"{name}={value}" for name, value in given.items() if name not in names]
        self.prefix = ("env", *unset, *assigned) if unset or assigned else ()
        for flag in self.caps.flags:
            for name in flag.env:
                value = given.get(name, self.environ.get(name))
                if value is not None and not flag.removed and not self._given(*flag.spellings):
                    self.inherited.append(GivenOption(flag.spellings[0], (value,)))

    def types(self) -> None:
        """Names of speculation types in this binary's spelling."""
        for index, option in enumerate(self.kept):
            if normalise(option.flag) == _TYPE_FLAG and option.values:
                names = [self._type(name.strip()) for name in option.values[0].split(",")]
                kept = ",".join(name for name in names if name)
                self.kept[index] = GivenOption(option.flag, (kept,)) if kept else GivenOption("", ())
        self.kept = [o for o in self.kept if o.flag]
        inherited = next((o for o in self.inherited if o.flag == _TYPE_FLAG), None)
        if inherited is not None and not self._given(_TYPE_FLAG):
            spelled = ",".join(filter(None, map(self._type, inherited.values[0].split(","))))
            if spelled != inherited.values[0]:
                self.kept.append(GivenOption(_TYPE_FLAG, (spelled or "none",)))

    def draft(self) -> None:
        """A draft model without a type, a type without a draft model."""
        simple, chosen = self.caps.type_name("draft-simple"), self._chosen()
        has_draft = self._has_draft()
        if has_draft and chosen is None and simple is not None and not self._speculates_by_draft():
            self._say(
                "draft-type-missing",
                "a draft model is given and no type: this binary loads it and does not speculate",
                f"add {_TYPE_FLAG} {simple}",
            )
            self.kept.append(GivenOption(_TYPE_FLAG, (simple,)))
        needy = [t for t in chosen or () if t.startswith("draft-") and t != "draft-mtp"]
        if needy and not has_draft:
            flag = self.caps.first_of(*ALIASES[0]) or ALIASES[0][0]
            self._say(
                "draft-model-missing",
                f"{needy[0]} needs a draft model",
                f"add {flag} and a GGUF file",
                fatal=True,
            )

    def lengths(self) -> None:
        """Draft lengths that abort the server or clear every draft."""
        chosen = self._chosen() or ()
        drafting = [t for t in chosen if t.startswith("draft-")]
        if drafting and self._number(*_LENGTH) == 0 and self.caps.type_name("draft-simple") is not None:
            self._say(
                "n-max-zero",
                "draft length 0 stops this binary at its first request",
                "to turn speculation off, leave out the type and the draft model",
            )
            self._turn_off(drafting)
        elif drafting:
            self._least(_LEAST, _LENGTH)
        if "ngram-mod" in chosen:
            self._least(("--spec-ngram-mod-n-min",), ("--spec-ngram-mod-n-max",))

    def build(self) -> None:
        """Builds that are known to fail with what is asked for."""
        found = bad_builds(self.caps.version.build, self._chosen() or ())
        self.findings += found
        self.correctable = self.correctable and not found

    @property
    def types_wanted(self) -> tuple[str, ...]:
        """Types that the line asks for once it is corrected."""
        return self._chosen() or ()

    def _say(
        self, code: str, message: str, advice: str, *, fatal: bool = False, **evidence: str | None
    ) -> None:
        shown = {name: text and one_line(text, _LONGEST) for name, text in evidence.items()}
        self.findings.append(launch_finding(Failure(code=code, text=message), advice, shown))
        self.correctable = self.correctable and not fatal

    def _unknown(self, option: GivenOption) -> None:
        word = one_line(option.flag, _LONGEST)
        base, equals, value = option.flag.partition("=")
        if equals and self.caps.accepts(base):
            text = f"{word}: a flag and its value stand apart here"
            self._say(
                "flag-unknown", text, f"write {base} {one_line(value, _LONGEST)}", flag=word, nearest=base
            )
            self.kept.append(GivenOption(base, (value,)))
            return
        flag = normalise(option.flag)
        gone = flag in GONE or self._needless_type(option)
        nearest = None if gone else self.caps.nearest(flag)
        renamed = nearest is not None and any(flag in group for group in ALIASES)
        if nearest is not None:
            advice = f"{'use' if renamed else 'the nearest is'} {nearest}"
        else:
            advice = (
                "leave it out: nothing took its place" if gone else "remove it, or use a binary that has it"
            )
        text = f"this binary has no {word}" if flag.startswith("-") else f"{word} stands where a flag belongs"
        self._say("flag-unknown", text, advice, fatal=not (gone or renamed), flag=word, nearest=nearest)
        if renamed and nearest is not None:
            self.kept.append(GivenOption(nearest, option.values))

    def _needless_type(self, option: GivenOption) -> bool:
        """`--spec-type draft-simple` for a binary without types, which speculates with a draft alone."""
        values = [current_type(name) for value in option.values for name in value.split(",")]
        return normalise(option.flag) == _TYPE_FLAG and values == ["draft-simple"]

    def _removed(self, option: GivenOption, types: tuple[GivenOption, ...]) -> None:
        nearest = self._replacement(option.flag, types)
        flag = self.caps.flag(nearest) if nearest is not None else None
        fits = flag is not None and flag.value_count == len(option.values)
        advice = f"use {nearest}" if nearest else one_line(self.caps.removed_advice(option.flag) or "", 200)
        names = {"flag": option.flag, "nearest": nearest}
        self._say("flag-removed", f"this binary no longer has {option.flag}", advice, fatal=not fits, **names)
        if nearest is not None and fits:
            self.kept.append(GivenOption(nearest, option.values))

    def _replacement(self, flag: str, types: tuple[GivenOption, ...]) -> str | None:
        """What took a removed flag's place; n-gram settings became several, so the type decides."""
        for kind in (current_type(name) for o in types for value in o.values for name in value.split(",")):
            for _, spellings in ngram_flags(kind) if is_ngram(kind) else ():
                if normalise(flag) in spellings:
                    return self.caps.first_of(*spellings)
        return self.caps.nearest(flag)

    def _value(self, option: GivenOption, flag: Flag) -> None:
        if len(option.values) < flag.value_count and not flag.hint.startswith("[on|"):
            self._say("flag-value", f"{option.flag} needs a value ({flag.hint})", "give it one", fatal=True)
            return
        for value in option.values:
            shown = one_line(value, _LONGEST)
            if value.startswith("--") and self.caps.accepts(value):
                text = f"{option.flag} swallows {shown}, which stands where its value belongs"
                self._say("flag-value", text, f"give {option.flag} a value", fatal=True)
            elif flag.hint == "N" and not _NUMBER_START.match(value) and value not in flag.text:
                self._say(
                    "flag-value", f"{option.flag} takes a number, not {shown}", "correct it", fatal=True
                )
            elif (bounds := _bounds(flag)) is not None and not _within(value, bounds, flag):
                text = f"{option.flag} takes a whole number from {bounds[0]} to {bounds[1]}, not {shown}"
                self._say("flag-value", text, "correct it", fatal=True)
            elif _outside(value, flag):
                listed = ", ".join(flag.values)
                text = f"{option.flag} does not take {shown}"
                self._say("flag-value", text, f"it takes {listed}", fatal=True)

    def _type(self, name: str) -> str | None:
        """The type as this binary spells it; None where the word must go."""
        if not name or name == "none" or name in self.caps.speculation_types:
            return name
        shown = one_line(name, _LONGEST)
        wanted = current_type(name)
        spelled = self.caps.type_name(wanted)
        if spelled is not None:
            self._say(
                "type-renamed", f"the type {shown} is called {spelled} here", f"write {_TYPE_FLAG} {spelled}"
            )
            return spelled
        if wanted in self.caps.modes:
            text = f"{_TYPE_FLAG} of this binary has no {shown}: a draft model alone speculates"
            self._say("type-renamed", text, f"leave out {_TYPE_FLAG}")
            return None
        offered = self.caps.speculation_types
        close = difflib.get_close_matches(name, offered, n=1)
        advice = f"the nearest is {close[0]}" if close else f"it offers {', '.join(offered)}"
        self._say("flag-value", f"this binary has no speculation type {shown}", advice, fatal=True)
        return name

    def _stale(self, variable: Variable) -> None:
        successor = self.caps.first_of(*variable.flags)
        flag = self.caps.flag(successor) if successor is not None else None
        effect = "stops this binary" if variable.fatal else "is ignored by this binary"
        if flag is None or successor is None:
            self._say("env-stale", f"the variable {variable.name} {effect}", f"unset {variable.name}")
            return
        now = f"; the variable is {flag.env[0]} now" if flag.env else ""
        value = one_line(variable.value, _LONGEST)
        text = f"the variable {variable.name}={value} {effect}"
        self._say("env-stale", text, f"unset it and write {successor} {value}{now}")
        if not self._given(*flag.spellings):
            self.kept.append(GivenOption(successor, (variable.value,) if flag.value_count else ()))

    def _chosen(self) -> tuple[str, ...] | None:
        """Types in effect, in current names; None where nothing says."""
        names: list[str] | None = None
        given = self._given(_TYPE_FLAG)
        for option in (*(o for o in self.inherited if not given), *self.kept):
            flag = normalise(option.flag)
            if flag == _TYPE_FLAG and option.values:
                names = [*(names or []), *option.values[0].split(",")]
            elif flag == _DEFAULT_FLAG:
                names = [*(names or []), "ngram-mod"]
        if names is None:
            by_draft = self._has_draft() and (
                self.caps.type_name("draft-simple") is None or self._speculates_by_draft()
            )
            return ("draft-simple",) if by_draft else None
        return tuple(current_type(n) for n in names if n.strip() not in {"", "none"})

    def _speculates_by_draft(self) -> bool:
        return self.caps.version.build in DRAFT_ALONE

    def _has_draft(self) -> bool:
        return any(normalise(o.flag) in DRAFT_SOURCES for o in (*self.kept, *self.inherited))

    def _given(self, *spellings: str) -> bool:
        return any(normalise(option.flag) in spellings for option in self.kept)

    def _number(self, *spellings: str) -> int | None:
        """The last whole number given for a flag, else what help states as its default."""
        values = [
            o.values[0] for o in (*self.inherited, *self.kept) if normalise(o.flag) in spellings and o.values
        ]
        flag = self.caps.flag(self.caps.first_of(*spellings) or "")
        text = values[-1] if values else (flag.default if flag is not None else None) or ""
        return int(text) if _WHOLE.fullmatch(text) and len(text) < 10 else None

    def _least(self, least: tuple[str, ...], longest: tuple[str, ...]) -> None:
        low, high = self._number(*least), self._number(*longest)
        flag = self.caps.first_of(*least)
        if low is None or high is None or flag is None or low <= high:
            return
        self._say(
            "n-min-above-n-max",
            f"drafts under {low} tokens are thrown away, and none is longer than {high}: nothing is speculated",
            f"write {flag} 0",
        )
        self.kept = [o for o in self.kept if normalise(o.flag) not in least]
        self.kept.append(GivenOption(flag, ("0",)))

    def _turn_off(self, drafting: list[str]) -> None:
        """Take the drafting types out, and all that only they use."""
        draft_flags = {spelling for group in ALIASES for spelling in group}
        rest = [t for t in self._chosen() or () if t not in drafting]
        self.kept = [o for o in self.kept if normalise(o.flag) not in draft_flags | {_TYPE_FLAG}]
        if rest:
            self.kept.append(GivenOption(_TYPE_FLAG, (",".join(self.caps.type_name(t) or t for t in rest),)))


def _bounds(flag: Flag) -> tuple[int, int] | None:
    return next((_BOUNDS[name] for name in flag.spellings if name in _BOUNDS), None)


def _within(value: str, bounds: tuple[int, int], flag: Flag) -> bool:
    """Whether a value lies between the bounds, or is one that the help gives a meaning of its own."""
    if f"{value} = " in flag.text:
        return True
    return _INTEGER.fullmatch(value) is not None and bounds[0] <= int(value) <= bounds[1]


def _outside(value: str, flag: Flag) -> bool:
    """Whether a value is none of those that help lists; switches take further words, and types are read apart."""
    if not flag.values or _TYPE_FLAG in flag.spellings:
        return False
    if _SWITCH_WORDS.intersection(flag.values) and value in _SWITCH_WORDS:
        return False
    return value not in flag.values and not set(value.split(",")) <= set(flag.values)
