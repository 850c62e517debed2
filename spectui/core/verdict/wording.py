"""Conditions and sentences of the measurement table that take more than a line: facts in, words out."""

from __future__ import annotations

from typing import Final

from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.text import counted
from spectui.core.verdict.facts import ENOUGH_PASSES, ENOUGH_REQUESTS, MIN_LIVE_PASSES, WINNING_FROM, Facts
from spectui.core.verdict.findings import Change

_WRONG_PAIR_DRAFTS: Final = 50
_WRONG_PAIR_RATIO: Final = 0.02
_OFTEN_REPEATED: Final = 0.5
_FEW_REPEATS: Final = 3


def length_message(f: Facts) -> str:
    """What a pass drafts and what that buys."""
    if f.tokens_per_pass is None:
        return f"draft length {f.draft_length}"
    return f"{f.bet.drafted_per_pass or 0.0:.0f} drafted tokens buy {f.tokens_per_pass - 1:.2f}"


def best(f: Facts) -> str:
    """The best length's speedup with its interval, which is called a loss where it includes one."""
    best = f.best
    if best is None:
        return ""
    word = "measured" if best.measured else "predicted"
    if best.low is None or best.high is None:
        return f"{word} {best.speedup:.2f}x"
    loss = "; that includes a loss" if best.low < 1 <= best.high else ""
    return f"{word} {best.speedup:.2f}x ({best.low:.2f} to {best.high:.2f}{loss})"


def lookup_advice(f: Facts) -> str:
    if f.lookup is None:
        return ""
    gain = f.lookup.speedup
    return (
        f"{NGRAM_SIMPLE}, lookup {f.lookup.lookup}, length {f.lookup.length}: "
        f"predicted {gain.value:.2f}x ({gain.low or 0.0:.2f} to {gain.high or 0.0:.2f})"
    )


def lookup_change(f: Facts) -> Change | None:
    if f.lookup is None:
        return None
    return Change(mode=NGRAM_SIMPLE, ngram_lookup=f.lookup.lookup, ngram_length=f.lookup.length)


def lookup_message(f: Facts) -> str:
    if f.ngram:
        return "the answers repeat what stands before them in another measure than this lookup is made for"
    return "the answers repeat what stands before them, and looking that up drafts it without a model"


def length_advice(f: Facts) -> str:
    what = "n-gram length" if f.ngram else "draft length"
    return f"{what} {f.draft_length} -> {f.better_length}: {best(f)}"


def length_change(f: Facts) -> Change | None:
    if f.better_length is None:
        return None
    return Change(ngram_length=f.better_length) if f.ngram else Change(draft_length=f.better_length)


def yield_message(f: Facts) -> str:
    if f.tokens_per_pass is None or f.bet.pass_cost is None:
        return f"the answer comes at {f.speedup or 0.0:.2f} times the plain speed"
    return f"each pass yields {f.tokens_per_pass:.2f} tokens for {f.bet.pass_cost:.2f} plain steps"


def off_advice(f: Facts) -> str:
    if f.best is None:
        return "off: this setting loses, and what others would do cannot be told from it; sweep them"
    return f"off: the best draft length, {f.best.draft_length}, is {best(f)}"


def no_baseline_message(f: Facts) -> str:
    if f.baseline_problem:
        return f"the baseline could not be measured: {f.baseline_problem}"
    missing = "no measured speed to set against the baseline" if f.baseline_known else "no baseline"
    return f"{missing}: whether the bet wins is unknown"


def no_baseline_advice(f: Facts) -> str:
    if f.baseline_expected:
        return "measure it on the same prompts: spectui measure --baseline"
    return "give it with --measured" if f.baseline_known else "give one with --baseline"


def few_requests(f: Facts) -> bool:
    return f.requests is not None and f.requests < ENOUGH_REQUESTS


def short_message(f: Facts) -> str:
    requests = "" if f.requests is None else f" in {counted(f.requests, 'finished request')}"
    return f"only {counted(f.bet.passes, 'pass')}{requests} so far"


def too_short_a_run(f: Facts) -> bool:
    return f.is_on and f.counted and f.bet.passes > 0 and (f.bet.passes < ENOUGH_PASSES or few_requests(f))


def repeats(f: Facts) -> bool:
    often = _OFTEN_REPEATED * max(1, f.requests or 0)
    return f.repeated_prompts >= _FEW_REPEATS and f.repeated_prompts >= often


def drafts_nothing(f: Facts) -> bool:
    return (
        f.is_on and f.speculating is not False and f.bet.drafted == 0 and f.bet.passes >= 3 * MIN_LIVE_PASSES
    )


def loses_to(f: Facts, better: float | None) -> bool:
    return f.judged and not f.wins and better is not None


def too_long(f: Facts, *, ngram: bool) -> bool:
    return f.ngram is ngram and loses_to(f, f.better_length) and (f.better_length or 0) < f.draft_length


def nothing_wins(f: Facts) -> bool:
    better = f.better_length is not None or f.better_p_min is not None or f.better_lookup
    return f.judged and not f.wins and not better and f.at_most is not None and f.at_most < WINNING_FROM


def p_min_advice(f: Facts) -> str:
    return f"p_min {f.p_min:g} -> {f.better_p_min or 0.0:g}: measured {f.best_p_min_speedup or 0.0:.2f}x"


def caused_by(code: str, f: Facts) -> bool:
    return f.cause == code


def acceptance_message(f: Facts) -> str:
    kept = (f.tokens_per_pass or 1.0) - 1
    return f"of {f.bet.drafted_per_pass or 0.0:.1f} drafted tokens a pass keeps {kept:.2f}"


def verification_message(f: Facts) -> str:
    if f.bet.loss is not None:
        return f"verifying takes {f.bet.loss.verification:.2f} plain steps beyond a plain pass"
    return f"a drafted token costs {steps(f.implied_c)} plain steps: no draft is that slow, verifying is"


def verification_advice(f: Facts) -> str:
    if f.bet.loss is not None:
        return "it lies in the model and the backend: a shorter draft has fewer tokens to verify"
    return "it lies in the model and the backend: measure V(n) with spectui probe"


def unexplained_message(f: Facts) -> str:
    drafted = f"{f.bet.drafted_per_pass or 0.0:.1f} drafted tokens"
    return (
        f"a pass costs {steps(f.bet.pass_cost)} plain steps for {drafted}: "
        "neither drafting nor verifying explains that"
    )


def wrong_pair(f: Facts) -> bool:
    enough = f.bet.drafted >= _WRONG_PAIR_DRAFTS and not f.ngram
    return enough and f.bet.accepted < _WRONG_PAIR_RATIO * f.bet.drafted


def steps(value: float | None) -> str:
    return "an unknown number of" if value is None else f"{value:.2f}"
