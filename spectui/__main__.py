"""The program: `python -m spectui`, and the command that is installed."""

from __future__ import annotations

import sys
from typing import NoReturn

from spectui.errors import INTERRUPTED


def main() -> NoReturn:
    """Run the command line. Ctrl-C ends it quietly also while it is still being imported."""
    try:
        from spectui.cli.main import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
