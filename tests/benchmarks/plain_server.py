"""The scripted server without speculation, on which verification can be probed: `python plain_server.py RATE`.

A token is a word. A prompt of tokens reuses the longest beginning that the slot has, and a pass over n tokens costs
V(n) = 1 + (n - 1) / 5 plain steps.
"""

from __future__ import annotations

import asyncio
import sys

from tests.scripted_server import Request, Script, ScriptedServer, send_json

PER_ROW = 0.2


class PlainServer(ScriptedServer):
    """Answers /tokenize, and prompts that are given as tokens."""

    _cached: tuple[int, ...] = ()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        prompt = request.body.get("prompt")
        if request.path == "/tokenize":
            await send_json(writer, {"tokens": list(range(len(request.body["content"].split())))})
        elif isinstance(prompt, list):
            await send_json(writer, {"content": "", "timings": self._processed(tuple(prompt))})
        else:
            await super()._answer(request, writer)

    def _processed(self, prompt: tuple[int, ...]) -> dict[str, float]:
        kept = 0
        # The last token is always computed: its logits are what is asked for.
        while kept < min(len(self._cached), len(prompt) - 1) and self._cached[kept] == prompt[kept]:
            kept += 1
        self._cached = prompt
        rows = len(prompt) - kept
        milliseconds = self.script.pass_seconds * 1000 * (1 + PER_ROW * (rows - 1))
        return {
            "cache_n": kept,
            "prompt_n": rows,
            "prompt_ms": milliseconds,
            "predicted_n": 1,
            "predicted_ms": 0.001,
        }


async def main() -> None:
    """Serve until killed."""
    async with PlainServer(Script(rate=float(sys.argv[1]), k=0)) as server:
        print(server.url, flush=True)
        await server.down.wait()


if __name__ == "__main__":
    asyncio.run(main())
