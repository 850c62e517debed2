"""`spectui schema`: the JSON Schema of what a command prints as JSON."""

from __future__ import annotations

import json

import click

from spectui.cli.output import write
from spectui.errors import UsageError
from spectui.lab.reports.contract import CONTRACT


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1)
def schema(command: tuple[str, ...]) -> None:
    """Print the JSON Schema of a command's JSON, such as: schema sweep --plan. Without COMMAND, list them."""
    name = " ".join(command).removeprefix("spectui ")
    if not name:
        width = max(map(len, CONTRACT))
        write("\n".join(f"{each:<{width}}  {model.__doc__}" for each, model in CONTRACT.items()))
        return
    # Commands that print JSON in one of several formats are found without naming it.
    model = CONTRACT.get(name) or CONTRACT.get(f"{name} --format json")
    if model is None:
        raise UsageError(f"schema: no command {name!r} prints JSON; there is {', '.join(CONTRACT)}")
    write(json.dumps(model.model_json_schema(), indent=2))
