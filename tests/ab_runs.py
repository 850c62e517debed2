"""Simulated A/B runs for tests and benchmarks: interleaved blocks with the noise that real machines have."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from spectui.core.ab.comparison import Pair, Reading


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Two arms on one machine; every number is a standard deviation or change of ln(tokens per second)."""

    ratio: float = 1.0
    """B over A."""
    noise: float = 0.08
    """Of each answer."""
    turn: float = 0.0
    """Shared by the answers of one arm's turn in a block."""
    drift: float = 0.0
    """Change of the machine from the first answer to the last."""
    content: float = 0.25
    """Shared by both answers to a prompt."""
    slow: float = 0.0
    """Share of answers that something else on the machine slows down, by a third on average."""
    block: int = 2
    """Prompts per block."""


def run_of(rng: random.Random, arms: Arms, number: int) -> list[Pair]:
    """Pairs in the order A B B A, in blocks."""
    pairs: list[Pair] = []
    sent = 0
    for block in range(-(-number // arms.block)):
        content = [rng.gauss(0, arms.content) for _ in range(min(arms.block, number - len(pairs)))]
        speeds: dict[str, list[float]] = {}
        for arm in "ab" if block % 2 == 0 else "ba":
            shared = rng.gauss(0, arms.turn) + (math.log(arms.ratio) if arm == "b" else 0.0)
            speeds[arm] = []
            for value in content:
                slowed = rng.expovariate(3) if rng.random() < arms.slow else 0.0
                moved = arms.drift * sent / (2 * number)
                speeds[arm].append(value + shared + rng.gauss(0, arms.noise) + moved - slowed)
                sent += 1
        for i, (a, b) in enumerate(zip(speeds["a"], speeds["b"], strict=True)):
            pairs.append(Pair(f"{block}-{i}", block, _reading(a), _reading(b)))
    return pairs


def _reading(log_speed: float) -> Reading:
    return Reading(200, 200 / (20 * math.exp(log_speed)))
