"""The guide's pages by topic. What a finding means is read from the tables of findings when the page is printed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from spectui.core.verdict.findings import LAUNCH_ADVICE, Group
from spectui.core.verdict.rules import MEASUREMENT_RULES

TOPICS: Final = (
    "demo",
    "screen",
    "reading-the-bet",
    "profiles",
    "experiments",
    "servers",
    "attaching",
    "headless",
    "gpu",
    "troubleshooting",
)
"""Names of the pages in the order of reading."""
_TITLES: Final = {
    Group.CANNOT_START: "The server cannot start",
    Group.NOT_SPECULATING: "The server runs and does not speculate as asked",
    Group.FAILING: "Something fails",
    Group.CANNOT_JUDGE: "The bet cannot be judged yet",
    Group.THE_BET: "The bet itself",
    Group.TO_KNOW: "Worth knowing",
}


def page(topic: str) -> str:
    """The Markdown of one page. Raises KeyError for a topic that there is not."""
    if topic not in TOPICS:
        raise KeyError(topic)
    text = (files(__package__) / f"{topic}.md").read_text("utf-8")
    return f"{text}{''.join(_findings())}" if topic == "troubleshooting" else text


def summary(topic: str) -> str:
    """What a page is about: the sentence below its title."""
    return page(topic).split("\n", 3)[2]


def _findings() -> Iterator[str]:
    """Every code in the order of the groups, which is the order in which findings are said."""
    rows = {(row.group, code): (row.meaning, row.advice) for code, row in LAUNCH_ADVICE.items()}
    for rule in MEASUREMENT_RULES:
        rows.setdefault((rule.group, rule.code), rule.in_general())
    for group, title in _TITLES.items():
        yield f"\n## {title}\n\n"
        for (of, code), (meaning, remedy) in rows.items():
            if of is group:
                yield f"- `{code}`: {meaning}.  \n  What to do: {remedy}.\n"
