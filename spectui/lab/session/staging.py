"""What runs, what is staged, and the way back: the settings side of a session, without any server.

Settings that travel with each request change both sides at once; the rest waits for a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from spectui.core.profile import OFF, TuningProfile, is_ngram, restart_changes
from spectui.core.verdict.verdict import Change

_REMEMBERED: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Settings at one moment."""

    staged: TuningProfile
    running: TuningProfile | None
    """None until something ran."""
    changes: tuple[str, ...]
    """Staged settings that need a restart."""
    can_undo: bool

    @property
    def in_use(self) -> TuningProfile:
        """What runs, else what is staged."""
        return self.running or self.staged


class Staging:
    """running is None until something ran; undo goes back over the settings that ran before."""

    def __init__(self, profile: TuningProfile) -> None:
        self.staged = profile
        self.running: TuningProfile | None = None
        self._before: list[TuningProfile] = []

    @property
    def settings(self) -> SessionSettings:
        """Both sides now."""
        return SessionSettings(
            staged=self.staged, running=self.running, changes=self.changes, can_undo=self.can_undo
        )

    @property
    def changes(self) -> tuple[str, ...]:
        """Staged settings that need a restart."""
        return () if self.running is None else restart_changes(self.running, self.staged)

    @property
    def can_undo(self) -> bool:
        """Whether there is anything to go back to."""
        return bool(self.changes or self._before)

    def stage(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change the staged settings only."""
        self.staged = change(self.staged)

    def apply_now(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        """Change settings that need no restart: temperature, workload, concurrency of the traffic."""
        self.staged = change(self.staged)
        if self.running is not None:
            self.running = change(self.running)

    def started(self, profile: TuningProfile, *, back: bool = False) -> TuningProfile:
        """These settings run now, with the sampling and traffic of this moment; returns them.

        back: they were undone to. Else what ran before can be undone to, if it differs by a restart.
        """
        profile = _with_instant(profile, self.staged)
        if not back and self.running is not None:
            self._remember(self.running)
        if self._before and not restart_changes(self._before[-1], profile):
            self._before.pop()
        self.running = profile
        return profile

    def ended(self) -> None:
        """Nothing runs any more, or a start failed: what ran is what undo goes back to; staged changes stay."""
        if self.running is not None:
            self._remember(self.running)
        self.running = None

    def undo(self) -> TuningProfile | None:
        """Go back one step.

        Drops staged changes of a running server and returns None; else stages the settings that ran before and
        returns them, to be started. They are forgotten only once they run.
        """
        if self.running is not None and self.changes:
            self.staged = _with_instant(self.running, self.staged)
            return None
        if not self._before:
            return None
        self.staged = _with_instant(self._before[-1], self.staged)
        return self.staged

    def _remember(self, profile: TuningProfile) -> None:
        self._before.append(profile)
        del self._before[:-_REMEMBERED]


def _with_instant(profile: TuningProfile, instant: TuningProfile) -> TuningProfile:
    """The profile's server and speculation with the other's sampling and traffic: those apply at once."""
    return replace(profile, sampling=instant.sampling, traffic=instant.traffic, baseline=instant.baseline)


def label_of(profile: TuningProfile) -> str:
    """A few characters that tell one setting from another in the history."""
    speculation = profile.speculation
    if speculation.mode == OFF:
        return "off"
    if is_ngram(speculation.mode):
        return speculation.mode.removeprefix("ngram-")
    return f"k={speculation.draft_length}"


def changed(profile: TuningProfile, change: Change) -> TuningProfile:
    """The profile with an advised change."""
    wanted = {
        "mode": change.mode,
        "draft_length": change.draft_length,
        "p_min": change.p_min,
        "ngram_lookup": change.ngram_lookup,
        "ngram_length": change.ngram_length,
    }
    return profile.with_speculation(**{name: value for name, value in wanted.items() if value is not None})
