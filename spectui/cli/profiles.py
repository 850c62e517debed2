"""The commands on profiles: list and show them, and say where they lie."""

from __future__ import annotations

from typing import Any

import click

from spectui.cli.output import JSON_OPTION, print_result, write
from spectui.lab.reports.contract import ProfileJson
from spectui.lab.reports.contract_types import contract_values
from spectui.lab.reports.text import columns
from spectui.store.paths import Folders
from spectui.store.profiles import list_profiles, load


@click.group()
def profiles() -> None:
    """List and show profiles."""


@profiles.command(name="list")
@JSON_OPTION
def list_(*, as_json: bool) -> None:
    """List saved and shipped profiles."""
    entries = [
        contract_values(ProfileJson, e, shipped=e.builtin, path=str(e.path))
        for e in list_profiles(Folders.default())
    ]
    print_result({"profiles": entries}, as_json=as_json, table=_profile_table)


@profiles.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a profile's file."""
    write(load(name, Folders.default()).path.read_text("utf-8"), newline=False)


@profiles.command()
@click.argument("name", required=False)
def path(name: str | None) -> None:
    """Print the folder of the user's profiles, or the file of one."""
    write(str(load(name, Folders.default()).path if name else Folders.default().profiles))


def _profile_table(data: dict[str, Any]) -> str:
    rows = [
        (p["name"], "shipped" if p["shipped"] else "own", p["problem"] or p["description"])
        for p in data["profiles"]
    ]
    return columns(("profile", "", "description"), rows)
