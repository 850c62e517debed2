"""What a profile may hold, in words: read from the dataclasses of core.profile, so that no text can disagree.

Help screens need these words without a file.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le, MinLen

from spectui.core import profile as layout

_NUMBERS = {int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDoc:
    """One setting of a profile."""

    section: str
    """The TOML section it stands in; empty for the top level."""
    name: str
    allowed: str
    """What may stand there, in words, such as "a whole number from 1 to 64"."""
    optional: bool
    """Whether the key may be left out for "not set" (None)."""
    default: object
    doc: str
    """What it does; empty where the sources are not installed."""

    @property
    def key(self) -> str:
        """`section.name`, or the name alone at the top level."""
        return f"{self.section}.{self.name}" if self.section else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDoc:
    """One section of a profile with its settings, in the order of the dataclass."""

    name: str
    doc: str
    fields: tuple[FieldDoc, ...]


def describe_fields() -> tuple[FieldDoc, ...]:
    """Every setting of a profile, in the order in which a file lists them."""
    return tuple(doc for section in describe_sections() for doc in section.fields)


@cache
def describe_sections() -> tuple[SectionDoc, ...]:
    """The top level (named "") and every section of a profile."""
    docs = _docs()
    hints = get_type_hints(layout.TuningProfile, include_extras=True)
    top = []
    sections = []
    for each in fields(layout.TuningProfile):
        kind = hints[each.name]
        if is_dataclass(kind) and isinstance(kind, type):
            sections.append(
                SectionDoc(
                    name=each.name,
                    doc=docs.get((kind.__name__, ""), ""),
                    fields=tuple(_describe(each.name, kind, docs)),
                )
            )
        else:
            top.append(_field("", each, kind, docs.get(("TuningProfile", each.name), "")))
    return (SectionDoc(name="", doc=docs.get(("TuningProfile", ""), ""), fields=tuple(top)), *sections)


def _describe(section: str, owner: type, docs: dict[tuple[str, str], str]) -> Iterator[FieldDoc]:
    hints = get_type_hints(owner, include_extras=True)
    for each in fields(owner):
        yield _field(section, each, hints[each.name], docs.get((owner.__name__, each.name), ""))


def _field(section: str, each: Field[Any], kind: object, doc: str) -> FieldDoc:
    default = each.default_factory() if each.default_factory is not MISSING else each.default
    return FieldDoc(
        section=section,
        name=each.name,
        allowed=_words(kind),
        optional=type(None) in get_args(kind),
        default=default,
        doc=doc,
    )


def _words(kind: object) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _with_bounds(parts[0], parts[1:])
    if origin is Literal:
        return _either([f'"{part}"' if isinstance(part, str) else str(part) for part in parts])
    if origin in {Union, types.UnionType}:
        return _either([_words(part) for part in parts if part is not type(None)])
    if origin is tuple:
        return "a list of texts"
    if kind is bool:
        return "true or false"
    return _NUMBERS[kind] if isinstance(kind, type) and kind in _NUMBERS else "text"


def _with_bounds(kind: object, marks: tuple[object, ...]) -> str:
    words = _words(kind)
    low = next((mark.ge for mark in marks if isinstance(mark, Ge)), None)
    high = next((mark.le for mark in marks if isinstance(mark, Le)), None)
    if any(isinstance(mark, MinLen) for mark in marks):
        return f"{words} that is not empty"
    if low is not None and high is not None:
        return f"{words} from {low} to {high}"
    return f"{words} of at least {low}" if low is not None else words


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _docs() -> dict[tuple[str, str], str]:
    """(class, field) -> the string below the field; (class, "") -> the class's own first line."""
    import inspect  # noqa: PLC0415  wanted only where words are

    try:
        tree = ast.parse(inspect.getsource(layout))
    except OSError:
        return {}
    found: dict[tuple[str, str], str] = {}
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        found[owner.name, ""] = (ast.get_docstring(owner) or "").partition("\n")[0]
        for node, below in zip(owner.body, owner.body[1:], strict=False):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[owner.name, node.target.id] = " ".join(str(below.value.value).split())
    return found
