"""The keys of the main screen that change a setting: a list where something has to be chosen, then it is staged.

What is staged changes nothing that runs, so that none of these keys has to ask first.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from textual.reactive import var
from textual.screen import Screen

from spectui.core.profile import OFF, TuningProfile, is_ngram, needs_draft_model
from spectui.core.views.snapshot import Snapshot
from spectui.tui.control.interface import Controller
from spectui.tui.screens import setting_steps
from spectui.tui.screens.drafts import DraftScreen
from spectui.tui.screens.picker import Choice, PickerScreen

_MODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "off": "no speculation, the plain speed",
        "draft-simple": "a small model drafts",
        "draft-mtp": "prediction layers of the target draft",
        "draft-eagle3": "an EAGLE-3 head drafts",
        "draft-dflash": "a DFlash draft proposes a whole block",
        "draft-dspark": "a DSpark draft proposes a whole block",
        "ngram-simple": "copies what followed the same tokens before",
        "ngram-map-k": "as ngram-simple, looked up in a map",
        "ngram-map-k4v": "as ngram-map-k, with up to four continuations",
        "ngram-mod": "n-grams in a hash shared by all slots",
        "ngram-cache": "n-gram statistics, kept in a cache",
    }
)
"""What each mode is, by the name that servers give it."""


class SettingActions(Screen[None]):
    """The actions that stage a setting, or apply one that needs no restart."""

    snapshot: var[Snapshot] = var(Snapshot())

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    @property
    def _staged(self) -> TuningProfile:
        return self.snapshot.settings.staged

    def action_mode(self) -> None:
        """Choose among the modes that the binary offers."""
        modes = self.snapshot.settings.modes
        current = self._staged.speculation.mode
        names = modes if current in modes else (*modes, current)
        choices = [Choice(value=mode, label=mode, note=_MODES.get(mode, "")) for mode in names]
        self.app.push_screen(PickerScreen("mode", choices, current=current), self._set_mode)

    def _set_mode(self, mode: str | None) -> None:
        if mode is None:
            return
        self._controller.front.stage(lambda profile: profile.with_speculation(mode=mode))
        if needs_draft_model(mode) and self._staged.speculation.draft_model is None:
            self.action_draft()

    def action_draft(self) -> None:
        """Choose the draft model; choosing one turns a mode on that uses it."""
        current = self._staged.speculation.draft_model
        self.app.push_screen(DraftScreen(self._controller, current=current), self._set_draft)

    def _set_draft(self, path: str | None) -> None:
        if path is None:
            return

        def change(profile: TuningProfile) -> TuningProfile:
            mode = profile.speculation.mode
            return profile.with_speculation(
                draft_model=path, mode=mode if needs_draft_model(mode) else "draft-simple"
            )

        self._controller.front.stage(change)

    def action_length(self, direction: int) -> None:
        """One step of draft length, or of what an n-gram mode drafts at most."""
        if self._staged.speculation.mode == OFF:
            self.app.notify("speculation is off, so there is no length: n turns it on")
            return

        def change(profile: TuningProfile) -> TuningProfile:
            speculation = profile.speculation
            if is_ngram(speculation.mode):
                now = speculation.ngram_length or setting_steps.NGRAM_LENGTH
                return profile.with_speculation(
                    ngram_length=setting_steps.next_step(now, setting_steps.DRAFT_LENGTHS, direction)
                )
            return profile.with_speculation(
                draft_length=setting_steps.next_step(
                    speculation.draft_length, setting_steps.DRAFT_LENGTHS, direction
                )
            )

        self._controller.front.stage(change)

    def action_p_min(self) -> None:
        """Choose p_min, or in an n-gram mode how many tokens must match."""
        speculation = self._staged.speculation
        if is_ngram(speculation.mode):
            lookup = speculation.ngram_lookup
            choices = [Choice(value="", label="default", note="what the server takes")]
            choices += [Choice(value=str(step), label=f"{step:>2} tokens") for step in setting_steps.LOOKUPS]
            current = str(lookup) if lookup is not None else ""
            note = "Tokens that must match before it drafts."
            self.app.push_screen(
                PickerScreen("lookup", choices, current=current, note=note), self._set_lookup
            )
            return
        values = sorted({*setting_steps.P_MINS, speculation.p_min})
        choices = [
            Choice(value=f"{value:.2f}", label=f"{value:.2f}", note=_p_min_note(value)) for value in values
        ]
        note = "A draft stops before a token that it gives less than this probability."
        picker = PickerScreen("p_min", choices, current=f"{speculation.p_min:.2f}", note=note)
        self.app.push_screen(picker, self._set_p_min)

    def _set_p_min(self, value: str | None) -> None:
        if value is not None:
            self._controller.front.stage(lambda profile: profile.with_speculation(p_min=float(value)))

    def _set_lookup(self, value: str | None) -> None:
        if value is not None:
            lookup = int(value) if value else None
            self._controller.front.stage(lambda profile: profile.with_speculation(ngram_lookup=lookup))

    def action_temperature(self, direction: int) -> None:
        """One tenth up or down; no restart."""
        self._controller.front.set_temperature(
            setting_steps.next_temperature(self._staged.sampling.temperature, direction)
        )

    def action_workload(self) -> None:
        """Choose what is sent; no restart."""
        choices = [Choice(value=name, label=name) for name in self.snapshot.settings.workloads]
        picker = PickerScreen("workload", choices, current=self._staged.traffic.workload)
        self.app.push_screen(
            picker, lambda name: self._controller.front.set_workload(name) if name is not None else None
        )

    def action_concurrency(self) -> None:
        """Choose how many requests are in flight; no restart."""
        current = self._staged.traffic.concurrency
        slots = self.snapshot.server.slots
        choices = [
            Choice(
                value=str(value),
                label=f"{value:>2} at once",
                note=f"more than the {slots} slots: requests wait"
                if slots is not None and value > slots
                else "",
            )
            for value in sorted({*setting_steps.CONCURRENCIES, current})
        ]
        self.app.push_screen(
            PickerScreen("requests", choices, current=str(current)),
            lambda value: self._controller.front.set_concurrency(int(value)) if value is not None else None,
        )


def _p_min_note(value: float) -> str:
    return "every draft has full length, so alpha can be measured" if value == 0.0 else ""
