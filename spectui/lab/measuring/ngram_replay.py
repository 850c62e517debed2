"""Answers without speculation -> what each n-gram lookup would have made of them.

A server reads the texts in its vocabulary here; the lookup is arithmetic on tokens (`core.bet.ngram_replay`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter
from typing import Final, TypeAlias

from spectui.core.bet.cost import ASSUMED_REST, CostModel
from spectui.core.bet.ngram_replay import Answered, Lookups, Replay, replay
from spectui.core.profile import TrafficSettings
from spectui.core.sweep.defaults import LENGTHS, LOOKUPS
from spectui.core.text import counted
from spectui.errors import ServerError
from spectui.lab.measuring.probe import MOST_TOKENS
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.server import LaunchedServer, Server
from spectui.llama.http.client import LlamaClient

_MISREAD: Final = 0.02
"""Share of an answer's tokens that may be read otherwise than they were generated."""
_READABLE: Final = 0.8
"""Share of the answers that must be read as they were generated."""
_FLAG: Final = "--spec-ngram-simple-size-n"


Sizes: TypeAlias = Collection[tuple[int, int]]
"""Lookups with lengths."""
USUAL_SIZES: Final = tuple(product(LOOKUPS, LENGTHS))
"""Lookups and lengths that are replayed where nobody chose."""


def offers_lookups(server: Server | None) -> bool:
    """Whether it is ours and takes sizes for them (b8955 on: before, the draft length cuts their drafts)."""
    return isinstance(server, LaunchedServer) and server.plan.capabilities.flag(_FLAG) is not None


def sizes_for(
    server: Server, traffic: TrafficSettings, wanted: Sizes = USUAL_SIZES
) -> tuple[tuple[int, int], ...]:
    """Those of the wanted sizes that can be replayed: all or none.

    None for several requests at once: the drafts of others share each pass, which no single text tells.
    """
    return tuple(wanted) if traffic.concurrency == 1 and offers_lookups(server) else ()


def rows_of(sizes: Sizes) -> set[int]:
    """Rows of the longest passes, at which verification has to be probed."""
    return {min(MOST_TOKENS, length + 1) for _, length in sizes}


async def replays_of(
    client: LlamaClient,
    answers: Sequence[RequestResult],
    sizes: Sizes,
    v: Mapping[int, float],
    *,
    on_problem: Callable[[str], None],
) -> tuple[Replay, ...]:
    """What lookups make of the answers of a server that does not speculate; v: V(n) as probed.

    Nothing where the server does not read its answers back as it wrote them: why is told.
    """
    if not sizes or not any(n > 1 for n in v):
        return ()
    try:
        texts = await tokens_of(client, answers)
    except ServerError as error:
        on_problem(f"n-gram lookups cannot be predicted: {error}")
        return ()
    if len(texts) < _READABLE * len(answers):
        # Those that are left are no random ones.
        on_problem(
            f"n-gram lookups cannot be predicted: {len(answers) - len(texts)} of {counted(len(answers), 'answer')} "
            "read otherwise than they were written"
        )
        return ()
    return await asyncio.to_thread(replayed, texts, sizes, v)


async def tokens_of(client: LlamaClient, answers: Sequence[RequestResult]) -> tuple[Answered, ...]:
    """The answers as the server read and wrote them.

    Text may be spelled in other tokens than it was generated in: an answer whose number of tokens differs is left
    out. Raises ServerError.
    """
    found = []
    for answered in answers:
        asked = answered.prompt
        text = asked.text
        if asked.messages is not None:
            text = await client.templated([{"role": m.role, "content": m.content} for m in asked.messages])
        prompt = await client.token_ids(text or "", special=True)
        tokens = await client.token_ids(answered.text)
        # The token that ends an answer shows in no text.
        if abs(answered.passes.predicted_n - len(tokens)) <= 1 + _MISREAD * len(tokens):
            found.append(Answered(prompt, tokens[: answered.limit], answered.limit))
    return tuple(found)


def replayed(texts: Sequence[Answered], sizes: Sizes, v: Mapping[int, float]) -> tuple[Replay, ...]:
    """What each lookup and length makes of the texts, if verification costs V(n).

    A pass that drafts has the usual fixed rest as well. Empty where no text is known or nothing was probed.
    """
    cost = CostModel(t1_ms=1.0, c=0.0, v=v, u=ASSUMED_REST)
    if not texts or not cost.probed:
        return ()
    found = []
    for lookup, alike in groupby(sorted(set(sizes)), key=itemgetter(0)):
        ready = [Lookups(text, lookup) for text in texts]
        made = (replay(ready, length, lambda d: cost.pass_cost(d) if d else 1.0) for _, length in alike)
        found += [each for each in made if each is not None]
    return tuple(found)
