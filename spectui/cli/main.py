"""The command line: options in, one line or one JSON object out. Each command's module loads when it is called.

Exit status: 0 done, 1 the thing examined is unhealthy or died, or the output cannot be written, 2 bad input (one
line on stderr), 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from spectui import __version__
from spectui.cli.output import fail, say, settle_streams, unwritten
from spectui.errors import INTERRUPTED, SpectuiError

COMMANDS: Final = {
    "ab": (
        "experiments",
        "Compare two profiles or servers on the same prompts, interleaved: which is faster, and is it sure.",
    ),
    "attach": (
        "dashboard",
        "Open the dashboard on a running server, several in one session each; no traffic is sent before you ask.",
    ),
    "check": ("diagnose", "Check a pasted llama-server command line, and print it corrected."),
    "concurrency": ("experiments", "Measure how the bet changes with the number of requests at once."),
    "demo": ("dashboard", "Open the dashboard on a real demo pair, built on first use."),
    "doctor": (
        "doctor",
        "Say what is wrong with a profile before its server starts, or with a server that runs.",
    ),
    "explain": (
        "diagnose",
        "Explain why a bet wins or loses, from numbers, a server's log or a file of passes.",
    ),
    "export": (
        "sweep",
        "Write a profile or what a sweep recommends for other programs, or a sweep's numbers.",
    ),
    "guide": ("guide", "Print a page of the guide, or what there is to read."),
    "history": ("history", "List the runs that were measured, the newest first."),
    "measure": ("experiments", "Send test traffic and print what the bet yields."),
    "predict": ("diagnose", "Predict the speedup by draft length, without a server."),
    "probe": ("experiments", "Measure what a target pass over n tokens costs, in plain steps."),
    "profiles": ("profiles", "List and show profiles."),
    "run": (
        "dashboard",
        "Start the server of PROFILE (a name or a .toml file) and open the dashboard; several in one session each.",
    ),
    "schema": ("schema", "Print the JSON Schema of a command's JSON, such as: schema sweep --plan."),
    "sweep": (
        "sweep",
        "Find the best setting of each workload: predict what can be predicted, measure where it may hide.",
    ),
}
"""Each command's module in this folder, and what it does. `--help` lists them and loads none."""


class _Commands(click.Group):
    """Loads a command when it is called; those that were added to it go first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(getattr(_module(COMMANDS[cmd_name][0]), cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            lines = {name: click.Command(name, help=text) for name, (_, text) in COMMANDS.items()}
            formatter.write_dl([(name, line.get_short_help_str(room)) for name, line in lines.items()])


def _module(name: str) -> Any:
    return import_module(f"spectui.cli.{name}")


@click.group(
    cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "--version")
@click.option(
    "--debug",
    is_flag=True,
    envvar="SPECTUI_DEBUG",
    help="Write what happens to spectui's own log, beside its faults.",
)
@click.pass_context
def cli(ctx: click.Context, *, debug: bool) -> None:
    """Measure, explain and tune speculative decoding on llama.cpp servers.

    Without a command: the dashboard on the profile used last, or a welcome screen.
    """
    if debug:
        from spectui.store.fault_log import log_more  # noqa: PLC0415  wanted only here

        log_more()
    if ctx.invoked_subcommand is None:
        _module("dashboard").open_last()


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
        from spectui.store.fault_log import fault  # noqa: PLC0415  wanted only here

        say(f"spectui: {fault(error)}")
        status = 1
    sys.exit(status if isinstance(status, int) else 0)
