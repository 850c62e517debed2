"""The address of a running server that a further session looks at."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Input, Static

from spectui.tui.screens.baseline import is_url
from spectui.tui.screens.dialog import Dialog


def typed_url(text: str) -> str | None:
    """The address that was typed, with the scheme that may be left out; None where it is none."""
    url = text.strip()
    if "://" not in url:
        url = f"http://{url}"
    return url if is_url(url) else None


class AttachScreen(Dialog[str]):
    """Gives the address."""

    TITLE_TEXT = "attach in a further session"
    HINT = "enter attaches, esc closes"

    def parts(self) -> Iterable[Widget]:
        """One input and what is wrong with it."""
        yield Static("The address of a running server. Nothing is sent to it before you ask.", classes="note")
        yield Input(placeholder="http://127.0.0.1:8080")
        yield Static("", classes="problem", id="problem")

    def on_mount(self) -> None:
        """Ready to type."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        url = typed_url(event.value)
        if url is None:
            self.query_one("#problem", Static).update(Text("an address such as http://127.0.0.1:8080"))
        else:
            self.dismiss(url)
