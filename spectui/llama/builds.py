"""Every fact that depends on a build number of llama.cpp, in one table.

What a binary accepts is read from its own `--help`; here stands only what no help tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Builds:
    """The builds from `first` to `last`, both included; without a last one up to the newest."""

    first: int
    last: int | None = None

    def __contains__(self, build: int | None) -> bool:
        """Whether the number is known and one of them."""
        return build is not None and self.first <= build and (self.last is None or build <= self.last)


REAL: Final = Builds(1000)
"""llama.cpp's own numbers; a lower one is a packager's own count."""
TWO_PASSES: Final = Builds(4164, 7322)
"""Two target passes per cycle when a draft model speculates; llama.cpp #17808 ended that."""
CACHE_GATE: Final = Builds(4164, 6722)
"""A request without cache_prompt is not speculated on."""
DRAFT_ALONE: Final = Builds(REAL.first, 9463)
"""A draft model alone speculates; later builds need a speculation type as well."""
DRAFT_REREADS: Final = Builds(9109)
"""The draft reads the last accepted token again, d + 1 steps for d drafted tokens (llama.cpp #22838)."""
PRESENT_DEFAULTS: Final = Builds(9235)
"""Drafts of DEFAULT_LENGTH tokens without p_min where no flag says otherwise."""
DEFAULT_LENGTH: Final = 3


@dataclass(frozen=True, slots=True)
class BadBuilds:
    """Builds that fail with one speculation type (in its current name), and the next build that does not."""

    builds: Builds
    kind: str
    what: str
    good: str


BAD: Final = (
    BadBuilds(  # llama.cpp #28196
        Builds(10741, 10748),
        "draft-mtp",
        "cannot start draft-mtp: an assertion fails while memory is measured",
        "b10749",
    ),
)


def rereads_draft(build: int | None) -> bool:
    """Whether the draft of a server of this build reads the last accepted token again.

    Taken for granted for an unknown build and for a packager's own count.
    """
    return build not in REAL or build in DRAFT_REREADS
