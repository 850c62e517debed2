"""A file of passes: one JSON object per line, as `explain --passes` takes it."""

from __future__ import annotations

import json
from typing import Any, Final

from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.errors import UsageError
from spectui.lab.diagnose.user_files import require_regular

_SHAPE: Final = '{"drafted": 4, "accepted": 2, "committed": 3, "ms": 41.5}'
_LARGEST: Final = 10**6
_LONGEST_MS: Final = 10**9
_OWN_TOKEN: Final = 1
"""The token of the target itself, which every pass commits beside what it accepts."""


def read_passes(path: str) -> tuple[RequestPasses, ...]:
    """Passes by request: one that commits fewer than a + 1 tokens ended its request.

    Raises UsageError naming file and line.
    """
    try:
        lines = require_regular(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: give one object per line, such as {_SHAPE}") from error
    requests: list[RequestPasses] = []
    current: list[TargetPass] = []
    for index, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        step = _pass(f"{path}, line {index}", line)
        current.append(step)
        if step.last:
            requests.append(_request(current))
            current = []
    if current:
        requests.append(_request(current))
    if not requests:
        raise UsageError(f"{path} holds no passes: give one object per line, such as {_SHAPE}")
    return tuple(requests)


def _pass(where: str, line: str) -> TargetPass:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: give one object per line, such as {_SHAPE}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{where} is no object: give one such as {_SHAPE}")
    drafted, accepted = _count(where, data, "drafted"), _count(where, data, "accepted")
    if accepted > drafted:
        raise UsageError(f"{where}: accepted {accepted} is more than drafted {drafted}")
    most = accepted + _OWN_TOKEN
    committed = most if data.get("committed") is None else _count(where, data, "committed")
    if committed > most:
        raise UsageError(f"{where}: committed {committed} is more than accepted {accepted} and one")
    return TargetPass(drafted, accepted, committed, _milliseconds(where, data), last=committed < most)


def _count(where: str, data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise UsageError(f"{where}: {name} must be a whole number of tokens from 0")
    return value


def _milliseconds(where: str, data: dict[str, Any]) -> float | None:
    value = data.get("ms")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_MS:
        raise UsageError(f"{where}: ms must be a positive number of milliseconds, or null")
    return float(value)


def _request(steps: list[TargetPass]) -> RequestPasses:
    return RequestPasses(
        passes=tuple(steps),
        drafted=sum(p.drafted for p in steps),
        accepted=sum(p.accepted for p in steps),
        predicted_n=1 + sum(p.committed for p in steps),
        predicted_ms=sum(p.ms or 0.0 for p in steps),
    )
