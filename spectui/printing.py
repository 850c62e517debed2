"""What commands print: one JSON object or a table to stdout; progress and errors, a line each, to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import click

from spectui.errors import SpectuiError

JSON_OPTION: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def print_result(data: dict[str, Any], *, as_json: bool, table: Callable[[dict[str, Any]], str]) -> None:
    """Print a result as the caller asked for it."""
    click.echo(json.dumps(data, ensure_ascii=False, allow_nan=False) if as_json else table(data))
    sys.stdout.flush()


def say(line: str) -> None:
    """Progress and errors; that nobody can read them is no reason to lose a measurement."""
    with suppress(OSError):
        click.echo(line, err=True)


def fail(error: SpectuiError, *, status: int) -> NoReturn:
    """End the command with one line."""
    say(f"spectui: {error}")
    sys.exit(status)
