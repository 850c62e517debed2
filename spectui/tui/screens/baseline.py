"""The baseline of a server that spectui must not restart: a known number, or a second server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from urllib.parse import urlsplit

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Input, Static

from spectui.tui.screens.dialog import Dialog


@dataclass(frozen=True, slots=True)
class GivenBaseline:
    """One of the two is set: plain tokens per second, or the address of a server without speculation."""

    tokens_per_second: float | None = None
    url: str | None = None


def parse_baseline(text: str) -> GivenBaseline | str:
    """What was typed, or why it is neither a speed nor an address."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        return GivenBaseline(url=text) if is_url(text) else "a number such as 34, or http://host:port"
    return GivenBaseline(tokens_per_second=value) if isfinite(value) and value > 0 else "a speed above 0"


def is_url(text: str) -> bool:
    """Whether this is the address of an HTTP server."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class BaselineScreen(Dialog[GivenBaseline]):
    """Gives what was typed."""

    TITLE_TEXT = "baseline of an attached server"
    HINT = "enter takes it, esc closes"

    def parts(self) -> Iterable[Widget]:
        """What it is, an input, and what is wrong with it."""
        yield Static(
            "spectui did not start this server, so it cannot restart it without speculation. Give the plain "
            "speed in tokens/s if you know it, or the address of a second server that runs the same model "
            "without speculation.",
            classes="note",
        )
        yield Input(placeholder="34.0 or http://127.0.0.1:8081")
        yield Static("", classes="problem", id="problem")

    def on_mount(self) -> None:
        """Ready to type."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        given = parse_baseline(event.value)
        if isinstance(given, str):
            self.query_one("#problem", Static).update(Text(given))
        else:
            self.dismiss(given)
