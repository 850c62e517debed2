"""Whether the servers of two profiles may stay loaded side by side: model sizes against free memory, with a margin.

A server that was squeezed is slower, so where it is not certain that both fit, they take turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from spectui.core.profile import TuningProfile, needs_draft_model
from spectui.core.views.snapshot import MachineView
from spectui.llama.binary.find import Device

_GIB: Final = 1024**3
_MARGIN: Final = 1.3
"""Contexts and buffers on top of the weights, as a factor."""
_FIXED_GIB: Final = 0.5
"""And per server, whatever its size."""
_SHARD: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def needed_gib(profile: TuningProfile) -> float | None:
    """GiB that a server takes, from the sizes of its model files; None where the profile names no model."""
    names = [profile.server.model]
    if needs_draft_model(profile.speculation.mode):
        names.append(profile.speculation.draft_model)
    if any(name is None for name in names):
        return None
    return sum(_size(Path(n)) for n in names if n is not None) / _GIB * _MARGIN + _FIXED_GIB


def obstacle(
    profiles: Sequence[TuningProfile], machine: MachineView, devices: Sequence[Device] = ()
) -> str | None:
    """Why these servers cannot all be loaded at once, in a few words; None where they can.

    devices: what their binaries list. With one of them in use the models must fit on it, else in main memory.
    """
    ports = [p.server.port for p in profiles if p.server.port is not None]
    if len(set(ports)) < len(ports):
        return "both name the same port"
    needs = [needed_gib(p) for p in profiles]
    known = [need for need in needs if need is not None]
    if len(known) < len(needs):
        return "how much memory they take is not known"
    free, place = _free(profiles, machine, devices)
    if free is None:
        return f"how much {place} memory is free is not known"
    if sum(known) > free:
        return f"they take about {sum(known):.1f} GiB, and {free:.1f} GiB of {place} memory are free"
    return None


def _free(
    profiles: Sequence[TuningProfile], machine: MachineView, devices: Sequence[Device]
) -> tuple[float | None, str]:
    on_gpu = [p for p in profiles if p.server.gpu_layers != 0 and p.server.device != "none"]
    if not on_gpu or not devices:
        total, used = machine.memory_total_gib, machine.memory_used_gib
        return (None if total is None or used is None else total - used), "main"
    if machine.gpu_total_gib is not None and machine.gpu_used_gib is not None:
        return machine.gpu_total_gib - machine.gpu_used_gib, "GPU"
    return sum(d.free_mib for d in devices) / 1024, "GPU"


def _size(path: Path) -> int:
    """Bytes of a model file; of all its parts where it is split."""
    files = [path]
    if _SHARD.search(path.name):
        parts = [f for f in path.parent.iterdir() if _SHARD.search(f.name)]
        files = [f for f in parts if _SHARD.sub("", f.name) == _SHARD.sub("", path.name)]
    return sum(f.stat().st_size for f in files)
