"""The headless contract: each command with --json has a model, and field names stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from spectui.cli.main import cli
from spectui.lab.reports.contract import CONTRACT

FIELDS = Path(__file__).parents[1] / "data" / "contract_fields.json"
"""Field names of every model; a name may be added here and never leaves."""


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command by its name, groups that do something on their own included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def fields_of(model: type[BaseModel]) -> dict[str, list[str]]:
    """Names of the fields of a model and of all that it holds, by the name of the model."""
    schema = model.model_json_schema()
    found = {model.__name__: sorted(schema["properties"])}
    return found | {name: sorted(part["properties"]) for name, part in schema.get("$defs", {}).items()}


def test_every_command_with_json_has_a_model() -> None:
    printing = {name for name, command in commands(cli) if any("--json" in p.opts for p in command.params)}
    assert printing == {name for name in CONTRACT if not name.endswith("--plan")}


def test_names_stay() -> None:
    kept: dict[str, list[str]] = json.loads(FIELDS.read_text("utf-8"))
    now: dict[str, list[str]] = {}
    for model in CONTRACT.values():
        now |= fields_of(model)
    missing = {name: sorted(set(names) - set(now.get(name, ()))) for name, names in kept.items()}
    assert {name: names for name, names in missing.items() if names} == {}
    assert now == kept, "new names are welcome: write them into contract_fields.json"


@pytest.mark.parametrize("command", CONTRACT)
def test_the_schema_of_each_command_is_printed(command: str) -> None:
    done = CliRunner().invoke(cli, ["schema", "--", *command.split()])
    assert done.exit_code == 0
    schema: dict[str, Any] = json.loads(done.output)
    assert list(schema["properties"]) == list(CONTRACT[command].model_fields)


def test_without_a_command_all_are_listed() -> None:
    done = CliRunner().invoke(cli, ["schema"])
    assert [line.split("  ")[0] for line in done.output.splitlines()] == list(CONTRACT)
