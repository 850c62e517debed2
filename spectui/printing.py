"""How a command answers: one JSON object, or the same values as a table.

Apart from the commands, which stand in several modules.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import click

JSON_OPTION: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def print_result(data: dict[str, Any], *, as_json: bool, table: Callable[[dict[str, Any]], str]) -> None:
    """Print it, and have it out before anything else happens. Raises OSError where nobody reads."""
    click.echo(json.dumps(data, ensure_ascii=False, allow_nan=False) if as_json else table(data))
    sys.stdout.flush()
