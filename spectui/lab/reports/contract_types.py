"""What the models of the headless contract are made of, and how one is filled from the object it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from spectui.core.bet.estimates import Estimate

PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alpha_low": "alpha.low",
        "alpha_high": "alpha.high",
        "speedup_low": "speedup_actual.low",
        "speedup_high": "speedup_actual.high",
        "tokens_per_second_low": "tokens_per_second.low",
        "tokens_per_second_high": "tokens_per_second.high",
        "baseline_tokens_per_second": "baseline",
        "round_cost": "pass_cost",
        "stalled_passes": "stalled",
    }
)
"""Where a number stands in a reading whose name in the contract is another one."""

Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Interval = tuple[Number, Number]
Named = dict[str, Any]
"""Values by name whose names depend on the case."""


def contract_values(model: type[BaseModel], source: object, /, **given: Any) -> dict[str, Any]:
    """The fields of a model by name, from an object that holds the quantities; given: what it does not hold."""
    return {
        name: given[name] if name in given else _value_of(source, PLACES.get(name, name))
        for name in model.model_fields
    }


def _value_of(source: Any, place: str) -> Any:
    for part in place.split("."):
        source = None if source is None else getattr(source, part)
    return source.value if isinstance(source, Estimate) else source


class Model(BaseModel):
    """A part of the contract: no other fields than those it names."""

    model_config = ConfigDict(extra="forbid", frozen=True)
