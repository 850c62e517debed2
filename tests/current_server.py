"""A current llama-server hosted by xllamacpp in a process of its own, with an acceptance that is known.

Synthetic acceptance (`--spec-synth-rates`, llama.cpp #27711) accepts draft tokens by chance: rate j is the share of
passes that accept at least j tokens, which is S(j). Its output means nothing. Run as a script this is the host.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


def available() -> bool:
    """Whether the host can run here."""
    return find_spec("xllamacpp") is not None


@contextmanager
def current_server(
    target: Path,
    draft: Path | None = None,
    *,
    rates: Sequence[float] = (),
    slots: int = 1,
    context: int = 4096,
) -> Iterator[str]:
    """The address of a running server; draft length is the number of rates. It ends with this block."""
    orders = {
        "target": str(target),
        "draft": str(draft) if draft else None,
        "rates": list(rates),
        "slots": slots,
        "context": context,
    }
    host = subprocess.Popen(
        [sys.executable, __file__, json.dumps(orders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert host.stdout is not None
        for line in host.stdout:
            if line.startswith("listening "):
                yield line.split()[1]
                return
        raise RuntimeError(f"the host ended with status {host.wait()}")
    finally:
        host.kill()
        host.wait()


def _host(target: str, draft: str | None, rates: list[float], slots: int, context: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = target
    params.n_ctx = context
    params.n_parallel = slots
    # Threads that wait for each other take ten times as long on a busy machine.
    params.cpuparams.n_threads = params.speculative.draft.cpuparams.n_threads = 1
    params.port = 0
    params.hostnames = ["127.0.0.1"]
    params.endpoint_metrics = True
    params.endpoint_slots = True
    if draft is not None:
        speculative = params.speculative
        speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        speculative.draft.mparams.path = draft
        speculative.draft.n_max = len(rates)
        speculative.draft.n_min = 0
        speculative.draft.p_min = 0.0
        speculative.synth_rates = rates
    server = xllamacpp.Server(params)
    sys.stdout.write(f"listening {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _host(**json.loads(sys.argv[1]))
