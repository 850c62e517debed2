"""What is swept where nobody chose: screen and command line must agree, or neither goes on with the other's sweep.

The command line reads them without loading what a sweep needs.
"""

from __future__ import annotations

from typing import Final

DRAFT_LENGTHS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
"""Draft lengths k."""
LOOKUPS: Final = (2, 4, 8, 12)
"""Tokens that must match, as an n-gram mode is swept."""
LENGTHS: Final = (8, 16, 32, 48)
"""Tokens that an n-gram mode drafts."""
P_MINS: Final = (0.0,)
"""Least draft probabilities."""
REQUESTS: Final = 10
"""Counted requests of a whole run of a cell."""
