"""Draft models on offer: the profile's own list and what lies beside the target, with what is known of each.

Names and sizes come at once; blocks, quantisation and tokenizer compatibility follow from a worker process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from spectui.core.profile import TuningProfile
from spectui.core.views.snapshot import DraftOption
from spectui.llama.models.facts import DraftCheck, ModelProblem, compare, scan_folder


def candidates(profile: TuningProfile) -> tuple[Path, ...]:
    """Draft files worth offering, the profile's own first, the target itself left out."""
    speculation = profile.speculation
    named = [Path(p) for p in (speculation.draft_model, *speculation.draft_models) if p]
    target = Path(profile.server.model) if profile.server.model else None
    found = scan_folder(target.parent) if target is not None and target.parent.is_dir() else []
    return tuple(_distinct([*named, *found], without=target))


async def list_drafts(profile: TuningProfile) -> tuple[DraftOption, ...]:
    """The candidates with name and size only."""
    paths = await asyncio.to_thread(candidates, profile)
    return tuple(DraftOption(path=str(p), name=p.name, size_bytes=_size(p)) for p in paths)


async def examine_drafts(profile: TuningProfile, cache: Path) -> tuple[DraftOption, ...]:
    """The candidates with all that the worker finds out; a file that cannot be read says why."""
    options = await list_drafts(profile)
    if profile.server.model is None or not options:
        return options
    target = Path(profile.server.model)
    found = await compare(target, [Path(o.path) for o in options], cache_dir=cache)
    return tuple(_filled(option, check) for option, check in zip(options, found.drafts, strict=True))


def _filled(option: DraftOption, check: DraftCheck) -> DraftOption:
    facts, fit = check.facts, check.compatibility
    if isinstance(facts, ModelProblem):
        return replace(option, reason=facts.message)
    return replace(
        option,
        quantisation=facts.quantisation,
        blocks=facts.blocks,
        architecture=facts.architecture,
        compatible=fit.compatible,
        reason=fit.reason or "",
    )


def _distinct(paths: Iterable[Path], *, without: Path | None) -> list[Path]:
    seen = {without.resolve()} if without is not None else set()
    kept: list[Path] = []
    for path in paths:
        real = path.resolve()
        if real not in seen:
            seen.add(real)
            kept.append(path)
    return kept


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
