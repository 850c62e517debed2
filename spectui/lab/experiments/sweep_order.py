"""What the user asked for -> an order, whether that can be swept, how long it may take, where its prompts begin.

None of it needs a server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from spectui.core.profile import (
    NGRAM_SIMPLE,
    OFF,
    TrafficSettings,
    TuningProfile,
    needs_draft_model,
    used_draft,
)
from spectui.core.sweep.grid import PLAIN, Condition, Grid, Pace
from spectui.core.text import one_line
from spectui.errors import UsageError
from spectui.lab.experiments.sweep_record import SweepOrder, changed_file, identities, without_swept
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.model_check import require_models
from spectui.store.baselines import BaselineStore

_USUAL_DRAFT: Final = "draft-simple"


async def require_sweepable(order: SweepOrder, launcher: Launcher, cache: Path | None) -> None:
    """Make sure that the servers of a sweep can start and speculate, as far as that shows without one.

    cache: folder where facts of model files are kept. Raises SpectuiError for a file that is another one by now, a
    setting that the binary does not take, and for models that are missing, unreadable or do not fit.
    """
    grid = order.grid
    binary = await launcher.binary(order.profile)
    build = (await launcher.capabilities(binary)).version.label
    other = str(binary) if order.build not in {None, build} else changed_file(order, str(binary))
    if other is not None:
        raise UsageError(
            f"{one_line(other)} is another one than this sweep was measured with, and old cells are not "
            "mixed with new ones: sweep the profile anew"
        )
    kinds = [row[0] for row in grid.fixed] + [family.settings[0] for family in grid.free]
    plans = [await launcher.plan(setting.applied_to(order.profile)) for setting in (PLAIN, *kinds)]
    speculating = [plan.profile for plan in plans[1:]]
    # Rows and families of one mode differ in numbers only.
    for profile in {(p.speculation.mode, used_draft(p.speculation)): p for p in speculating}.values():
        await require_models(profile, cache)


async def order_for(
    profile: TuningProfile,
    launcher: Launcher,
    *,
    modes: tuple[str, ...] | None = None,
    temperatures: tuple[float, ...] | None = None,
    drafts: tuple[str, ...] = (),
    requests: int,
    exhaustive: bool = False,
    **axes: tuple[Any, ...],
) -> SweepOrder:
    """The order of these axes, those left out from the profile. Raises UsageError, BinaryError."""
    if profile.attached:
        raise UsageError(
            "a sweep restarts its server, so it takes a profile that starts one, not the address of a server"
        )
    speculation = profile.speculation
    named = drafts or ((speculation.draft_model,) if speculation.draft_model else ())
    found = tuple(dict.fromkeys(map(_absolute, named)))
    if modes is None:
        modes = await _modes_for(profile, launcher, drafts=bool(found))
    grid = Grid(
        modes=modes,
        drafts=found,
        temperatures=temperatures or (profile.sampling.temperature,),
        **axes,
    )
    if modes and set(modes) == {OFF}:
        raise UsageError(
            "off is always measured, and there is nothing to compare with it: name another mode, such as "
            f"{NGRAM_SIMPLE}"
        )
    lost = [mode for mode in modes if needs_draft_model(mode) and not found]
    if lost or not grid.settings:
        raise UsageError(
            f"{lost[0] if lost else 'a sweep'} needs a draft model: set speculation.draft_model, give --draft, "
            "or sweep --mode ngram-simple"
        )
    binary = await launcher.binary(profile)
    capabilities = await launcher.capabilities(binary)
    offered = capabilities.modes
    unknown = next((one_line(mode, 40) for mode in modes if mode not in offered), None)
    if unknown is not None:
        raise UsageError(f"this llama-server offers no mode {unknown}: choose among {', '.join(offered)}")
    files = identities([str(binary), profile.server.model, *found])
    first = grid.conditions[0]
    # The conditions take the place of the profile's own as well.
    profile = without_swept(profile)
    profile = profile.with_traffic(workload=first.workload).with_sampling(temperature=first.temperature)
    return SweepOrder(
        profile=profile,
        grid=grid,
        requests=requests,
        exhaustive=exhaustive,
        files=files,
        build=capabilities.version.label,
    )


def expected_pace(profile: TuningProfile, baselines: BaselineStore) -> Pace:
    """The pace of the newest baseline that was measured with this model on this machine, or an assumed one."""
    tokens = profile.traffic.max_tokens
    model = {f.path for f in identities([profile.server.model])}
    for key, known in baselines.all():
        if key.model.path in model and key.concurrency == profile.traffic.concurrency:
            return Pace(tokens=tokens, speed=known.tokens_per_second * known.streams, measured=True)
    return Pace(tokens=tokens)


def first_prompt_of_cell(order: SweepOrder, condition: Condition, traffic: TrafficSettings) -> int:
    """Number of a cell's first prompt: each temperature has prompts of its own, the same in every server process.

    A process that serves several temperatures so answers none twice.
    """
    slots = traffic.concurrency
    sent = traffic.warmup + max(order.requests, 2 * slots) + slots - 1
    return order.grid.temperatures.index(condition.temperature) * sent


def _absolute(path: str) -> str:
    """A sweep may be resumed from another folder."""
    return str(Path(path).expanduser().resolve())


async def _modes_for(profile: TuningProfile, launcher: Launcher, *, drafts: bool) -> tuple[str, ...]:
    """The modes that are worth sweeping: the profile's own, its draft's, and n-grams, which take no model."""
    mode = profile.speculation.mode
    offered = (await launcher.capabilities(await launcher.binary(profile))).modes
    wanted = [mode] if mode != OFF else [_USUAL_DRAFT] if drafts else []
    return tuple(dict.fromkeys([*wanted, *([NGRAM_SIMPLE] if NGRAM_SIMPLE in offered else [])]))
