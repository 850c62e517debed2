"""The commands that send test traffic to servers: measure and probe one, compare two, and load one step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import click

from spectui.cli.options import Duration, Numbers, Real
from spectui.cli.output import JSON_OPTION, fail, print_result, say
from spectui.cli.targets import target_of, with_baseline, workloads_of
from spectui.core.profile import TuningProfile
from spectui.core.secrets import api_key_of
from spectui.errors import UsageError
from spectui.lab.experiments.ab import AbOrder, AbRun
from spectui.lab.experiments.concurrency import ConcurrencySweep
from spectui.lab.experiments.measure import Measurer, Order
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.reports.ab import ab_table, ab_to_json
from spectui.lab.reports.concurrency import levels_table, levels_to_json
from spectui.lab.reports.run_json import measurement_to_json, probe_to_json
from spectui.lab.reports.text import measurement_table, probe_table
from spectui.lab.run_to_end import run_to_end
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from spectui.store.results import ResultStore

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
        recorder=Recorder(ResultStore.default(Folders.default()), say=say),
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
    profile = target_of(target)
    names = workloads_of(workload, profile)
    if len(names) > 1:
        raise UsageError("--workload: one at a time, each makes a table of its own")
    if baseline is not None:
        profile = with_baseline(profile, baseline)
    profile = profile.with_traffic(workload=names[0], **({} if tokens is None else {"max_tokens": tokens}))
    sweep = ConcurrencySweep(
        launcher=Launcher(say=say),
        api_key=api_key_of(profile, os.environ),
        progress=say,
        recorder=Recorder(ResultStore.default(Folders.default()), say=say),
    )
    result = run_to_end(sweep.run(profile, levels, requests=runs))
    print_result(levels_to_json(result), as_json=as_json, table=levels_table)
    if result.failure is not None:
        fail(result.failure, status=1)


@click.command()
@click.argument("target", metavar="PROFILE|URL")
@click.option("--workload", default=None, help="One or more workloads, comma separated.")
@click.option("--tokens", type=click.IntRange(2, 100_000), help="Tokens per request at most.")
@click.option(
    "--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Requests per workload."
)
@click.option(
    "--baseline",
    is_flag=False,
    flag_value="measure",
    metavar="[TPS|URL]",
    help="Measure the plain speed as well; for a server of somebody else, its number or a second address.",
)
@click.option("--temperature", type=Real(0, 5))
@click.option("--concurrency", type=click.IntRange(1, 64))
@click.option("--depth", type=click.IntRange(0, 1_000_000), help="Pad prompts to about so many tokens.")
@JSON_OPTION
def measure(target: str, *, runs: int, baseline: str | None, as_json: bool, **options: Any) -> None:
    """Send test traffic and print what the bet yields."""
    profile = target_of(target)
    names = workloads_of(options["workload"], profile)
    if options["temperature"] is not None:
        profile = profile.with_sampling(temperature=options["temperature"])
    changes = {
        "max_tokens": options["tokens"],
        "concurrency": options["concurrency"],
        "depth": options["depth"],
    }
    profile = profile.with_traffic(**{k: v for k, v in changes.items() if v is not None})
    if baseline is not None and baseline != "measure":
        profile = with_baseline(profile, baseline)
    order = Order(workloads=names, requests=runs, baseline=baseline is not None)
    result = _run(profile, lambda measurer: measurer.measure(profile, order))
    print_result(measurement_to_json(result), as_json=as_json, table=measurement_table)
    if result.failure is not None:
        fail(result.failure, status=1)


@click.command()
@click.argument("target", metavar="PROFILE|URL")
@click.option(
    "--n",
    "tokens",
    type=Numbers(1, 512),
    default="1,2,3,4,5,8,9,16,17",
    show_default=True,
    help="Tokens per pass.",
)
@JSON_OPTION
def probe(target: str, tokens: tuple[int, ...], *, as_json: bool) -> None:
    """Measure what a target pass over n tokens costs, in plain steps."""
    profile = target_of(target)
    result = _run(profile, lambda measurer: measurer.probe(profile, tokens))
    print_result(probe_to_json(result), as_json=as_json, table=probe_table)


def _run(profile: TuningProfile, work: Callable[[Any], Any]) -> Any:
    """Run an experiment with a measurer; whatever it started is ended, also by Ctrl-C."""
    measurer = Measurer(
        launcher=Launcher(say=say),
        store=BaselineStore.default(Folders.default()),
        results=ResultStore.default(Folders.default()),
        api_key=api_key_of(profile, os.environ),
        progress=say,
    )
    return run_to_end(work(measurer))
