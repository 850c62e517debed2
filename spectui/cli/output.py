"""What commands print: one JSON object or a table to stdout; progress and errors, a line each, to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn, TextIO

import click

from spectui.errors import SpectuiError, UsageError

JSON_OPTION: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def print_result(data: dict[str, Any], *, as_json: bool, table: Callable[[dict[str, Any]], str]) -> None:
    """Print a result as the caller asked for it; ends the command where it cannot be written."""
    write(json_text(data) if as_json else table(data))


def json_text(data: dict[str, Any]) -> str:
    """A result as one line of JSON. A number that JSON does not have, such as infinity, is unknown: null."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(data), parse_constant=lambda _name: None)
        return json.dumps(finite, ensure_ascii=False)


def write(text: str, *, newline: bool = True) -> None:
    """Write to stdout; ends the command where that cannot be done, in silence where a pipe's reader left.

    What stdout's encoding does not have becomes "?", such as bytes of an argument that are no UTF-8.
    """
    encoding = sys.stdout.encoding
    text = text.encode(encoding, "replace").decode(encoding)
    try:
        click.echo(text, nl=newline)
        sys.stdout.flush()
    except OSError as error:
        unwritten(error)


def unwritten(error: OSError) -> NoReturn:
    """End the command: its output cannot be written."""
    _give_up(sys.stdout)
    if isinstance(error, BrokenPipeError):
        sys.exit(0)
    say(f"spectui: the output cannot be written ({error.strerror or error})")
    sys.exit(1)


def _give_up(stream: TextIO) -> None:
    """Lead a stream that cannot be written to nowhere: the interpreter's own flush at exit must not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def settle_streams() -> None:
    """Give a program that was started with closed streams its own: nothing to read, and nowhere to write.

    Without, the next file that is opened would take the stream's number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Opened for reading, so that what is written is refused and not lost in silence.
            os.dup2(os.open(os.devnull, os.O_RDONLY), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def require_terminal() -> None:
    """Raises UsageError where no dashboard can be shown."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the dashboard needs a terminal; use spectui measure, probe or explain without one")
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "this terminal (TERM=dumb) cannot show the dashboard; use spectui measure or another one"
        )


def say(line: str) -> None:
    """Progress and errors; that nobody can read them is no reason to lose a measurement, or for another status."""
    try:
        click.echo(line, err=True)
    except OSError:
        _give_up(sys.stderr)


def fail(error: SpectuiError, *, status: int) -> NoReturn:
    """End the command with one line."""
    say(f"spectui: {error}")
    sys.exit(status)
