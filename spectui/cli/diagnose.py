"""The commands that need no server: predict a bet, explain one from what is known of it, check a command line."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from spectui.cli.options import Numbers, Real
from spectui.cli.output import JSON_OPTION, print_result
from spectui.errors import UsageError
from spectui.lab.diagnose import command_check
from spectui.lab.diagnose import explain as lab
from spectui.lab.diagnose.predict import prediction, prediction_table, read_v

_SPEED: Final = Real(1e-3, 1e7)
_TOKENS: Final = click.IntRange(0, 10**12)


@click.command()
@click.option("--alpha", type=Real(0, 1), required=True, help="Per-token acceptance.")
@click.option("--c", type=Real(0, 1000), required=True, help="Cost of a draft token in plain steps.")
@click.option("--k", "lengths", type=Numbers(1, 64), default="1,2,4,8,16", show_default=True)
@click.option("--v", "v_file", type=click.Path(), help='JSON file with V(n) in plain steps: {"2": 1.07, ...}')
@click.option("--u", type=Real(0, 1000), help="Fixed rest of a pass in plain steps.")
@JSON_OPTION
def predict(
    alpha: float, c: float, lengths: tuple[int, ...], v_file: str | None, u: float | None, *, as_json: bool
) -> None:
    """Predict the speedup by draft length, without a server."""
    result = prediction(alpha, c, lengths, v=read_v(v_file) if v_file is not None else None, u=u)
    print_result(result, as_json=as_json, table=prediction_table)


@click.command()
@click.option("--baseline", type=_SPEED, metavar="TPS", help="Plain speed on the same prompts.")
@click.option("--measured", type=_SPEED, metavar="TPS", help="Speed with speculation.")
@click.option("--k", "draft_length", type=click.IntRange(1, 1024), help="Draft length.")
@click.option("--ratio", type=Real(0, 1), help="Acceptance ratio, as servers print it.")
@click.option("--p-min", type=Real(0, 1), help="p_min that it ran with.  [default: 0, or the log's]")
@click.option("--c", type=Real(0, 1000), help="Cost of a draft token in plain steps.")
@click.option("--drafted", type=_TOKENS, help="Drafted tokens in all.")
@click.option("--accepted", type=_TOKENS, help="Accepted tokens in all.")
@click.option("--predicted", type=_TOKENS, help="Generated tokens in all.")
@click.option(
    "--slots", type=click.IntRange(1, 256), default=1, show_default=True, help="Slots busy at once."
)
@click.option("--v", "v_file", type=click.Path(), help='JSON file with V(n) in plain steps: {"2": 1.07, ...}')
@click.option("--log", type=click.Path(), metavar="FILE", help="A server's log, of any build.")
@click.option("--passes", type=click.Path(), metavar="FILE", help="Passes, one JSON object per line.")
@JSON_OPTION
def explain(
    *, v_file: str | None, log: str | None, passes: str | None, as_json: bool, **numbers: Any
) -> None:
    """Explain why a bet wins or loses, from numbers, a server's log or a file of passes."""
    if log is not None and passes is not None:
        raise UsageError("give --log or --passes, not both")
    given = lab.Given(v=read_v(v_file) if v_file is not None else {}, **numbers)
    if log is not None:
        result = lab.explain_log(given, log)
    elif passes is not None:
        result = lab.explain_passes(given, passes)
    else:
        result = lab.explain_numbers(given)
    if result.note:
        click.echo(result.note, err=True)
    print_result(lab.explanation_to_json(result), as_json=as_json, table=lab.explanation_table)


@click.command()
@click.argument("command")
@click.option("--server", type=click.Path(), metavar="BINARY", help="The llama-server it is meant for.")
@click.option("--help-text", type=click.Path(), metavar="FILE", help="Saved output of llama-server --help.")
@JSON_OPTION
def check(command: str, *, server: str | None, help_text: str | None, as_json: bool) -> None:
    """Check a pasted llama-server command line, and print it corrected."""
    checked, ok = command_check.check(command, server=server, help_text=help_text, environ=os.environ)
    print_result(
        command_check.check_to_json(checked, ok=ok), as_json=as_json, table=command_check.check_table
    )
    if not ok:
        sys.exit(1)
