"""Every fact that depends on a build number of llama.cpp."""

from __future__ import annotations

from typing import Final

_REREADS_FROM: Final = 9109


_FIRST_REAL_BUILD: Final = 1000
"""Below this a build number is a packager's own count."""


_TWO_PASS_BUILDS: Final = (4164, 7322)


def is_two_pass_build(build: int | None) -> bool:
    """Whether a server of this build makes two target passes per cycle when it speculates with a draft model.

    llama.cpp #17808 ended that; False for an unknown build.
    """
    return build is not None and _TWO_PASS_BUILDS[0] <= build <= _TWO_PASS_BUILDS[1]


def rereads_draft(build: int | None) -> bool:
    """Whether the draft of a server of this build reads the last accepted token again, d + 1 steps per pass.

    llama.cpp #22838 began that; taken for granted for an unknown build and for a packager's own count.
    """
    return build is None or build < _FIRST_REAL_BUILD or build >= _REREADS_FROM
