"""A finding's advice with the key that follows it.

Findings know no keys, because commands print them as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spectui.core.verdict.verdict import Finding
from spectui.tui.text import shown

_KEYS: Final[Mapping[str, str]] = {
    "type-renamed": "n",
    "draft-model-missing": "d",
    "vocab-mismatch": "d",
    "wrong-pair": "d",
    "no-drafts": "p",
    "baseline-stale": "b",
}
_OF_OUR_SERVER: Final[Mapping[str, str]] = {"server-crashed": "u", "server-hung": "r", "server-error": "r, u"}
"""Keys that only act on a server that we started."""
_BASELINE_MISSING: Final = "baseline-missing"
"""Its key takes the place of a command."""


def advice_of(finding: Finding, *, owned: bool) -> str:
    """What to do, on one line; empty where nobody knows. owned: whether the server is ours."""
    if finding.code == _BASELINE_MISSING:
        return f"press b to {'measure' if owned else 'give'} it"
    key = _KEYS.get(finding.code) or (_OF_OUR_SERVER.get(finding.code) if owned else None)
    advice = shown(finding.advice)
    return f"{advice} ({key})" if advice and key else advice
