"""What one press of a stepping key does to a value. Pure, so that it can be tested without a screen."""

from __future__ import annotations

from typing import Final

from spectui.core.profile import MAX_DRAFT_LENGTH

DRAFT_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, MAX_DRAFT_LENGTH)
"""Draft lengths that the keys step through, in tokens."""
P_MINS: Final = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
LOOKUPS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Lengths of an n-gram that must match, in tokens."""
CONCURRENCIES: Final = (1, 2, 4, 8, 16, 32, 64)
NGRAM_LENGTH: Final = 48
"""What current servers draft at most in an n-gram mode when nothing is said (size_m)."""
TEMPERATURE_STEP: Final = 0.1
MAX_TEMPERATURE: Final = 2.0


def next_step(value: int, steps: tuple[int, ...], direction: int) -> int:
    """The next of `steps` above (direction 1) or below (-1) `value`; the end where there is none."""
    if direction > 0:
        return next((step for step in steps if step > value), steps[-1])
    return next((step for step in reversed(steps) if step < value), steps[0])


def next_temperature(value: float, direction: int) -> float:
    """One tenth up or down, between 0 and MAX_TEMPERATURE."""
    moved = round(value + direction * TEMPERATURE_STEP, 2)
    return min(max(moved, 0.0), max(MAX_TEMPERATURE, value))
