"""What each mode is, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "off": "no speculation, the plain speed",
        "draft-simple": "a small model drafts",
        "draft-mtp": "prediction layers of the target draft",
        "draft-eagle3": "an EAGLE-3 head drafts",
        "draft-dflash": "a DFlash draft proposes a whole block",
        "draft-dspark": "a DSpark draft proposes a whole block",
        "ngram-simple": "copies what followed the same tokens before",
        "ngram-map-k": "as ngram-simple, looked up in a map",
        "ngram-map-k4v": "as ngram-map-k, with up to four continuations",
        "ngram-mod": "n-grams in a hash shared by all slots",
        "ngram-cache": "n-gram statistics, kept in a cache",
    }
)
"""By the name that servers give it."""
