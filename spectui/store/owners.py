"""Which program runs a sweep, and whether it still does.

The number of a process does not tell: it is given to others again.
"""

from __future__ import annotations

import os
import platform
from typing import Final

from spectui.store.records import SweepOwner

_SAME: Final = 2.0
"""Seconds within which two readings of one start lie: it is reckoned from the boot time, which the clock moves."""


def this_program() -> SweepOwner:
    """This process."""
    import psutil  # noqa: PLC0415  loaded when needed: it takes 20 ms

    return SweepOwner(host=platform.node(), pid=os.getpid(), started=psutil.Process().create_time())


def runs_beside(owner: SweepOwner) -> bool:
    """Whether that is another program than this one, and lives on this host; of other hosts nothing is known."""
    import psutil  # noqa: PLC0415

    if owner.host != platform.node() or owner.pid == os.getpid():
        return False
    try:
        process = psutil.Process(owner.pid)
        same = abs(process.create_time() - owner.started) < _SAME
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
