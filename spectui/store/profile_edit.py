"""TuningProfile -> TOML text, either new or as the smallest change of a text that people wrote.

Comments, order and spelling of an existing file are kept, and only what differs is touched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from spectui.core.profile import TuningProfile
from spectui.core.secrets import is_secret
from spectui.errors import ProfileError
from spectui.store import path_values
from spectui.store.fields import FieldDoc, SectionDoc, describe_sections
from spectui.store.profile_text import parse

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Item

_LONE_NEWLINE = re.compile(r"(?<!\r)\n")


def refuse_secrets(profile: TuningProfile, *, source: str) -> None:
    """Raise ProfileError when saving would write a key or a password into the file."""
    for argument in profile.server.extra_args:
        name = argument.partition("=")[0]
        if is_secret(argument):
            raise ProfileError(
                f"{source}: server.extra_args: {name} would store a secret; put it into the environment"
                " (server.api_key_env names the variable of an API key)"
            )
    for key, url in (("server.url", profile.server.url), ("baseline.url", profile.baseline.url)):
        if url and "@" in urlsplit(url if "//" in url else f"//{url}").netloc:
            raise ProfileError(
                f"{source}: {key}: would store a user name or password; take it out of the address"
            )


def new_text(profile: TuningProfile) -> str:
    """A file that says what differs from the defaults, with a comment for each key."""
    import tomlkit  # noqa: PLC0415  needed only where something is saved

    document = tomlkit.document()
    document.add(tomlkit.comment("A spectui profile. Keys that are left out have their defaults."))
    for section in describe_sections():
        owner = getattr(profile, section.name) if section.name else profile
        shown = [doc for doc in section.fields if getattr(owner, doc.name) != doc.default]
        if not section.name:
            document.add("schema_version", tomlkit.item(profile.schema_version))
            shown = [doc for doc in shown if doc.name != "schema_version"]
        elif not shown:
            continue
        table: Any = document if not section.name else tomlkit.table()
        for doc in shown:
            if doc.doc and section.name:
                table.add(tomlkit.comment(doc.doc.replace("None", "leaving it out")))
            table.add(doc.name, _item(doc, getattr(owner, doc.name)))
        if section.name:
            document.add(tomlkit.nl())
            document.add(section.name, table)
    return document.as_string()


def edited_text(text: str, profile: TuningProfile, *, source: str, folder: Path) -> str:
    """`text`, a valid profile, changed as little as makes it say `profile`, whose file names are absolute.

    Raises ProfileError when the text is laid out in a way that cannot be changed in place.
    """
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        for section in describe_sections():
            _edit_section(
                document, section, getattr(profile, section.name) if section.name else profile, folder
            )
        changed = document.as_string()
    except TOMLKitError as error:
        raise ProfileError(f"{source}: cannot be changed in place; save under another name") from error
    if "\r\n" in text and not _LONE_NEWLINE.search(text):
        changed = _LONE_NEWLINE.sub("\r\n", changed)
    if parse(changed, source=source, folder=folder) != profile:
        raise ProfileError(f"{source}: cannot be changed in place; save under another name")
    return changed


def _edit_section(document: TOMLDocument, section: SectionDoc, owner: object, folder: Path) -> None:
    import tomlkit  # noqa: PLC0415

    table: Any = document if not section.name else document.get(section.name)
    for doc in section.fields:
        value = getattr(owner, doc.name)
        if table is not None and doc.name in table:
            _edit_value(table, doc, value, folder)
        elif value != doc.default:
            if table is None:
                document.add(section.name, tomlkit.table())
                table = document[section.name]
            _add(table, doc.name, _item(doc, value))


def _edit_value(table: Any, doc: FieldDoc, value: object, folder: Path) -> None:
    from tomlkit.items import Item  # noqa: PLC0415

    if value is None:
        del table[doc.name]
        return
    old = table[doc.name]
    if isinstance(old, Item):
        old = old.unwrap()
    meant = _meant(doc, old, folder)
    if meant == value:
        return
    item = _item(doc, value)
    if isinstance(old, list) and isinstance(value, tuple) and isinstance(meant, tuple):
        as_written = dict(zip(meant, old, strict=True))
        item = _array([as_written.get(each, _written(doc, each)) for each in value])
    table[doc.name] = item


def _meant(doc: FieldDoc, written: Any, folder: Path) -> object:
    """What a value in the file stands for."""
    values = written if isinstance(written, list) else [written]
    if doc.key in path_values.KEYS:
        values = [path_values.expand(each, key=doc.key, folder=folder) for each in values]
    return tuple(values) if isinstance(written, list) else values[0]


def _written(doc: FieldDoc, value: str) -> str:
    return path_values.written(value) if doc.key in path_values.KEYS else value


def _item(doc: FieldDoc, value: object) -> Item:
    import tomlkit  # noqa: PLC0415

    if isinstance(value, tuple):
        return _array([_written(doc, each) for each in value])
    return tomlkit.item(_written(doc, value) if isinstance(value, str) else value)


def _array(values: list[str]) -> Item:
    import tomlkit  # noqa: PLC0415

    array = tomlkit.array()
    array.extend(values)
    return array.multiline(multiline=len(values) > 1)


def _add(table: Any, name: str, item: Item) -> None:
    """Add a key behind the table's last one, ahead of comments that introduce the next section."""
    from tomlkit.items import Comment, Table, Whitespace  # noqa: PLC0415

    behind = []
    body = table.value.body if isinstance(table, Table) else []
    while body and isinstance(body[-1][1], Comment | Whitespace):
        behind.append(body.pop())
    if behind and not any(isinstance(each, Whitespace) for _, each in behind):
        # Comments that follow the keys without a gap speak of these keys.
        body.extend(reversed(behind))
        behind = []
    table[name] = item
    body.extend(reversed(behind))
