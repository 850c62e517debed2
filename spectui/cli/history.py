"""The commands on kept results: list, show, compare, export and prune them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final, get_args

import click

from spectui.cli.output import JSON_OPTION, print_result
from spectui.core.text import counted
from spectui.core.views.run_list import RunSource
from spectui.errors import UsageError
from spectui.lab.reports.history import (
    compare_runs,
    comparison_table,
    comparison_to_json,
    history_table,
    is_stale,
    kept_run,
    kept_runs,
    run_table,
    run_to_json,
    runs_to_csv,
)
from spectui.store.paths import Folders
from spectui.store.records import RunFilter
from spectui.store.results import ResultStore

_AGE: Final = re.compile(r"(\d{1,6})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_RUN: Final = click.IntRange(1, 2**63 - 1)


class Age(click.ParamType[float]):
    """A length of time such as 90d -> seconds."""

    name = "AGE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds, from minutes, hours, days or weeks."""
        found = _AGE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no length of time, such as 90d, 12h or 4w", param, ctx)
        return float(int(found[1]) * _SECONDS[found[2]])


def _filtered(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which runs are wanted."""
    options = (
        click.option("--workload", help="Of this workload."),
        click.option("--mode", help="Of this mode, such as draft-simple."),
        click.option("--draft", help="With this in the draft's file name."),
        click.option("--model", help="With this in the target's file name."),
        click.option("--build", help="Of this build, such as b10434."),
        click.option(
            "--source",
            type=click.Choice(get_args(RunSource)),
            help="Measured by this command, or the dashboard.",
        ),
        click.option("--since", type=Age(), help="Started within this time, such as 7d or 12h."),
        click.option("--limit", type=click.IntRange(1, 1_000_000), help="The newest so many."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@_filtered
@JSON_OPTION
@click.pass_context
def history(ctx: click.Context, /, *, as_json: bool, **wanted: Any) -> None:
    """List the runs that were measured, the newest first."""
    if ctx.invoked_subcommand is None:
        runs = _runs(wanted)
        others = not runs and bool(_store().runs(RunFilter(limit=1)))
        print_result({"runs": runs}, as_json=as_json, table=lambda data: history_table(data, others=others))
    elif as_json or any(value is not None for value in wanted.values()):
        raise UsageError(f"options of history {ctx.invoked_subcommand} come after its name")


@history.command()
@click.argument("run", type=_RUN)
@JSON_OPTION
def show(run: int, *, as_json: bool) -> None:
    """Print everything that is kept of one run."""
    store = _store()
    found = kept_run(store, run)
    stale = is_stale(found, store.builds())
    print_result(run_to_json(found, stale=stale), as_json=as_json, table=run_table)


@history.command()
@click.argument("a", type=_RUN)
@click.argument("b", type=_RUN)
@JSON_OPTION
def compare(a: int, b: int, *, as_json: bool) -> None:
    """Say in what two runs differ."""
    store = _store()
    comparison = compare_runs(kept_run(store, a), kept_run(store, b))
    print_result(comparison_to_json(comparison, store.builds()), as_json=as_json, table=comparison_table)


@history.command()
@click.option("--format", "kind", type=click.Choice(["csv", "json"]), default="csv", show_default=True)
@_filtered
def export(*, kind: str, **wanted: Any) -> None:
    """Print every value of the runs, for a spreadsheet or a program."""
    runs = _runs(wanted)
    print_result({"runs": runs}, as_json=kind == "json", table=lambda data: runs_to_csv(data["runs"]))


@history.command()
@click.option("--keep", type=click.IntRange(0, 1_000_000), help="Keep the newest so many.")
@click.option("--older-than", type=Age(), help="Remove what began longer ago, such as 90d.")
@JSON_OPTION
def prune(*, keep: int | None, older_than: float | None, as_json: bool) -> None:
    """Remove old runs and sweeps for good, but none that goes on, or began within a day and has not ended."""
    if keep is None and older_than is None:
        raise UsageError("say what goes: --keep N, --older-than AGE such as 90d, or both")
    now = time.time()
    before = None if older_than is None else now - older_than
    runs, sweeps = _store().prune(at=now, keep=keep, before=before)
    removed = {"removed": {"runs": runs, "sweeps": sweeps}}
    print_result(removed, as_json=as_json, table=_removal)


def _runs(wanted: dict[str, Any]) -> list[dict[str, Any]]:

    since = None if wanted["since"] is None else time.time() - wanted["since"]
    store = _store()
    runs, builds = kept_runs(store, RunFilter(**{**wanted, "since": since})), store.builds()
    return [run_to_json(run, stale=is_stale(run, builds)) for run in runs]


def _store() -> ResultStore:

    return ResultStore.default(Folders.default())


def _removal(data: dict[str, Any]) -> str:

    removed = data["removed"]
    return f"removed {counted(removed['runs'], 'run')} and {counted(removed['sweeps'], 'sweep')}"
