"""`spectui schema`: the JSON Schema of what commands print with `--json`."""

from __future__ import annotations

import json

import click

from spectui.cli.output import write
from spectui.errors import UsageError
from spectui.lab.reports.contract import CONTRACT


@click.command()
@click.argument("command", nargs=-1)
def schema(command: tuple[str, ...]) -> None:
    """Print the JSON Schema of a command's --json, such as: schema history show. Without COMMAND, what there is."""
    name = " ".join(command).removeprefix("spectui ")
    if not name:
        width = max(map(len, CONTRACT))
        lines = (f"{each:<{width}}  {', '.join(model.model_fields)}" for each, model in CONTRACT.items())
        write("\n".join(lines))
        return
    # --plan stands behind "--", or is an option of this command.
    model = CONTRACT.get(name) or CONTRACT.get(name.replace(" plan", " --plan"))
    if model is None:
        raise UsageError(f"schema: no command {name!r} prints JSON; there is {', '.join(CONTRACT)}")
    write(json.dumps(model.model_json_schema(), indent=2))
