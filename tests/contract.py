"""JSON that a command printed, checked against its model of the headless contract."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spectui.lab.reports.contract import CONTRACT
from spectui.lab.reports.contract_types import Model


def model_of(arguments: Sequence[object]) -> type[Model]:
    """The model of what a command prints. Raises LookupError where it is no command that prints JSON."""
    words = [str(each) for each in arguments]
    if words[0] == "sweep" and "--plan" in words:
        return CONTRACT["sweep --plan"]
    for name in (" ".join(words[:2]), words[0]):
        for each in (name, f"{name} --format json"):
            if each in CONTRACT:
                return CONTRACT[each]
    raise LookupError(words)


def printed(text: str | bytes, *arguments: object) -> Any:
    """What the command with these arguments printed. Raises ValidationError where it breaks the contract."""
    model_of(arguments).model_validate_json(text, strict=True)
    return json.loads(text)
