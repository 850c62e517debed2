"""Prometheus text of llama.cpp (b2258 on) and vLLM as counters.

Only counters are kept, and two gauges that say what happens now: llama.cpp's speed gauges are averages since the
last scrape by anybody, so two readers spoil each other's. Counters move when a request ends, not during it, and
the speculation counters exist with value 0 where speculation is off: zero is no proof of anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from spectui.errors import ServerError

_PRINTED_EXACTLY: Final = 999_999
"""From b10406 llama.cpp prints scalar counters with six digits; the per-position series stay exact."""

_LONGEST_DRAFT: Final = 4096
"""Positions beyond this are no server's."""

_NAMES: Final = {
    "llamacpp:spec_decode_num_draft_tokens_total": "drafted",
    "llamacpp:spec_decode_num_accepted_tokens_total": "accepted",
    "llamacpp:spec_decode_num_drafts_total": "drafts",
    "llamacpp:tokens_predicted_total": "tokens_predicted",
    "llamacpp:tokens_predicted_seconds_total": "predicted_seconds",
    "llamacpp:prompt_tokens_total": "prompt_tokens",
    "llamacpp:prompt_tokens_cached_total": "prompt_tokens_cached",
    "llamacpp:prompt_seconds_total": "prompt_seconds",
    "llamacpp:n_decode_total": "decode_calls",
    "llamacpp:requests_processing": "requests_running",
    "llamacpp:requests_deferred": "requests_waiting",
    "vllm:spec_decode_num_draft_tokens_total": "drafted",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:generation_tokens_total": "tokens_predicted",
    "vllm:request_decode_time_seconds_sum": "predicted_seconds",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "prompt_tokens_cached",
    "vllm:request_prefill_time_seconds_sum": "prompt_seconds",
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
}
_PER_POSITION: Final = frozenset(
    f"{engine}:spec_decode_num_accepted_tokens_per_pos_total" for engine in ("llamacpp", "vllm")
)
_SAMPLE_NAME: Final = re.compile(r"[A-Za-z_:][\w:]*")
_GAUGES: Final = frozenset({"requests_running", "requests_waiting"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounters:
    """Totals since the server started, over all its requests that ended; None where it has no such counter."""

    drafted: float | None = None
    """Tokens drafted (llama.cpp from b10282)."""
    accepted: float | None = None
    """Drafted tokens that the target accepted."""
    drafts: float | None = None
    """Drafts that were verified; rounds in which p_min left nothing are not among them."""
    accepted_per_position: tuple[float, ...] = ()
    """Accepted tokens at each position, position 1 first; empty until the first speculating request ended."""
    tokens_predicted: float | None = None
    predicted_seconds: float | None = None
    """Seconds spent generating, summed over requests."""
    prompt_tokens: float | None = None
    """Prompt tokens processed."""
    prompt_tokens_cached: float | None = None
    prompt_seconds: float | None = None
    decode_calls: float | None = None
    """llama_decode calls; the one counter that moves during a request."""
    requests_running: float | None = None
    """Requests in work right now."""
    requests_waiting: float | None = None

    def restarted_since(self, earlier: ServerCounters) -> bool:
        """Whether a counter went down, which only a restart does."""
        return any(
            now is not None and then is not None and now < then
            for name in _SCALARS - _GAUGES
            for now, then in ((getattr(self, name), getattr(earlier, name)),)
        )

    def minus(self, earlier: ServerCounters) -> ServerCounters:
        """What happened between two readings; the gauges are those of now.

        Counters that are missing in either reading are None; after a restart everything counts from its start.
        """
        if self.restarted_since(earlier):
            return self
        before = earlier.accepted_per_position
        padded = before + (0.0,) * (len(self.accepted_per_position) - len(before))
        values = {name: _difference(name, self, earlier) for name in _SCALARS}
        per_position = tuple(
            now - then for now, then in zip(self.accepted_per_position, padded, strict=False)
        )
        return ServerCounters(accepted_per_position=per_position, **values)


_SCALARS: Final = frozenset(f.name for f in fields(ServerCounters)) - {"accepted_per_position"}


def _difference(name: str, now: ServerCounters, then: ServerCounters) -> float | None:
    value: float | None = getattr(now, name)
    before: float | None = getattr(then, name)
    if name in _GAUGES:
        return value
    return None if value is None or before is None else value - before


def parse_metrics(body: str) -> ServerCounters:
    """Read the body of `/metrics`. Raises ServerError for a body that is no Prometheus text.

    b7090 to b7190 sent the text as one JSON string. Series of several engines or models are summed.
    """
    totals: dict[str, float] = {}
    positions: dict[int, float] = {}
    try:
        text = json.loads(body) if body.startswith('"') else body
        for family in text_string_to_metric_families(_wanted(str(text))):
            for sample in family.samples:
                if sample.name in _PER_POSITION:
                    position = int(sample.labels["position"])
                    if 0 <= position < _LONGEST_DRAFT:
                        positions[position] = positions.get(position, 0.0) + sample.value
                elif sample.name in _NAMES:
                    name = _NAMES[sample.name]
                    totals[name] = totals.get(name, 0.0) + sample.value
    except (ValueError, KeyError) as error:
        raise ServerError(
            f"/metrics is no Prometheus text ({error}): is this the address of the server?"
        ) from error
    per_position = tuple(positions.get(i, 0.0) for i in range(max(positions) + 1)) if positions else ()
    if totals.get("accepted", 0.0) > _PRINTED_EXACTLY and per_position:
        totals["accepted"] = sum(per_position)
    return ServerCounters(accepted_per_position=per_position, **totals)


def _wanted(text: str) -> str:
    """The lines with samples that are read here; vLLM sends a thousand others."""
    lines = []
    for line in text.splitlines():
        match = _SAMPLE_NAME.match(line)
        if match is not None and (match.group() in _NAMES or match.group() in _PER_POSITION):
            lines.append(line)
    return "\n".join(lines) + "\n"
