"""`spectui doctor`: what is wrong with a profile or a server."""

from __future__ import annotations

import os
import sys

import click

from spectui.cli.output import JSON_OPTION, print_result, say
from spectui.cli.targets import target_of
from spectui.core.secrets import api_key_of, key_variable_of
from spectui.lab.diagnose.doctor import Surroundings, diagnosis_table, diagnosis_to_json, examine
from spectui.lab.run_to_end import run_to_end
from spectui.store.paths import Folders


@click.command()
@click.argument("target", metavar="PROFILE|URL")
@JSON_OPTION
def doctor(target: str, *, as_json: bool) -> None:
    """Say what is wrong with a profile before its server starts, or with a server that runs."""
    profile = target_of(target)
    around = Surroundings(
        environ=os.environ,
        cache=Folders.default().cache,
        api_key=api_key_of(profile, os.environ),
        key_variable=key_variable_of(profile),
        say=say,
    )
    diagnosis = run_to_end(examine(profile, around))
    print_result(diagnosis_to_json(diagnosis), as_json=as_json, table=diagnosis_table)
    if not diagnosis.ok:
        sys.exit(1)
