"""`spectui predict`: from alpha and costs to a table of speedups, with no server at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spectui.core.bet import speedup
from spectui.core.bet.estimates import CurvePoint
from spectui.core.text import one_line
from spectui.errors import UsageError
from spectui.lab.diagnose.user_files import require_regular
from spectui.lab.reports.text import columns

_DIGITS: Final = 6
"""Of a number of tokens in one pass."""
_DEAREST: Final = 1e9
"""No pass costs so many plain steps."""


def prediction(
    alpha: float, c: float, lengths: Sequence[int], *, v: Mapping[int, float] | None, u: float | None
) -> dict[str, Any]:
    """The object of `predict --json`.

    Without v and u the textbook form E / (1 + k c); with either the full cost V(k+1) + (k+1) c + u, V(n) taken
    as 1 where it was not given. best is the fastest of the lengths asked for; k is null where none beats 1.
    """
    full = v is not None or u is not None
    rows: list[dict[str, Any]] = []
    for k in lengths:
        tokens = speedup.expected_tokens(alpha, k)
        if full:
            cost = speedup.verification_cost(v or {}, k + 1)
            value = speedup.full_speedup(tokens, k, c, cost, u or 0.0)
        else:
            value = speedup.textbook_speedup(tokens, k, c)
        rows.append(
            {
                "k": k,
                "expected_tokens": tokens,
                "speedup": value,
                "break_even_alpha": None if full else speedup.break_even_alpha(k, c),
            }
        )
    points = [CurvePoint(draft_length=r["k"], speedup=r["speedup"]) for r in rows]
    best = speedup.best_point(points)
    wins = best is not None and best.speedup > 1
    return {
        "alpha": alpha,
        "c": c,
        "model": "full" if full else "textbook",
        "rows": rows,
        "best": {
            "k": best.draft_length if best and wins else None,
            "speedup": best.speedup if best and wins else 1.0,
        },
    }


def prediction_table(data: dict[str, Any]) -> str:
    """The same for people."""
    rows = [
        (
            str(r["k"]),
            f"{r['expected_tokens']:.2f}",
            f"{r['speedup']:.2f}x",
            "-" if r["break_even_alpha"] is None else f"{r['break_even_alpha']:.2f}",
        )
        for r in data["rows"]
    ]
    best = data["best"]
    verdict = (
        f"best: draft length {best['k']}, {best['speedup']:.2f}x"
        if best["k"] is not None
        else "best: off, no length beats plain decoding"
    )
    table = columns(("length", "tokens per pass", "speedup", "break-even alpha"), rows, right=True)
    return f"{table}\n{verdict} ({data['model']} form)"


def read_v(path: str) -> dict[int, float]:
    """V(n) by n from a JSON object such as {"2": 1.07}. Raises UsageError, one line."""
    file, path = require_regular(path), one_line(path, 200)
    try:
        data = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f'{path} is not JSON; it holds V(n) by n, such as {{"2": 1.07}}') from error
    if not isinstance(data, dict) or not data:
        raise UsageError(f'{path} holds no V(n); give an object such as {{"2": 1.07}}')
    return {_tokens(path, n): _cost(path, n, v) for n, v in data.items()}


def _tokens(path: str, text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < 1:
        raise UsageError(f"{path}: {text[:20]!r} is no number of tokens; keys are whole numbers from 1")
    return int(text)


def _cost(path: str, n: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _DEAREST:
        raise UsageError(f"{path}: V({n}) must be a positive number of plain steps")
    return float(value)
