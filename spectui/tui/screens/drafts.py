"""The draft picker: files with size, quantisation and blocks; those that do not fit the target say why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import OptionList, Static

from spectui.core.text import counted
from spectui.core.views.snapshot import DraftOption
from spectui.tui.control.interface import Controller
from spectui.tui.screens.dialog import Dialog
from spectui.tui.screens.picker import Choice, option_rows
from spectui.tui.text import fit, model_name, size


class DraftScreen(Dialog[str]):
    """Gives the path of the chosen draft. The list follows the app's `drafts` while it is open."""

    TITLE_TEXT = "draft"
    HINT = "enter chooses, R looks again, esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "rescan", "rescan", tooltip="Look for draft files again", id="rescan")
    ]

    drafts: var[tuple[DraftOption, ...] | None] = var(None, init=False)

    def __init__(self, controller: Controller, *, current: str | None) -> None:
        super().__init__()
        self._controller = controller
        self._current = current
        self._shown: tuple[str, ...] = ()

    def parts(self) -> Iterable[Widget]:
        """State of the search, and the list."""
        yield Static("looking for draft files", classes="note", id="state")
        yield OptionList()

    def on_mount(self) -> None:
        """List what is there, have it tested, and follow what is found out."""
        self.watch(self.app, "drafts", self._follow, init=False)
        self.app.run_worker(self._fetch(), name="drafts", group="drafts", exclusive=True, exit_on_error=False)

    async def _fetch(self) -> None:
        drafts = await self._controller.front.drafts()
        if self.is_attached:
            self._follow(drafts)
            self._controller.front.rescan_drafts()

    def _follow(self, drafts: tuple[DraftOption, ...]) -> None:
        self.drafts = drafts

    def watch_drafts(self, drafts: tuple[DraftOption, ...] | None) -> None:
        """Show what is known now; the highlighted file stays highlighted."""
        options = self.query_one(OptionList)
        held = self._path_at(options.highlighted)
        drafts = drafts or ()
        options.clear_options()
        options.add_options(option_rows([choice_of(draft) for draft in drafts], self._current))
        paths = [draft.path for draft in drafts]
        wanted = held or self._current
        if paths:
            options.highlighted = paths.index(wanted) if wanted in paths else 0
        open_ = sum(draft.compatible is None and not draft.reason for draft in drafts)
        state = (
            f"testing {counted(open_, 'draft')} against the target"
            if open_
            else counted(len(paths), "draft file")
        )
        self.query_one("#state", Static).update(
            state if paths else "no draft file found: name one in the profile (speculation.draft_model)"
        )
        self._shown = tuple(paths)
        options.focus()

    def _path_at(self, index: int | None) -> str | None:
        return self._shown[index] if index is not None and index < len(self._shown) else None

    def action_rescan(self) -> None:
        """Look again."""
        self.query_one("#state", Static).update("looking for draft files")
        self._controller.front.rescan_drafts()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        path = self._path_at(event.option_index)
        if path is not None:
            self.dismiss(path)


def choice_of(draft: DraftOption) -> Choice:
    """One line: name, size, quantisation, blocks, and whether it fits."""
    fits = {True: "fits", False: draft.reason or "does not fit the target", None: "not tested yet"}[
        draft.compatible
    ]
    blocks = f"{draft.blocks} blocks" if draft.blocks is not None else ""
    facts = f"{size(draft.size_bytes):>7}  {fit(draft.quantisation or '', 7)}  {blocks:>10}  {fits}"
    return Choice(
        value=draft.path, label=model_name(draft.name), note=facts, enabled=draft.compatible is not False
    )
