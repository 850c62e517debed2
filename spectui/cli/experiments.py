"""Commands that run experiments on servers, registered on the group of `cli`.

Apart from the other commands, which examine one thing each; like them they load the lab when needed.
"""

from __future__ import annotations

import os
from typing import Final

import click

from spectui.cli.options import Duration, Numbers, folders, target_of, with_baseline, workloads_of
from spectui.cli.output import JSON_OPTION, fail, print_result, say
from spectui.core.secrets import api_key_of
from spectui.errors import UsageError

_FEWEST: Final = 8
"""Prompts that the smallest blocks take for an interval; larger ones take more, which the run then plans."""


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--workload", default=None, help="One or more workloads, comma separated.")
@click.option(
    "--runs",
    type=click.IntRange(_FEWEST, 10_000),
    default=24,
    show_default=True,
    help="Prompts per workload at most, but four blocks; a clear result ends it earlier.",
)
@click.option("--budget", type=Duration(), help="Time for everything, such as 90s, 10m or 1h30m.")
@click.option("--tokens", type=click.IntRange(2, 100_000), help="Tokens per request at most.")
@JSON_OPTION
def ab(
    a: str,
    b: str,
    *,
    workload: str | None,
    runs: int,
    budget: float | None,
    tokens: int | None,
    as_json: bool,
) -> None:
    """Compare two profiles or servers on the same prompts, interleaved: which is faster, and is it sure.

    Both arms get A's traffic settings and seeds. At temperature 0 their outputs are compared as well.
    """
    from spectui.lab.experiments.ab import AbOrder, AbRun  # noqa: PLC0415
    from spectui.lab.measuring.recorder import Recorder  # noqa: PLC0415
    from spectui.lab.reports.ab import ab_table, ab_to_json  # noqa: PLC0415
    from spectui.lab.run_to_end import run_to_end  # noqa: PLC0415
    from spectui.lab.servers.launcher import Launcher  # noqa: PLC0415
    from spectui.store.results import ResultStore  # noqa: PLC0415

    arms = [target_of(a), target_of(b)]
    names = workloads_of(workload, arms[0])
    if tokens is not None:
        arms = [arm.with_traffic(max_tokens=tokens) for arm in arms]
    experiment = AbRun(
        arms[0],
        arms[1],
        launcher=Launcher(say=say),
        api_keys=(api_key_of(arms[0], os.environ), api_key_of(arms[1], os.environ)),
        progress=say,
        recorder=Recorder(ResultStore.default(folders()), say=say),
    )
    result = run_to_end(experiment.run(AbOrder(workloads=names, pairs=runs, budget=budget)))
    print_result(ab_to_json(result), as_json=as_json, table=ab_table)
    if result.failure is not None:
        fail(result.failure, status=1)


@click.command()
@click.argument("target", metavar="PROFILE|URL")
@click.option("--levels", type=Numbers(1, 64), default="1,2,4,8", show_default=True, help="Requests at once.")
@click.option("--workload", help="One workload; the profile's own without.")
@click.option("--tokens", type=click.IntRange(2, 100_000), help="Tokens per request at most.")
@click.option(
    "--runs", type=click.IntRange(1, 10_000), default=8, show_default=True, help="Requests per level."
)
@click.option(
    "--baseline", metavar="URL", help="For a server of somebody else: a second one, without speculation."
)
@JSON_OPTION
def concurrency(
    target: str,
    *,
    levels: tuple[int, ...],
    workload: str | None,
    tokens: int | None,
    runs: int,
    baseline: str | None,
    as_json: bool,
) -> None:
    """Measure how the bet changes with the number of requests at once."""
    from spectui.lab.experiments import concurrency as lab  # noqa: PLC0415
    from spectui.lab.measuring.recorder import Recorder  # noqa: PLC0415
    from spectui.lab.reports.concurrency import levels_table, levels_to_json  # noqa: PLC0415
    from spectui.lab.run_to_end import run_to_end  # noqa: PLC0415
    from spectui.lab.servers.launcher import Launcher  # noqa: PLC0415
    from spectui.store.results import ResultStore  # noqa: PLC0415

    profile = target_of(target)
    names = workloads_of(workload, profile)
    if len(names) > 1:
        raise UsageError("--workload: one at a time, each makes a table of its own")
    if baseline is not None:
        profile = with_baseline(profile, baseline)
    profile = profile.with_traffic(workload=names[0], **({} if tokens is None else {"max_tokens": tokens}))
    sweep = lab.ConcurrencySweep(
        launcher=Launcher(say=say),
        api_key=api_key_of(profile, os.environ),
        progress=say,
        recorder=Recorder(ResultStore.default(folders()), say=say),
    )
    result = run_to_end(sweep.run(profile, levels, requests=runs))
    print_result(levels_to_json(result), as_json=as_json, table=levels_table)
    if result.failure is not None:
        fail(result.failure, status=1)
