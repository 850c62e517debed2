"""What an attached server does not say of its drafts, learnt from its answers."""

from __future__ import annotations

from typing import Final

from spectui.core.profile import TuningProfile
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.servers.open import Progress
from spectui.lab.servers.server import AttachedServer, Server
from spectui.lab.workloads.workloads import PromptSequence, Workload

_ASKED: Final = 2
"""Prompts whose answers show what an attached server does not say of its drafts."""


def first_prompt(profile: TuningProfile) -> int:
    """Number of the first prompt of a run: behind those that `known_settings` may have asked.

    The baseline of the same profile begins there as well, so that both sides answer the same.
    """
    return _ASKED if profile.attached else 0


async def known_settings(
    server: Server, workload: Workload, progress: Progress
) -> tuple[TuningProfile, bool | None]:
    """The settings that are measured, and whether drafts have one length, where only an answer can tell."""
    if not isinstance(server, AttachedServer) or server.length_known:
        return server.profile, None
    progress("finding out the draft length")
    answer = Collector(server.profile.with_traffic(concurrency=1, warmup=0))
    await answer.send(server, PromptSequence(workload), requests=_ASKED)
    learnt = server.profile.with_speculation(draft_length=min(64, max(1, answer.longest_draft)))
    return learnt, not answer.cut_amid and server.profile.speculation.fixed_length
