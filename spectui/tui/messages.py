"""What the controller tells the screens: snapshots, the state of an A/B run or a sweep, drafts, and notices.

Widgets and screens import this and not the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.message import Message

from spectui.core.views.ab import AbView
from spectui.core.views.snapshot import DraftOption, Snapshot

if TYPE_CHECKING:
    from spectui.core.views.sweep import SweepView

Severity = Literal["information", "warning", "error"]


class SnapshotReady(Message):
    """A new instant to show. A later one replaces an earlier one that was not handled yet."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        """Late snapshots coalesce: only the newest is worth a repaint."""
        return isinstance(message, SnapshotReady)


class DraftsReady(Message):
    """The drafts on offer, complete and in order; sent again when more is known about them."""

    def __init__(self, drafts: tuple[DraftOption, ...]) -> None:
        super().__init__()
        self.drafts = drafts


class AbReady(Message):
    """A new instant of the A/B run. A later one replaces an earlier one that was not handled yet."""

    def __init__(self, view: AbView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """Only the newest is worth a repaint."""
        return isinstance(message, AbReady)


class SweepReady(Message):
    """A new instant of the sweep. A later one replaces an earlier one that was not handled yet."""

    def __init__(self, view: SweepView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """Only the newest is worth a repaint."""
        return isinstance(message, SweepReady)


class Notice(Message):
    """One line for the user about something that a key started."""

    def __init__(self, text: str, severity: Severity = "information") -> None:
        super().__init__()
        self.text = text
        self.severity: Severity = severity
