"""RunList and RunDetails: what the history screen shows of kept runs, and the filter that the user types.

The lab builds them, the screen reads them. Unknown is None, never 0; texts in them were made safe to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

RunSource = Literal["measure", "dashboard", "ab", "concurrency", "sweep"]
"""What measured a run: the command, or the dashboard's own traffic; A/B runs of its screen are "ab" as well."""

LIMIT: Final = 500
"""Runs that are listed at most, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in the list."""

    id: int
    started: str
    """Local time, to the minute."""
    workload: str
    mode: str
    source: str = ""
    """What measured it, such as the dashboard."""
    k: int | None = None
    p_min: float | None = None
    temperature: float = 0.0
    tokens_per_second: float | None = None
    speedup: float | None = None
    alpha: float | None = None
    requests: int = 0
    build: str = ""
    model: str = ""
    """File of the target, without its folder, as for the draft; an address for a server of somebody else."""
    draft: str = ""
    remark: str = ""
    """Such as stale or unfinished; empty where nothing is to be said."""

    @property
    def text(self) -> str:
        """Everything that a filter looks at, in lower case."""
        parts = (
            str(self.id),
            self.started,
            self.source,
            self.workload,
            self.mode,
            "" if self.k is None else f"k={self.k}",
            "" if not self.p_min else f"p_min={self.p_min:g}",
            f"t={self.temperature:g}",
            self.build,
            self.model,
            self.draft,
            self.remark,
        )
        return " ".join(parts).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """The runs that are listed, the newest first. cut: whether the store has older ones beside them."""

    rows: tuple[RunRow, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number of two runs."""

    name: str
    a: float | None
    b: float | None

    @property
    def ratio(self) -> float | None:
        """B over A; None where one is unknown or not positive."""
        if self.a is None or self.b is None or self.a <= 0 or self.b <= 0:
            return None
        return self.b / self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition that is not the same in two runs, as section.field, with both values."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """Two runs side by side."""

    a: RunRow
    b: RunRow
    numbers: tuple[Number, ...] = ()
    differences: tuple[Difference, ...] = ()
    cautions: tuple[str, ...] = ()
    """What makes the comparison doubtful, such as different builds."""
    sentence: str = ""
    """How much faster b is, with its interval; empty where a speed is unknown."""


def matching(rows: tuple[RunRow, ...], wanted: str) -> tuple[RunRow, ...]:
    """The rows that have each word of `wanted` somewhere; all of them where it is blank."""
    words = wanted.lower().split()
    return tuple(row for row in rows if all(word in row.text for word in words)) if words else rows


def marked(marks: tuple[int, ...], run: int) -> tuple[int, ...]:
    """The marks after one more: two at most, the older one goes; a second mark on a run takes it away."""
    if run in marks:
        return tuple(mark for mark in marks if mark != run)
    return (*marks, run)[-2:]
