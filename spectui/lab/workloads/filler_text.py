"""Unrelated but natural text without end, to fill a context up to a wanted depth.

It must repeat neither itself nor the prompts: long copies in the context would feed n-gram drafting. So sentences
are put together from small tables, like the entries of a harbour's log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

_SCRAMBLE: Final = (556_211, 899_981, 100_000)
"""Factor, prime modulus and offset of six-digit numbers; those of neighbours differ in the first digit."""

_SHIPS: Final = (
    "Amelie", "Black Swan", "Corona", "Dorothea", "Esperanza", "Fortuna", "Grey Heron", "Hilda", "Isbjorn",
    "Juno", "Kittiwake", "Larissa", "Marigold", "Nordstern", "Ostrea", "Perseus", "Queen of the Sound", "Rosalind",
    "Seagull", "Tern", "Undine", "Valparaiso", "Wanderer", "Zephyr",
)  # fmt: skip
_PLACES: Final = (
    "Aarhus", "Bergen", "Cuxhaven", "Dundee", "Esbjerg", "Frederikshavn", "Gdansk", "Hull", "Ipswich", "Kiel",
    "Lerwick", "Malmo", "Narvik", "Oban", "Peterhead", "Rostock", "Stavanger", "Tallinn", "Visby", "Wick",
)  # fmt: skip
_GOODS: Final = (
    "sacks of barley", "crates of lemons", "barrels of herring", "bales of wool", "rolls of paper", "coils of rope",
    "casks of tar", "tons of gravel", "bundles of reed", "window frames", "bicycles", "pallets of brick",
    "cases of tea", "oak planks", "church bells in straw", "jars of honey", "millstones", "rolls of canvas",
)  # fmt: skip
_WEATHER: Final = (
    "light wind from the south", "fog until noon", "a clear sky and frost", "steady drizzle", "gusts from the west",
    "a heavy swell", "thunder in the distance", "snow showers", "a calm and hazy morning", "rain after sunset",
)  # fmt: skip
_PEOPLE: Final = (
    "the harbour master", "the pilot", "the crane driver", "a customs officer", "the cook", "the second mate",
    "the sail maker", "a carpenter", "the postman", "the keeper of the light", "an apprentice", "the bookkeeper",
)  # fmt: skip
_REMARKS: Final = (
    "asked for a new lantern at the east pier", "found a rope chafed through and replaced it",
    "counted the crates twice and came to the same figure", "complained about the price of coal",
    "repaired the door of the weighing house", "took the readings of the gauge and the barometer",
    "reported a buoy adrift off the sand bank", "signed for two letters and a parcel",
    "painted the railing of the stairs", "offered a reward for the lost brown dog",
    "measured the depth at the third berth", "wished everybody a quiet night",
)  # fmt: skip
_WHEN: Final = (
    "before sunrise", "after breakfast", "before noon", "after the noon bell", "before dusk", "after midnight",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SIDES: Final = ("northern", "southern", "eastern", "western", "outer", "inner", "old", "new")
_LEVELS: Final = (
    "a hand below", "two hands below", "exactly at", "a hand above", "two hands above", "far above",
)  # fmt: skip
_TEMPLATES: Final = (
    "The {ship} came in from {place} with {number} {goods}.",
    "Shortly {when} the {ship} left for {place}, {number} {goods} on board.",
    "There was {weather}, and the gauge stood {level} its usual mark.",
    "In the afternoon {person} {remark}.",
    "The {side} berth stayed empty because the {ship} was still waiting off {place}.",
    "{number} {goods} were stored in the {side} shed until the {ship} returns.",
    "Before the tide turned, {person} {remark}.",
    "News from {place}: {weather}, and the {ship} expected on {day}.",
    "On {day} {person} {remark}, while the {ship} took on water.",
    "The dues for the {goods} from {place} were paid {when}.",
)


def sentences(index: int) -> Iterator[str]:
    """Endless sentences; each index has its own, and its first one begins unlike those of its neighbours."""
    source = random.Random(f"filler {index}")  # noqa: S311  reproducible text, no secret
    factor, modulus, offset = _SCRAMBLE
    yield f"{(index + 1) * factor % modulus + offset} is the number of this page of the harbour log."
    while True:
        yield source.choice(_TEMPLATES).format(
            ship=source.choice(_SHIPS),
            place=source.choice(_PLACES),
            goods=source.choice(_GOODS),
            weather=source.choice(_WEATHER),
            person=source.choice(_PEOPLE),
            remark=source.choice(_REMARKS),
            number=source.randint(2, 98),
            when=source.choice(_WHEN),
            day=source.choice(_DAYS),
            side=source.choice(_SIDES),
            level=source.choice(_LEVELS),
        )
