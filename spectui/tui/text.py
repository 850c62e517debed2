"""Numbers and foreign text -> strings of known width.

Every tile writes a number through it, so that nothing on screen moves sideways.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size

from spectui.core.bet.estimates import Estimate
from spectui.core.text import one_line

UNKNOWN: Final = "\u2014"
"""What stands where a number is not known."""
ELLIPSIS: Final = "\u2026"


def shown(text: str) -> str:
    """Foreign text as one safe line: no escape sequences, no control characters, no lone surrogates."""
    return one_line(text).encode("utf-8", "replace").decode("utf-8")


def fit(text: str, width: int) -> str:
    """Exactly `width` cells of `text`: padded on the right, or cut with an ellipsis."""
    return set_cell_size(short(text, width), width)


def short(text: str, width: int) -> str:
    """At most `width` cells of `text`, the cut marked with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return "" if width < 1 else set_cell_size(text, width - 1).rstrip() + ELLIPSIS


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """Lines of at most `width` cells, broken at blanks where there are any; later lines start with `indent`."""
    width = max(width, 2)
    lines: list[str] = []
    words = text.split(" ")
    line = ""
    for index, word in enumerate(words):
        joined = f"{line} {word}" if index else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line.strip():
            lines.append(line)
        pieces = chop_cells(indent * bool(lines) + word, width) or [""]
        lines.extend(pieces[:-1])
        line = pieces[-1]
    return [*lines, line]


def number(value: float | None, decimals: int = 2, width: int = 6) -> str:
    """`value` right-aligned in `width` cells; unknown as a dash under the last digit."""
    return (UNKNOWN if value is None else f"{value:,.{decimals}f}").rjust(width)


def speed(value: float | None) -> str:
    """Tokens per second with one decimal below a thousand."""
    if value is None:
        return UNKNOWN
    return f"{value:.1f}" if value < 999.95 else f"{value:.0f}"


def times(value: float | None) -> str:
    """A speedup, such as 0.53x."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}x" if value < 99.995 else f"{value:.0f}x"


def margin(estimate: Estimate | None) -> str:
    """Half the width of the interval, such as \u00b10.03; empty where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"\u00b1{(estimate.high - estimate.low) / 2:.2f}"


def interval(estimate: Estimate | None) -> str:
    """The interval as low to high; empty where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.low:.2f} to {estimate.high:.2f}"


def duration(ms: float | None) -> tuple[str, str]:
    """At most four cells and their unit: milliseconds, from ten seconds on seconds."""
    if ms is None:
        return UNKNOWN, ""
    return (f"{ms:.0f}", "ms") if ms < 9999.5 else (f"{ms / 1000:.0f}", "s")


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours once there are any."""
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def size(bytes_: int | None) -> str:
    """A file size in decimal megabytes or gigabytes."""
    if bytes_ is None:
        return UNKNOWN
    return f"{bytes_ / 1e9:.1f} GB" if bytes_ >= 1e9 else f"{bytes_ / 1e6:.0f} MB"


def model_name(name: str | None) -> str:
    """A model's name without folders and file ending."""
    if not name:
        return UNKNOWN
    return shown(name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf"))
