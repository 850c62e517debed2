"""The commands on sweeps: measure a grid of settings, and write what came out in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from spectui.cli.options import Duration, Numbers, Reals, listed
from spectui.cli.output import JSON_OPTION, fail, print_result, say, write
from spectui.cli.targets import load_profile, target_of, workloads_of
from spectui.core.profile import TuningProfile
from spectui.core.sweep.defaults import DRAFT_LENGTHS, LENGTHS, LOOKUPS, P_MINS, REQUESTS
from spectui.core.text import one_line
from spectui.errors import ServerError, UsageError
from spectui.lab.experiments.sweep import Sweeper
from spectui.lab.experiments.sweep_order import expected_pace, order_for, require_sweepable
from spectui.lab.experiments.sweep_record import Found, SweepOrder
from spectui.lab.reports import export as lab
from spectui.lab.reports.sweep import plan_table, plan_to_json, sweep_table, sweep_to_json
from spectui.lab.run_to_end import run_to_end
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from spectui.store.results import ResultStore

_LONGEST_NUMBER: Final = 19
"""Digits that no number of a sweep has."""


@click.command()
@click.argument("profile", required=False)
@click.option("--workload", help="One or more workloads, comma separated; the profile's own without.")
@click.option(
    "--k", "ks", type=Numbers(1, 64), default=listed(DRAFT_LENGTHS), show_default=True, help="Draft lengths."
)
@click.option(
    "--p-min", "p_mins", type=Reals(0, 1), default=listed(P_MINS), show_default=True, help="Thresholds."
)
@click.option("--mode", help="Modes, comma separated.  [default: the profile's, and ngram-simple]")
@click.option("--temperature", "temperatures", type=Reals(0, 5), help="The profile's own without.")
@click.option("--draft", "drafts", multiple=True, type=click.Path(), help="Draft file; may be repeated.")
@click.option("--lookup", "lookups", type=Numbers(1, 1024), default=listed(LOOKUPS), show_default=True)
@click.option("--length", "lengths", type=Numbers(1, 1024), default=listed(LENGTHS), show_default=True)
@click.option("--budget", type=Duration(), help="Time for everything, such as 90s, 20m or 1h30m.")
@click.option("--runs", type=click.IntRange(2, 10_000), default=REQUESTS, show_default=True, help="Per cell.")
@click.option("--tokens", type=click.IntRange(2, 100_000), help="Tokens per request at most.")
@click.option("--exhaustive", is_flag=True, help="Measure every cell.")
@click.option("--plan", "only_plan", is_flag=True, help="Print cells, server starts and minutes, and end.")
@click.option("--resume", type=click.IntRange(1, 2**63 - 1), metavar="SWEEP", help="Go on with that sweep.")
@click.option("--fresh", is_flag=True, help="Begin anew where the same sweep is unfinished.")
@JSON_OPTION
@click.pass_context
def sweep(ctx: click.Context, /, *, profile: str | None, as_json: bool, **options: Any) -> None:
    """Find the best setting of each workload: predict what can be predicted, measure where it may hide.

    An unfinished sweep with the same options is resumed.
    """
    launcher, baselines = Launcher(say=say), BaselineStore.default(Folders.default())
    results = ResultStore.default(Folders.default())
    if (options["resume"] is None) == (profile is None):
        raise UsageError("give a profile, or --resume with the number of a sweep")
    if options["resume"] is not None:
        order = _kept(ctx, options["resume"])
    else:
        order = run_to_end(_order(str(profile), options, launcher))
    if options["only_plan"]:
        run_to_end(require_sweepable(order, launcher, Folders.default().cache))
        planned = plan_to_json(order, expected_pace(order.profile, baselines))
        print_result(planned, as_json=as_json, table=plan_table)
        return
    sweeper = Sweeper(
        order,
        launcher=launcher,
        results=results,
        baselines=baselines,
        progress=say,
        cache=Folders.default().cache,
    )
    try:
        found = run_to_end(
            sweeper.run(budget=options["budget"], fresh=options["fresh"], number=options["resume"])
        )
    except KeyboardInterrupt:
        _say_kept(sweeper.found.number, fresh=options["fresh"])
        raise
    except ServerError as error:
        _say_kept(sweeper.found.number, fresh=options["fresh"])
        fail(error, status=1)
    print_result(sweep_to_json(found), as_json=as_json, table=sweep_table)
    failed = next(iter(found.failures.items()), None)
    if failed is not None:
        fail(ServerError(": ".join(one_line(text, 200) for text in failed)), status=1)


@click.command()
@click.argument("source", metavar="PROFILE|SWEEP")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["shell", "preset", "llama-swap", "csv", "json", "markdown"]),
    required=True,
)
@click.argument("file", required=False, type=click.Path())
def export(source: str, *, kind: str, file: str | None) -> None:
    """Write a profile or what a sweep recommends for other programs, or a sweep's numbers.

    Without FILE it goes to stdout. Secrets are never written.
    """
    store = ResultStore.default(Folders.default())
    profile: TuningProfile | None = None
    found: Found | None
    if source.isdecimal() and len(source) < _LONGEST_NUMBER and not Path(source).exists():
        found = lab.kept_sweep(store, int(source))
    else:
        profile = load_profile(source)
        found = lab.newest_sweep(store, profile)
    other = lab.changed_since(kind, profile=profile, found=found)
    if other is not None:
        say(f"these results are stale: {one_line(other)} is another one than they were measured with")
    text = run_to_end(lab.export(kind, profile=profile, found=found, launcher=Launcher(say=say)))
    if file is None:
        write(text, newline=False)
    else:
        lab.write(file, text, executable=kind == "shell")


def _say_kept(number: int | None, *, fresh: bool) -> None:
    """How a sweep that ended early goes on; with --fresh the same command would begin anew."""
    if number is not None:
        how = "" if fresh else "the same command, or "
        say(f"sweep {number} is kept: {how}--resume {number}{',' if how else ''} goes on")


def _kept(ctx: click.Context, number: int) -> SweepOrder:
    """The order of a kept sweep; options that say what to sweep would contradict it."""
    allowed = {"resume", "budget", "as_json", "profile", "only_plan"}
    given = [
        name
        for name in ctx.params
        if name not in allowed and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError("--resume goes on with what that sweep measures: leave the other options out")
    return lab.kept_sweep(ResultStore.default(Folders.default()), number).order


async def _order(name: str, options: dict[str, Any], launcher: Launcher) -> SweepOrder:

    profile = target_of(name)
    if options["tokens"] is not None:
        profile = profile.with_traffic(max_tokens=options["tokens"])
    return await order_for(
        profile,
        launcher,
        workloads=workloads_of(options["workload"], profile),
        modes=None if options["mode"] is None else tuple(dict.fromkeys(options["mode"].split(","))),
        temperatures=options["temperatures"],
        ks=options["ks"],
        p_mins=options["p_mins"],
        drafts=options["drafts"],
        lookups=options["lookups"],
        lengths=options["lengths"],
        requests=options["runs"],
        exhaustive=options["exhaustive"],
    )
