"""Facts written flat, so that a test names only the numbers that matter to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spectui.core.bet.estimates import BetReading, CurvePoint, Estimate, LookupPrediction, LossSplit
from spectui.core.verdict.facts import Facts

_BET = {"passes", "drafted", "accepted", "drafted_per_pass", "c", "two_pass"}
_LOSS = {"verification_steps": "verification", "overhead_steps": "overhead", "rest_steps": "unexplained"}


def facts(**flat: Any) -> Facts:
    """Facts of these numbers; all others are unknown."""
    own = {name: flat.pop(name) for name in ("mode", "draft_length")}
    return changed(Facts(**own), **flat)


def changed(known: Facts, **flat: Any) -> Facts:
    """The same facts with these numbers. Raises TypeError for a name that is none."""
    bet = replace(known.bet, **{name: flat.pop(name) for name in _BET & set(flat)})
    if "requests" in flat:
        requests = flat.pop("requests")
        known = replace(known, requests_known=requests is not None)
        bet = replace(bet, requests=requests or 0)
    if "tokens_per_pass" in flat:
        bet = replace(bet, tokens_per_pass=_estimate(None, {"value": flat.pop("tokens_per_pass")}))
    actual = _taken(flat, {"speedup": "value", "speedup_low": "low", "speedup_high": "high"})
    if actual:
        bet = replace(bet, speedup_actual=_estimate(bet.speedup_actual, actual))
    if steps := _taken(flat, {**_LOSS, "draft_steps": "drafting"}):
        none = LossSplit(
            tokens=0.0, target=1.0, drafting=0.0, verification=0.0, overhead=0.0, unexplained=0.0
        )
        bet = replace(bet, loss=replace(bet.loss or none, **steps))
    known = replace(known, bet=_priced(bet))
    point = {"best_length": "draft_length", "best_speedup": "speedup", "best_low": "low", "best_high": "high"}
    point["best_measured"] = "measured"
    if best := _taken(flat, point):
        known = replace(known, best=_point(known.best, best))
    sizes = _taken(flat, {"best_lookup": "lookup", "best_lookup_length": "length"})
    gain = _taken(
        flat, {"best_lookup_speedup": "value", "best_lookup_low": "low", "best_lookup_high": "high"}
    )
    if sizes or gain:
        none_yet = LookupPrediction(lookup=0, length=0, speedup=Estimate(value=0.0))
        lookup = replace(known.lookup or none_yet, **sizes)
        known = replace(known, lookup=replace(lookup, speedup=replace(lookup.speedup, **gain)))
    return replace(known, **flat)


def _taken(flat: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names[name]: flat.pop(name) for name in list(flat) if name in names}


def _estimate(now: Estimate | None, parts: dict[str, Any]) -> Estimate | None:
    if "value" in parts and parts["value"] is None:
        return None
    return replace(now or Estimate(value=parts["value"]), **parts)


def _point(now: CurvePoint | None, parts: dict[str, Any]) -> CurvePoint | None:
    if "draft_length" in parts and parts["draft_length"] is None:
        return None
    return replace(now or CurvePoint(draft_length=1, speedup=0.0), **parts)


def _priced(bet: BetReading) -> BetReading:
    tokens, actual = bet.tokens_per_pass, bet.speedup_actual
    return replace(bet, pass_cost=tokens.value / actual.value if tokens and actual else None)
