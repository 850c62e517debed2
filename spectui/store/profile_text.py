"""TOML text -> TuningProfile: the one gate where a profile enters, with one-line errors that name the key.

A pure function of a text and the folder it lies in: `profiles` knows files and names, `profile_edit` writes.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spectui.core.profile import SCHEMA_VERSION, TuningProfile
from spectui.errors import ProfileError
from spectui.store import path_values
from spectui.store.fields import FieldDoc, describe_fields, describe_sections

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLACE: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)\Z"
)
_NEVER_SHOWN: Final = frozenset({"server.api_key_env", "server.extra_args", "server.url", "baseline.url"})
"""Settings whose values can hold a secret, so that messages do not repeat them."""


def parse(text: str, *, source: str, folder: Path) -> TuningProfile:
    """The profile that `text` describes; file names are resolved against `folder`, which is absolute.

    Raises ProfileError, one line that begins with `source` and names the key and what it may hold.
    """
    data = _read_toml(text, source)
    _check_version(data, source)
    profile = _validate(data, source)
    _check_values(profile, source)
    return _resolve(profile, source, lambda path, key: path_values.expand(path, key=key, folder=folder))


def check(profile: TuningProfile, *, source: str) -> TuningProfile:
    """The same profile with its file names made absolute, if a file could hold it; raises ProfileError if not."""
    _check_values(profile, source)
    valid = _validate(asdict(profile), source)
    return _resolve(valid, source, lambda path, key: path_values.absolute(path, key=key))


def one_line(text: str, limit: int = 200) -> str:
    """Text fit for one line of a terminal: no control characters, white space collapsed, cut at `limit`."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"


def _read_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ProfileError(f"{source}: not a profile: nested too deeply") from error
    except ValueError as error:
        raise ProfileError(f"{source}: {_syntax(str(error), text)}") from error


def _syntax(message: str, text: str) -> str:
    """tomllib's words, with the place first."""
    found = _PLACE.match(message)
    what = one_line(found["what"] if found else message)
    hint = " (text stands in quotes)" if what == "Invalid value" else ""
    if found is None:
        return f"not TOML: {what}"
    lines = text.split("\n")
    line = found["line"] or str(len(lines))
    column = found["column"] or str(len(lines[-1]) + 1)
    return f"line {line}, column {column}: not TOML: {what}{hint}"


def _check_version(data: Mapping[str, Any], source: str) -> None:
    version = data.get("schema_version", SCHEMA_VERSION)
    if type(version) is int and version > SCHEMA_VERSION:
        raise ProfileError(
            f"{source}: schema_version: {version} is newer than this spectui reads"
            f" ({SCHEMA_VERSION}); update spectui"
        )
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ProfileError(
            f"{source}: schema_version: {_shown('schema_version', version)} is not allowed; {SCHEMA_VERSION}"
        )


@cache
def _adapter() -> TypeAdapter[TuningProfile]:
    from pydantic import TypeAdapter  # noqa: PLC0415  the dashboard's first frame needs no validator

    return TypeAdapter(TuningProfile)


def _validate(data: Mapping[str, Any], source: str) -> TuningProfile:
    from pydantic import ValidationError  # noqa: PLC0415

    # By way of JSON, because strict validation of Python values takes no list for a tuple. A date becomes a list
    # of lists, which no setting takes.
    try:
        as_json = json.dumps(data, default=lambda _: [[]])
        return _adapter().validate_json(as_json, strict=True)
    except RecursionError as error:
        raise ProfileError(f"{source}: not a profile: nested too deeply") from error
    except ValidationError as error:
        raise ProfileError(f"{source}: {_explain(error)}") from error


def _check_values(profile: TuningProfile, source: str) -> None:
    for doc in describe_fields():
        problem = _beyond_types(doc, _value(profile, doc))
        if problem:
            raise ProfileError(f"{source}: {doc.key}: {problem}")


def _beyond_types(doc: FieldDoc, value: object) -> str:
    """What the annotations cannot say; empty when there is nothing wrong."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not allowed; {doc.allowed}"
    if value == "" and doc.optional:
        return "is empty; leave the key out instead"
    texts = value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for text in texts for c in text):
        return "holds a character that cannot be stored (NUL or a byte that is not UTF-8)"
    if doc.key in path_values.KEYS and not all(texts):
        return "holds an empty file name"
    if doc.key == "server.api_key_env" and value is not None and not _ENVIRONMENT_NAME.match(str(value)):
        return "not the name of an environment variable; the key itself is never stored"
    return ""


def _resolve(profile: TuningProfile, source: str, change: Callable[[str, str], str]) -> TuningProfile:
    """Copy with every file name changed."""
    changed: dict[str, dict[str, Any]] = {}
    for doc in describe_fields():
        value = _value(profile, doc)
        if doc.key not in path_values.KEYS or not value:
            continue
        try:
            changed.setdefault(doc.section, {})[doc.name] = (
                change(value, doc.key)
                if isinstance(value, str)
                else tuple(change(each, doc.key) for each in value)
            )
        except path_values.PathValueError as error:
            raise ProfileError(f"{source}: {doc.key}: {error}") from error
    sections = {name: replace(getattr(profile, name), **values) for name, values in changed.items()}
    return replace(profile, **sections)


def _value(profile: TuningProfile, doc: FieldDoc) -> Any:
    return getattr(getattr(profile, doc.section) if doc.section else profile, doc.name)


def _explain(error: ValidationError) -> str:
    """The first thing wrong, and how many more there are."""
    found: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False):
        path = [str(part) for part in each["loc"][:2]]
        if not path:
            return f"not a profile: {one_line(each['msg'])}"
        key = ".".join(path)
        if key not in found:
            found[key] = (
                _unknown(path)
                if each["type"] == "unexpected_keyword_argument"
                else _wrong(path, each["input"])
            )
    first, *more = [f"{one_line(key, 80)}: {words}" for key, words in found.items()]
    return first + (f" (and {len(more)} more)" if more else "")


def _wrong(path: list[str], value: object) -> str:
    key = ".".join(path)
    doc = next((doc for doc in describe_fields() if doc.key == key), None)
    if doc is None:
        return f"must be a section that begins with [{path[0]}]"
    return f"{_shown(key, value)} is not allowed; {doc.allowed}"


def _unknown(path: list[str]) -> str:
    """What an unknown key may have been meant as; its value is not repeated, it may be a secret."""
    sections = {section.name: [doc.name for doc in section.fields] for section in describe_sections()}
    section, name = ("", path[0]) if len(path) == 1 else (path[0], path[1])
    here = sections[section] + ([each for each in sections if each] if not section else [])
    elsewhere = next((other for other, names in sections.items() if other != section and name in names), None)
    if elsewhere is not None:
        return f"unknown key; it belongs {f'into [{elsewhere}]' if elsewhere else 'above the first section'}"
    near = difflib.get_close_matches(name.lower().replace("-", "_"), here, n=1)
    if near:
        return f"unknown key; did you mean {near[0]}?"
    return f"unknown key; {f'[{section}]' if section else 'a profile'} has {', '.join(here)}"


def _shown(key: str, value: object) -> str:
    """A wrong value as the file may have it, short; what can hold a secret or is long is not repeated."""
    if isinstance(value, list | dict) or key in _NEVER_SHOWN:
        return "this value"
    return one_line(json.dumps(value, ensure_ascii=False, default=str), 40)
