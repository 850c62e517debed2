"""The model files of a profile before a launch: can they be read, do they fit each other, and into the memory.

The files themselves are read by a worker process (`llama.models.worker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectui.core.profile import TuningProfile, used_draft
from spectui.core.text import one_line
from spectui.core.verdict.findings import Failure, Finding, launch_finding
from spectui.core.views.snapshot import MachineView
from spectui.errors import LaunchError
from spectui.llama.binary.find import Device
from spectui.llama.log.events import LogFailure
from spectui.llama.log.parser import LogParser
from spectui.llama.models.facts import DraftCheck, ModelFacts, ModelProblem, compare, read_facts

PAIRED_MODE: Final = "draft-simple"
"""The mode whose draft must have the target's tokenizer."""
_UNSURE: Final = frozenset({"arch-unknown"})
"""Codes that say something about llama.cpp's library here, and nothing about the server."""
_GIB: Final = 1024**3
_MIB_PER_GIB: Final = 1024


def too_large(models_gib: float, machine: MachineView, devices: Sequence[Device]) -> list[Finding]:
    """Models that fit into no memory: of a GPU, NVML and the binary's own list tell, whichever says more."""
    if machine.memory_total_gib is None:
        return []
    listed = sum(device.total_mib for device in devices) / _MIB_PER_GIB
    whole = machine.memory_total_gib + max(machine.gpu_total_gib or 0.0, listed)
    if models_gib <= whole:
        return []
    text = f"the models take {models_gib:.1f} GiB, and memory and GPUs have {whole:.1f} GiB together"
    evidence = {"models_gib": round(models_gib, 1), "memory_gib": round(whole, 1)}
    return [
        launch_finding(
            Failure(code="out-of-memory", text=text), "use smaller or more quantised models", evidence
        )
    ]


@dataclass(frozen=True, slots=True)
class ModelFindings:
    """What the model files said. size_gib: of all that could be read; 0 for none."""

    findings: tuple[Finding, ...] = ()
    size_gib: float = 0.0


def file_of(path: str | None) -> Path | None:
    """The file of that path; None where none is named or there."""
    return Path(path) if path is not None and Path(path).is_file() else None


async def require_models(profile: TuningProfile, cache: Path | None) -> None:
    """Raise LaunchError for a file that is no model, or a draft that does not fit; missing files are let through.

    What llama.cpp's library here is too old for is let through as well: the server may be newer.
    """
    for finding in (await read_models(profile, cache)).findings:
        if finding.code not in _UNSURE:
            raise LaunchError(f"{finding.message}: {finding.advice}", code=finding.code)


async def read_models(profile: TuningProfile, cache: Path | None) -> ModelFindings:
    """Read those files of a profile that its mode uses and that are there."""
    speculation = profile.speculation
    target, draft = file_of(profile.server.model), file_of(used_draft(speculation))
    return await read_pair(target, draft, speculation.mode, cache)


async def read_pair(target: Path | None, draft: Path | None, mode: str, cache: Path | None) -> ModelFindings:
    """Read the files that are there; whether a draft fits is asked where the mode depends on it."""
    found: list[tuple[str, ModelFacts | ModelProblem]] = []
    fits: tuple[DraftCheck, ...] = ()
    if target is not None and draft is not None:
        both = await compare(target, [draft], cache_dir=cache)
        fits = both.drafts if mode == PAIRED_MODE else ()
        found = [("target", both.target), ("draft", both.drafts[0].facts)]
    else:
        files = {path: role for role, path in (("target", target), ("draft", draft)) if path is not None}
        answers = await read_facts(tuple(files), cache_dir=cache)
        found = [(files[path], facts) for path, facts in answers.items()]
    findings = [_unreadable(role, facts) for role, facts in found if isinstance(facts, ModelProblem)]
    findings += [_mismatch(fit) for fit in fits if fit.compatibility.compatible is False]
    size = sum(facts.size_bytes for _, facts in found if isinstance(facts, ModelFacts))
    return ModelFindings(tuple(findings), size / _GIB)


def _unreadable(role: str, problem: ModelProblem) -> Finding:
    event = LogParser(with_draft=False).feed(problem.message)
    text = f"the {role} {problem.message}"
    if isinstance(event, LogFailure) and event.code == "arch-unknown":
        advice = "use a newer llama-server, unless it is newer than llama-cpp-python, which says so here"
        return launch_finding(Failure(code="arch-unknown", text=text), advice)
    return launch_finding(Failure(code="model-corrupt", text=text))


def _mismatch(check: DraftCheck) -> Finding:
    reason = check.compatibility.reason
    text = f"the draft {one_line(check.path.name, 80)} has another tokenizer than the target: {reason}"
    advice = "choose a draft with the target's tokenizer"
    return launch_finding(Failure(code="vocab-mismatch", text=text), advice, {"reason": reason})
