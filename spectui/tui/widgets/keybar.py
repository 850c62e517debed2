"""The bottom line: the keys that work now, made from the screen's bindings, each clickable.

One widget with one line, where Textual's footer builds a widget for every key and again at every change.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.screen import Screen

from spectui.core.views.snapshot import Snapshot
from spectui.tui.widgets.panel import Line, Panel, Span


class KeyBar(Panel):
    """Bindings with `show`, in their order, as many as fit; those that would do nothing now are dim."""

    DEFAULT_CSS = """
    KeyBar { height: 1; padding: 0 1; background: $panel; }
    """

    def on_mount(self) -> None:
        """Follow the screen's bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        if screen is self.screen:
            self.redraw()

    def view(self, snapshot: Snapshot) -> object:
        """Keys, words and whether they work."""
        return self._keys()

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """The screen's keys from the left, the app's at the right; where it is narrow the last on the left go."""
        keys = self._keys()
        right = [key for key in keys if key[2].startswith("app.")]
        room = width - sum(_cells(key) for key in right)
        left: list[tuple[str, str, str, bool]] = []
        for key in keys:
            if key in right:
                continue
            room -= _cells(key)
            if room < 0:
                room += _cells(key)
                break
            left.append(key)
        spans = [span for key in left for span in _spans(key)]
        return [(*spans, Span(" " * max(0, room)), *(span for key in right for span in _spans(key)))]

    def _keys(self) -> tuple[tuple[str, str, str, bool], ...]:
        seen: dict[str, tuple[str, str, str, bool]] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show:
                action = _namespaced(binding.action)
                key = self.app.get_key_display(binding)
                seen.setdefault(action, (key, binding.description, action, active.enabled))
        return tuple(seen.values())


def _cells(key: tuple[str, str, str, bool]) -> int:
    return cell_len(key[0]) + cell_len(key[1]) + 3


def _spans(key: tuple[str, str, str, bool]) -> tuple[Span, Span, Span]:
    name, words, action, enabled = key
    act = action if enabled else ""
    return (
        Span(name, "key" if enabled else "faint", act),
        Span(f" {words}", "label" if enabled else "faint", act),
        Span("  "),
    )


def _namespaced(action: str) -> str:
    return action if "." in action.split("(", maxsplit=1)[0] else f"screen.{action}"
