"""What a sweep is made of: settings of a server, conditions of its traffic, and the cells where they meet.

A setting needs a server start of its own, a workload and a temperature do not: each start serves all its cells.
Which of them are measured, and when, is `planner`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from spectui.core.profile import NGRAM_SIMPLE, OFF, TuningProfile, is_ngram, needs_draft_model
from spectui.core.sweep.defaults import LENGTHS, LOOKUPS, P_MINS
from spectui.core.text import one_line

WARMUP: Final = 1
"""Requests before each cell that are not counted: more would cost as much as a short cell itself."""
ASSUMED_SPEED: Final = 20.0
"""Tokens per second of a machine that nothing was measured on."""
ASSUMED_START: Final = 5.0
"""Seconds from a server's start to its first request, where nothing was measured."""
ASSUMED_FIRST_TOKEN: Final = 0.5
"""Seconds that a request's prompt takes, where nothing was measured."""
_WARMUP_TOKENS: Final = 32
_FIXED_LOOKUP: Final = "ngram-cache"
"""The n-gram mode whose sizes are built in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The bet of one server start. None where a mode has no such setting."""

    mode: str
    draft: str | None = None
    """File of the draft."""
    k: int | None = None
    p_min: float | None = None
    ngram_lookup: int | None = None
    ngram_length: int | None = None

    @property
    def fixed_length(self) -> bool:
        """Whether drafts have one length, so that a run at one k predicts the others."""
        return self.p_min == 0

    @property
    def key(self) -> str:
        """Names the setting, the same in every run of spectui."""
        parts = {
            "draft": self.draft,
            "k": self.k,
            "p_min": None if self.p_min is None else f"{self.p_min:g}",
            "lookup": self.ngram_lookup,
            "length": self.ngram_length,
        }
        return " ".join(
            [self.mode, *(f"{name}={value}" for name, value in parts.items() if value is not None)]
        )

    @property
    def label(self) -> str:
        """The setting in a few words for people; file names are untrusted text."""
        parts = {
            "k": self.k,
            "p_min": None if not self.p_min else f"{self.p_min:g}",
            "lookup": self.ngram_lookup,
            "length": self.ngram_length,
        }
        named = [self.mode] if self.draft is None else [self.mode, self.draft.rpartition("/")[2]]
        numbers = [f"{name} {value}" for name, value in parts.items() if value is not None]
        return one_line(" ".join([*named, *numbers]), 120)

    def applied_to(self, profile: TuningProfile) -> TuningProfile:
        """The profile with this bet in place of its own."""
        if self.mode == OFF:
            return profile.without_speculation()
        if is_ngram(self.mode):
            return profile.with_speculation(
                mode=self.mode, ngram_lookup=self.ngram_lookup, ngram_length=self.ngram_length, draft_min=0
            )
        k = self.k or profile.speculation.draft_length
        return profile.with_speculation(
            mode=self.mode,
            draft_model=self.draft,
            draft_length=k,
            draft_min=min(profile.speculation.draft_min, k),
            p_min=self.p_min or 0.0,
        )


PLAIN: Final = Setting(mode=OFF)
"""The baseline's setting."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a server is asked under; a change needs no restart."""

    workload: str
    temperature: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting under one condition."""

    condition: Condition
    setting: Setting

    @property
    def key(self) -> str:
        """Names the cell within its sweep."""
        return f"{self.condition.workload} T={self.condition.temperature:g} {self.setting.key}"


@dataclass(frozen=True, slots=True)
class Family:
    """Settings that differ in two numbers: k and p_min, or lookup and length. Rows of equal length."""

    rows: tuple[tuple[Setting, ...], ...]

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All of them."""
        return tuple(setting for row in self.rows for setting in row)

    def scattered(self) -> tuple[Setting, ...]:
        """The quarter points of both axes, which come first where nothing can be predicted."""
        rows, columns = len(self.rows), len(self.rows[0])
        return tuple(self.rows[i][j] for i in _quarters(rows) for j in _quarters(columns))

    def neighbours(self, setting: Setting) -> tuple[Setting, ...]:
        """The settings one step away along an axis."""
        i, row = next((i, row) for i, row in enumerate(self.rows) if setting in row)
        j = row.index(setting)
        near = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
        return tuple(self.rows[y][x] for y, x in near if 0 <= y < len(self.rows) and 0 <= x < len(row))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Everything that may be measured; each axis in the order in which it was asked for, without repeats."""

    workloads: tuple[str, ...]
    temperatures: tuple[float, ...]
    modes: tuple[str, ...]
    ks: tuple[int, ...]
    p_mins: tuple[float, ...] = P_MINS
    drafts: tuple[str, ...] = ()
    lookups: tuple[int, ...] = LOOKUPS
    lengths: tuple[int, ...] = LENGTHS

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Workloads and temperatures, each with each."""
        return tuple(Condition(w, t) for w in self.workloads for t in self.temperatures)

    @cached_property
    def fixed(self) -> tuple[tuple[Setting, ...], ...]:
        """Settings with drafts of one length by mode and draft; one of each predicts the others."""
        if 0 not in self.p_mins:
            return ()
        return tuple(
            tuple(Setting(mode=mode, draft=draft, k=k, p_min=0.0) for k in sorted(self.ks))
            for mode, draft in self._drafting()
        )

    @cached_property
    def free(self) -> tuple[Family, ...]:
        """Settings whose drafts end where they like: no run of another one tells what they yield."""
        thresholds = [p for p in sorted(self.p_mins) if p > 0]
        drafted = [
            Family(
                tuple(
                    tuple(Setting(mode=mode, draft=draft, k=k, p_min=p) for k in sorted(self.ks))
                    for p in thresholds
                )
            )
            for mode, draft in self._drafting()
            if thresholds
        ]
        return (*drafted, *(self._lookup_family(mode) for mode in self.modes if is_ngram(mode)))

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Every setting but the baseline's; each is a server start."""
        free = (setting for family in self.free for setting in family.settings)
        return (*(setting for row in self.fixed for setting in row), *free)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell but the baselines', by condition."""
        return tuple(Cell(condition, setting) for condition in self.conditions for setting in self.settings)

    @cached_property
    def anchors(self) -> tuple[Setting, ...]:
        """One setting of each row of fixed lengths, whose run predicts the others."""
        return tuple(anchor(row) for row in self.fixed)

    def blind(self, *, replays: bool) -> tuple[Setting, ...]:
        """Settings that an adaptive sweep runs shortly whatever it finds: no other run predicts them.

        replays: whether n-gram lookups can be replayed on a baseline's answers.
        """
        predicted = NGRAM_SIMPLE if replays else None
        families = (family for family in self.free if family.settings[0].mode != predicted)
        return tuple(setting for family in families for setting in family.scattered())

    def certain(self, *, replays: bool) -> tuple[Setting, ...]:
        """The settings that an adaptive sweep measures whatever it finds. replays: as in `blind`."""
        return (*self.anchors, *self.blind(replays=replays))

    def _drafting(self) -> Iterable[tuple[str, str | None]]:
        for mode in self.modes:
            if not is_ngram(mode) and mode != OFF:
                for draft in self.drafts if needs_draft_model(mode) else (None,):
                    yield mode, draft

    def _lookup_family(self, mode: str) -> Family:
        if mode == _FIXED_LOOKUP:
            return Family(((Setting(mode=mode),),))
        return Family(
            tuple(
                tuple(Setting(mode=mode, ngram_lookup=n, ngram_length=m) for m in sorted(self.lengths))
                for n in sorted(self.lookups)
            )
        )


def anchor(row: Sequence[Setting]) -> Setting:
    """The setting whose run predicts its row: k = 4, or the middle of the row."""
    return next((setting for setting in row if setting.k == 4), row[len(row) // 2])


def by_start(cells: Iterable[Cell]) -> Mapping[Setting, tuple[Cell, ...]]:
    """Cells by the server start that serves them, in the order of their first cell."""
    starts: dict[Setting, tuple[Cell, ...]] = {}
    for cell in cells:
        starts[cell.setting] = (*starts.get(cell.setting, ()), cell)
    return starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a sweep goes on."""

    tokens: int
    """Per request."""
    speed: float = ASSUMED_SPEED
    """Plain tokens per second of all requests at once; speculating ones are taken to be as fast."""
    start: float = ASSUMED_START
    """Seconds from a server's start to its first request."""
    first_token: float = ASSUMED_FIRST_TOKEN
    """Seconds from a request to its first token."""
    measured: bool = False
    """Whether the speed was seen on this machine."""

    def seconds(self, starts: int, cells: int, requests: int) -> float:
        """So many server starts with so many cells of so many requests."""
        decoded = requests * self.tokens + WARMUP * min(self.tokens, _WARMUP_TOKENS)
        each = decoded / self.speed + (requests + WARMUP) * self.first_token
        return starts * self.start + cells * each


def _quarters(number: int) -> tuple[int, ...]:
    """Two indices that divide an axis evenly; all of an axis of two."""
    return tuple(dict.fromkeys((number // 4, 3 * number // 4)))


def name_of(condition: Condition, grid: Grid) -> str:
    """The workload, with the temperature where several are swept."""
    if len(grid.temperatures) == 1:
        return condition.workload
    return f"{condition.workload} T={condition.temperature:g}"
