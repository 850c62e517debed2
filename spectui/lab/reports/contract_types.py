"""What the models of the headless contract are made of, and how one is filled from the objects it speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, get_args

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

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accepted": "drafted tokens that the target accepted",
        "acceptance_ratio": "accepted over drafted tokens",
        "alpha": "per-token acceptance; a fully accepted draft counts as censored",
        "alpha_high": "upper end of alpha's 95 % interval",
        "alpha_low": "lower end of alpha's 95 % interval",
        "argv": "command line of a server that spectui started, secrets taken out",
        "baseline_tokens_per_second": "speed without speculation, tokens per second over all streams",
        "build": "build of the server, such as b10434",
        "c": "cost of a draft step, in plain steps",
        "concurrency": "requests at once",
        "cost": "parts of the cost of a pass",
        "draft": "draft model; null where the mode uses none",
        "drafted": "drafted tokens",
        "drafted_per_pass": "mean number of drafted tokens of a pass",
        "failure": "what ended it early; untrusted text",
        "findings": "what is the case, the most important first",
        "high": "upper end of the 95 % interval",
        "identical_outputs": "whether both wrote the same at temperature 0; null where nothing was compared",
        "k": "draft length, tokens; null where speculation is off or the mode has none",
        "low": "lower end of the 95 % interval",
        "measured": "whether the speedup is measured, not predicted",
        "mode": "kind of speculation, such as draft-simple; off is none",
        "ngram_length": "tokens that an n-gram mode drafts at most",
        "ngram_lookup": "tokens that an n-gram mode looks up",
        "ok": "whether nothing is wrong",
        "p_min": "least probability that a draft goes on with",
        "pairs": "pairs of answers that were compared",
        "pass_ms": "mean length of a pass with its drafting, milliseconds",
        "passes": "target passes",
        "path": "path of the file",
        "ratio": "speed of b over that of a",
        "requests": "requests that ended",
        "round_cost": "R, the cost of a pass, in plain steps",
        "speedup": "speed over that without speculation",
        "speedup_actual": "measured speed over that without speculation",
        "speedup_high": "upper end of the actual speedup's 95 % interval",
        "speedup_low": "lower end of the actual speedup's 95 % interval",
        "speedup_predicted": "speedup by the full cost of a pass",
        "speedup_textbook": "E / (1 + k c)",
        "stalled_passes": "passes that something else held up; left out of speeds",
        "summary": "the result in one sentence",
        "survival": "share of passes that accept at least j drafted tokens, for j = 1, 2, ...",
        "t1_ms": "length of a plain step, milliseconds",
        "temperature": "temperature of sampling",
        "time_to_first_token_ms": "median time to first token, milliseconds",
        "tokens": "tokens that passes committed, without the first of each answer",
        "tokens_per_pass": "E, the mean number of tokens that a pass commits",
        "tokens_per_second": "decode speed, tokens per second over all streams",
        "tokens_per_second_high": "upper end of the speed's 95 % interval",
        "tokens_per_second_low": "lower end of the speed's 95 % interval",
        "verdict": "a or b, the faster one, or indistinguishable",
        "workload": "name of the workload",
    }
)
"""What a field means that several models have; a model's own words come first."""

Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Named = dict[str, Any]
"""Values by name whose names depend on the case."""


def about(meaning: str) -> Any:
    """A field with what it means, and its unit."""
    return Field(description=meaning)


def _describe(schema: dict[str, Any]) -> None:
    for name, part in schema["properties"].items():
        if "description" not in part:
            part["description"] = MEANINGS[name]


class Model(BaseModel):
    """A part of the contract: no other fields than those it names."""

    # Models are checked where JSON is tested, and by who reads it; to print it takes no more than their names.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=_describe)


def contract_values(model: type[Model], /, *sources: object, **given: Any) -> dict[str, Any]:
    """The fields of a model by name, each from the first object that has it; given: what none of them has."""
    return {
        name: _made(given[name] if name in given else _found(sources, *place), part)
        for name, place, part in _fields(model)
    }


def ends(estimate: Estimate | None) -> dict[str, float | None]:
    """The interval of an estimate as the fields low and high."""
    return {"low": estimate.low, "high": estimate.high} if estimate else {"low": None, "high": None}


@cache
def _fields(model: type[Model]) -> tuple[tuple[str, list[str], type[Model] | None], ...]:
    """Each field: its name, its place in an object, and the model of what it holds, such as of each in a list."""
    return tuple(
        (name, PLACES.get(name, name).split("."), next(_models(field.annotation), None))
        for name, field in model.model_fields.items()
    )


def _models(kind: Any) -> Iterator[type[Model]]:
    return (each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Model))


def _found(sources: tuple[object, ...], first: str, *rest: str) -> Any:
    value = getattr(next((each for each in sources if hasattr(each, first)), None), first)
    for part in rest:
        value = None if value is None else getattr(value, part)
    return value


def _made(value: Any, part: type[Model] | None) -> Any:
    """A value as JSON has it; part: model of an object, or of each in a list."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Estimate):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_made(each, part) for each in value]
    return value if part is None else contract_values(part, value)
