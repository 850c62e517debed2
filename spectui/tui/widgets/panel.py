"""Panel: a widget made of lines of styled spans, of which only the lines that changed are painted again.

Every live widget is one. A snapshot comes in, the widget turns its part of it into lines, and the difference to
the lines on screen is what costs; an unchanged part costs one comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region, Size
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from spectui.core.views.snapshot import Snapshot
from spectui.tui.text import wrap

_INKS: Final = {
    "text": ("foreground", 1.0, False),
    "strong": ("foreground", 1.0, True),
    "label": ("foreground", 0.65, False),
    "faint": ("foreground", 0.3, False),
    "key": ("accent", 1.0, True),
    "accent": ("primary", 1.0, False),
    "second": ("accent", 1.0, False),
    "good": ("success", 1.0, True),
    "bad": ("error", 1.0, True),
    "warn": ("warning", 1.0, True),
}
"""Theme variable, opacity over the panel's background, and bold."""
_BADGES: Final = {
    "badge-good": ("success", 1.0, "background"),
    "badge-bad": ("error", 1.0, "background"),
    "badge-warn": ("warning", 1.0, "background"),
    "badge-mute": ("foreground", 0.25, "foreground"),
}
"""Theme variable of the ground, its opacity, and theme variable of the letters."""


class Span(NamedTuple):
    """A piece of a line: text, a name of _INKS or _BADGES, and an action that a click runs."""

    text: str
    style: str = "text"
    action: str = ""


Line = tuple[Span, ...]


def centred(text: str, width: int, height: int) -> list[Line]:
    """A remark in the middle of an empty panel."""
    lines = wrap(text, width)[:height]
    return [()] * ((height - len(lines)) // 2) + [(Span(line.center(width), "label"),) for line in lines]


class Panel(Widget):
    """Base of the live widgets; a subclass says which part of a snapshot it shows, and how."""

    ALLOW_SELECT = False
    MAX_LINES: ClassVar[int | None] = None
    """Lines at most where the height follows the content; None where the layout gives the height."""

    snapshot: var[Snapshot] = var(Snapshot())

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._drawn: Sequence[Line] = ()
        self._key: object = None
        self._strips: dict[int, Strip] = {}
        self._styles_of: dict[tuple[str, str], Style] = {}
        self._hovered = ""
        self._hidden = False

    def view(self, snapshot: Snapshot) -> object:
        """The part that is shown; lines are made again only when it changes."""
        return snapshot

    def lines(self, snapshot: Snapshot, width: int, height: int) -> Sequence[Line]:
        """At most `height` lines for `width` cells."""
        return ()

    def redraw(self) -> None:
        """Make the lines again where the view or the size changed, and paint those that differ."""
        width, height = self.size
        if self._hidden or not width or not (height or self.MAX_LINES):
            return
        height = self.MAX_LINES or height
        key = (self.view(self.snapshot), width, height)
        if key == self._key:
            return
        self._key = key
        old, new = self._drawn, tuple(self.lines(self.snapshot, width, height))[:height]
        self._drawn = new
        if self.MAX_LINES and len(old) != len(new):
            self._strips.clear()
            self.refresh(layout=True)
            return
        longest = max(len(old), len(new))
        changed = [y for y in range(longest) if y >= len(old) or y >= len(new) or old[y] != new[y]]
        for y in changed:
            self._strips.pop(y, None)
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def forget(self) -> None:
        """Make every line again at the next chance, as after a change of colours or of own state."""
        self._key = None
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """One line of the content, from the cache where it did not change."""
        width = self.size.width
        strip = self._strips.get(y)
        if strip is None or strip.cell_length != width:
            spans = self._drawn[y] if y < len(self._drawn) else ()
            segments = [Segment(span.text, self._style(span.style, span.action)) for span in spans]
            strip = Strip(segments).adjust_cell_length(width, self._style("text", ""))
            self._strips[y] = strip
        return strip

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Height for `height: auto`: as many lines as the content has."""
        if self.MAX_LINES is None:
            return super().get_content_height(container, viewport, width)
        return len(tuple(self.lines(self.snapshot, width, self.MAX_LINES))[: self.MAX_LINES])

    def notify_style_update(self) -> None:
        """Drop what holds colours."""
        super().notify_style_update()
        self._styles_of.clear()
        self._strips.clear()

    def watch_snapshot(self) -> None:
        """Take a new snapshot."""
        self.redraw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._strips.clear()
        self.redraw()

    def on_show(self) -> None:
        """Catch up with what was missed while hidden."""
        self._hidden = False
        self.redraw()

    def on_hide(self) -> None:
        """Stop drawing."""
        self._hidden = True

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark what a click would do."""
        self._hover(str(event.style.meta.get("@click", "")))

    def on_leave(self) -> None:
        """Unmark."""
        self._hover("")

    def _hover(self, action: str) -> None:
        if action == self._hovered:
            return
        touched = {action, self._hovered} - {""}
        self._hovered = action
        for y, line in enumerate(self._drawn):
            if any(span.action in touched for span in line):
                self._strips.pop(y, None)
                self.refresh(Region(0, y, self.size.width, 1))

    def _style(self, name: str, action: str) -> Style:
        key = (name, action)
        style = self._styles_of.get(key)
        if style is None:
            style = self._resolve(name)
            if action:
                style += Style.from_meta({"@click": action})
            self._styles_of[key] = style
        return style + Style(underline=True) if action and action == self._hovered else style

    def _resolve(self, name: str) -> Style:
        """Colours of the theme over this panel's background.

        Not component classes: Textual resolves those for each of a dozen widgets before the first frame.
        """
        variables = self.app.theme_variables
        _, ground = self.background_colors
        if name in _BADGES:
            badge, opacity, letters = _BADGES[name]
            under = ground + Color.parse(variables[badge]).multiply_alpha(opacity)
            over = Color.parse(variables[letters])
            return Style.from_color(over.rich_color, under.rich_color) + Style(bold=True)
        ink, opacity, bold = _INKS[name]
        colour = ground + Color.parse(variables[ink]).multiply_alpha(opacity)
        return Style.from_color(colour.rich_color, ground.rich_color) + Style(bold=bold)
