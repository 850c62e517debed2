"""The command that prints the guide."""

from __future__ import annotations

import sys
from typing import Final

import click
from rich.console import Console
from rich.markdown import Markdown

from spectui.cli.output import write
from spectui.errors import UsageError
from spectui.guide.pages import TOPICS, page, summary

_WIDEST: Final = 100
"""Columns of a line that is still easy to read."""


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or what there is to read."""
    if topic is None:
        width = max(map(len, TOPICS))
        write("\n".join(f"{name:{width}}  {summary(name)}" for name in TOPICS))
    elif topic not in TOPICS:
        raise UsageError(f"there is no page {topic[:40]!r} in the guide: choose from {', '.join(TOPICS)}")
    elif sys.stdout.isatty():
        write(_rendered(page(topic)), newline=False)
    else:
        write(page(topic), newline=False)


def _rendered(text: str) -> str:
    """Markdown for the terminal that reads it."""
    console = Console()
    console.width = min(console.width, _WIDEST)
    with console.capture() as captured:
        console.print(Markdown(text))
    return captured.get()
