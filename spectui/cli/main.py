"""The command line: options in, one line or one JSON object out. The dashboard and the lab load when needed.

Exit status: 0 done, 1 the thing examined is unhealthy or died, or the output cannot be written, 2 bad input (one
line on stderr), 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from spectui import __version__
from spectui.cli.experiments import ab, concurrency
from spectui.cli.guide import guide
from spectui.cli.history import history
from spectui.cli.options import (
    Numbers,
    Real,
    checked_url,
    folders,
    load_profile,
    target_of,
    with_baseline,
    workloads_of,
)
from spectui.cli.output import (
    JSON_OPTION,
    fail,
    print_result,
    require_terminal,
    say,
    settle_streams,
    unwritten,
)
from spectui.cli.profiles import profiles
from spectui.cli.schema import schema
from spectui.cli.sweep import export, sweep
from spectui.core.secrets import KEY_VARIABLE, api_key_of, key_variable_of
from spectui.errors import INTERRUPTED, SpectuiError, UsageError

if TYPE_CHECKING:
    from spectui.core.profile import TuningProfile


_SPEED: Final = Real(1e-3, 1e7)
_TOKENS: Final = click.IntRange(0, 10**12)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version")
@click.option("--debug", is_flag=True, help="Write what happens to spectui's own log, beside its faults.")
@click.pass_context
def cli(ctx: click.Context, *, debug: bool) -> None:
    """Measure, explain and tune speculative decoding on llama.cpp servers.

    Without a command: the dashboard on the profile used last, or a welcome screen.
    """
    if debug:
        from spectui.store.fault_log import log_more  # noqa: PLC0415

        log_more()
    if ctx.invoked_subcommand is None:
        from spectui.store.profiles import last_profile  # noqa: PLC0415

        known = last_profile(folders()) is not None
        _dashboard({"last": known}, welcome=not known)


@cli.command()
def demo() -> None:
    """Open the dashboard on a real demo pair, built on first use."""
    _dashboard({"demo": True})


@cli.command()
@click.argument("names", metavar="PROFILE...", nargs=-1, required=True)
@click.option("--no-traffic", is_flag=True, help="Start the server only; traffic waits for the space key.")
def run(names: tuple[str, ...], *, no_traffic: bool) -> None:
    """Start the server of PROFILE (a name or a .toml file) and open the dashboard; several in one session each."""
    _require_keys(names)
    _dashboard(*({"profile": load_profile(name), "name": name, "traffic": not no_traffic} for name in names))


@cli.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--baseline", metavar="TPS|URL", help="Its plain speed, or a second server without speculation."
)
@click.option("--ask-key", is_flag=True, help=f"Prompt for the API key (or set {KEY_VARIABLE}).")
def attach(urls: tuple[str, ...], *, baseline: str | None, ask_key: bool) -> None:
    """Open the dashboard on a running server, several in one session each; no traffic is sent before you ask."""
    from spectui.core.profile import ServerSettings, TuningProfile  # noqa: PLC0415

    _require_keys(urls)
    if baseline is not None and len(urls) > 1:
        raise UsageError("--baseline is the speed of one server: give it with b in the session it belongs to")
    profiles = [TuningProfile(server=ServerSettings(url=checked_url(url))) for url in urls]
    if baseline is not None:
        profiles = [with_baseline(profile, baseline) for profile in profiles]
    require_terminal()
    openings: list[dict[str, Any]] = [{"profile": profile} for profile in profiles]
    for opening in openings if ask_key else ():
        which = f" of {opening['profile'].server.url}" if len(urls) > 1 else ""
        opening["api_key"] = click.prompt(f"API key{which}", hide_input=True)
    _dashboard(*openings)


@cli.command()
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
    from spectui.lab.diagnose.predict import prediction, prediction_table, read_v  # noqa: PLC0415

    result = prediction(alpha, c, lengths, v=read_v(v_file) if v_file is not None else None, u=u)
    print_result(result, as_json=as_json, table=prediction_table)


@cli.command()
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
    from spectui.lab.experiments.measure import Order  # noqa: PLC0415
    from spectui.lab.reports.run_json import measurement_to_json  # noqa: PLC0415

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
    print_result(measurement_to_json(result), as_json=as_json, table=_measurement_table)
    if result.failure is not None:
        fail(result.failure, status=1)


@cli.command()
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
    from spectui.lab.reports.run_json import probe_to_json  # noqa: PLC0415
    from spectui.lab.reports.text import probe_table  # noqa: PLC0415

    profile = target_of(target)
    result = _run(profile, lambda measurer: measurer.probe(profile, tokens))
    print_result(probe_to_json(result), as_json=as_json, table=probe_table)


@cli.command()
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
    from spectui.lab.diagnose import explain  # noqa: PLC0415
    from spectui.lab.diagnose.predict import read_v  # noqa: PLC0415

    if log is not None and passes is not None:
        raise UsageError("give --log or --passes, not both")
    given = explain.Given(v=read_v(v_file) if v_file is not None else {}, **numbers)
    if log is not None:
        result = explain.explain_log(given, log)
    elif passes is not None:
        result = explain.explain_passes(given, passes)
    else:
        result = explain.explain_numbers(given)
    if result.note:
        click.echo(result.note, err=True)
    print_result(explain.explanation_to_json(result), as_json=as_json, table=explain.explanation_table)


@cli.command()
@click.argument("command")
@click.option("--server", type=click.Path(), metavar="BINARY", help="The llama-server it is meant for.")
@click.option("--help-text", type=click.Path(), metavar="FILE", help="Saved output of llama-server --help.")
@JSON_OPTION
def check(command: str, *, server: str | None, help_text: str | None, as_json: bool) -> None:
    """Check a pasted llama-server command line, and print it corrected."""
    from spectui.lab.diagnose import command_check  # noqa: PLC0415

    checked, ok = command_check.check(command, server=server, help_text=help_text, environ=os.environ)
    print_result(
        command_check.check_to_json(checked, ok=ok), as_json=as_json, table=command_check.check_table
    )
    if not ok:
        sys.exit(1)


@cli.command()
@click.argument("target", metavar="PROFILE|URL")
@JSON_OPTION
def doctor(target: str, *, as_json: bool) -> None:
    """Say what is wrong with a profile before its server starts, or with a server that runs."""
    from spectui.lab.diagnose.doctor import Surroundings, diagnosis_table, diagnosis_to_json, examine  # noqa: PLC0415
    from spectui.lab.run_to_end import run_to_end  # noqa: PLC0415

    profile = target_of(target)
    around = Surroundings(
        environ=os.environ,
        cache=folders().cache,
        api_key=api_key_of(profile, os.environ),
        key_variable=key_variable_of(profile),
        say=say,
    )
    diagnosis = run_to_end(examine(profile, around))
    print_result(diagnosis_to_json(diagnosis), as_json=as_json, table=diagnosis_table)
    if not diagnosis.ok:
        sys.exit(1)


for command in (profiles, history, ab, concurrency, sweep, export, schema, guide):
    cli.add_command(command)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status."""
    settle_streams()
    try:
        status = cli.main(args=argv, prog_name="spectui", standalone_mode=False)
    except click.exceptions.Exit as done:
        status = done.exit_code
    except click.ClickException as error:
        # Click lists the choices of a missing option on lines of their own.
        say(f"spectui: {' '.join(error.format_message().split())}")
        status = 2
    except SpectuiError as error:
        fail(error, status=2)
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except BrokenPipeError as error:
        unwritten(error)
    except OSError as error:
        say(f"spectui: the system refused: {error}")
        status = 1
    except Exception as error:  # noqa: BLE001  the last one who can say it in a line and keep the traceback
        from spectui.store.fault_log import fault  # noqa: PLC0415

        say(f"spectui: {fault(error)}")
        status = 1
    sys.exit(status if isinstance(status, int) else 0)


def _require_keys(targets: Sequence[str]) -> None:
    """Raise UsageError for more sessions than there are number keys."""
    from spectui.core.views.sessions import MAX_SESSIONS  # noqa: PLC0415

    if len(targets) > MAX_SESSIONS:
        raise UsageError(
            f"{len(targets)} sessions: there are keys for {MAX_SESSIONS}, so name at most so many"
        )


def _dashboard(*openings: Mapping[str, Any], welcome: bool = False) -> None:
    """Open the dashboard with a session for each opening; whatever is heavy loads after its first frame."""
    require_terminal()
    # Collecting while modules load finds nothing and costs 50 ms. The controller switches it on again once the
    # first frame stands.
    gc.disable()
    from spectui.tui.app import SpectuiApp  # noqa: PLC0415
    from spectui.tui.control.opening import Opening  # noqa: PLC0415
    from spectui.tui.control.sessions import StripController  # noqa: PLC0415

    environ = dict(os.environ)
    sessions = [Opening(environ=environ, **one) for one in openings]
    app = SpectuiApp(StripController(*sessions), welcome=welcome)
    app.run()
    if app.fault:
        say(f"spectui: {app.fault}")
    if app.return_code:
        sys.exit(app.return_code)


def _run(profile: TuningProfile, work: Callable[[Any], Any]) -> Any:
    """Run an experiment with a measurer; whatever it started is ended, also by Ctrl-C."""
    from spectui.lab.experiments.measure import Measurer  # noqa: PLC0415
    from spectui.lab.run_to_end import run_to_end  # noqa: PLC0415
    from spectui.lab.servers.launcher import Launcher  # noqa: PLC0415
    from spectui.store.baselines import BaselineStore  # noqa: PLC0415
    from spectui.store.results import ResultStore  # noqa: PLC0415

    measurer = Measurer(
        launcher=Launcher(say=say),
        store=BaselineStore.default(folders()),
        results=ResultStore.default(folders()),
        api_key=api_key_of(profile, os.environ),
        progress=say,
    )
    return run_to_end(work(measurer))


def _measurement_table(data: dict[str, Any]) -> str:
    from spectui.lab.reports.text import measurement_table  # noqa: PLC0415

    return measurement_table(data)
