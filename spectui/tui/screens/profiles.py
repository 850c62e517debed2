"""Save the staged settings under a name, and load a profile from a list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from spectui.tui.control.interface import Controller, ProfileOption
from spectui.tui.screens.dialog import Dialog
from spectui.tui.screens.picker import Choice, option_rows

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST: Final = 100
"""Characters of a name: what the store takes."""


def name_problem(name: str) -> str:
    """Why `name` cannot name a profile; empty when it can. It becomes a file name."""
    if not name:
        return "a profile needs a name"
    if not _NAME.fullmatch(name):
        return "letters, digits, dot, dash and underscore, the first a letter or digit"
    if len(name) > LONGEST:
        return f"{LONGEST} characters at most, and these are {len(name)}"
    return ""


class SaveScreen(Dialog[str]):
    """Gives the name."""

    TITLE_TEXT = "save profile"
    HINT = "enter saves, esc closes"

    def __init__(self, controller: Controller, *, name: str | None) -> None:
        super().__init__()
        self._controller = controller
        self._start = name or ""
        self._taken: frozenset[str] = frozenset()

    def parts(self) -> Iterable[Widget]:
        """One input and what is wrong with it."""
        yield Static("The staged settings are saved under this name.", classes="note")
        yield Input(value=self._start, placeholder="name")
        yield Static("", classes="problem", id="problem")

    def on_mount(self) -> None:
        """Find out which names exist."""
        self.query_one(Input).focus()
        self.app.run_worker(
            self._look(), name="profiles", group="profiles", exclusive=True, exit_on_error=False
        )

    async def _look(self) -> None:
        options = await self._controller.front.list_profiles()
        if self.is_attached:
            self._taken = frozenset(option.name for option in options)
            self._check(self.query_one(Input).value)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._check(event.value)

    def _check(self, name: str) -> str:
        name = name.strip()
        problem = name_problem(name)
        note = problem or (f"replaces the profile {name}" if name in self._taken else "")
        self.query_one("#problem", Static).update(Text(note))
        return problem

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if not self._check(event.value):
            self.dismiss(event.value.strip())


class LoadScreen(Dialog[str]):
    """Gives the name of the chosen profile. title, hint: what choosing one does."""

    def __init__(
        self,
        controller: Controller,
        *,
        current: str | None,
        title: str = "load profile",
        hint: str = "enter loads and starts it, esc closes",
    ) -> None:
        super().__init__()
        self._controller = controller
        self._current = current
        self._title_text = title
        self._hint = hint
        self._options: tuple[ProfileOption, ...] = ()

    def dialog_title(self) -> str:
        """The title."""
        return self._title_text

    def dialog_hint(self) -> str:
        """The hint."""
        return self._hint

    def parts(self) -> Iterable[Widget]:
        """State and list."""
        yield Static("reading profiles", classes="note", id="state")
        yield OptionList()

    def on_mount(self) -> None:
        """Read the list."""
        self.app.run_worker(
            self._look(), name="profiles", group="profiles", exclusive=True, exit_on_error=False
        )

    async def _look(self) -> None:
        self._options = await self._controller.front.list_profiles()
        if not self.is_attached:
            return
        state = self.query_one("#state", Static)
        options = self.query_one(OptionList)
        options.add_options(option_rows([profile_choice(option) for option in self._options], self._current))
        names = [option.name for option in self._options]
        if names:
            state.display = False
            options.highlighted = names.index(self._current) if self._current in names else 0
            options.focus()
        else:
            state.update("no profile yet: s saves the staged settings as one")

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._options[event.option_index].name)


def profile_choice(option: ProfileOption) -> Choice:
    """One line; a profile with a problem shows it and cannot be chosen."""
    return Choice(
        value=option.name,
        label=option.name,
        note=option.problem or option.description,
        enabled=not option.problem,
    )
