"""`python -m spectui`."""

from __future__ import annotations

from spectui.cli import main

if __name__ == "__main__":
    main()
