"""What the machine is, and what it is doing: GPU memory and use where NVML answers, CPU and memory otherwise.

Asked in a worker thread, since NVML can block for a while; a machine without a GPU is the normal case.
"""

from __future__ import annotations

import asyncio
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from spectui.core.views.snapshot import MachineView
from spectui.store.records import Machine

_GIB: Final = 1024**3


class MachineMonitor:
    """Samples on request. The libraries load at the first sample, off the event loop."""

    def __init__(self) -> None:
        self._psutil: Any = None
        self._nvml: Any = None

    async def sample(self) -> MachineView:
        """One reading; fields that nobody can tell are None."""
        return _coarse(await asyncio.to_thread(self._sample))

    def _sample(self) -> MachineView:
        if self._psutil is None:
            self._load()
        memory = self._psutil.virtual_memory()
        used, total, percent = self._gpu()
        return MachineView(
            gpu_used_gib=used,
            gpu_total_gib=total,
            gpu_percent=percent,
            cpu_percent=self._psutil.cpu_percent(),
            memory_used_gib=(memory.total - memory.available) / _GIB,
            memory_total_gib=memory.total / _GIB,
        )

    def _load(self) -> None:
        import psutil  # noqa: PLC0415  loaded after the first frame

        self._psutil = psutil
        psutil.cpu_percent()
        import pynvml  # noqa: PLC0415

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            self._nvml = pynvml

    def _gpu(self) -> tuple[float | None, float | None, float | None]:
        """Memory summed over the GPUs in GiB, and the busiest one's use in percent."""
        if self._nvml is None:
            return None, None, None
        nvml = self._nvml
        used = total = 0.0
        busiest: float | None = None
        with suppress(nvml.NVMLError):
            for index in range(nvml.nvmlDeviceGetCount()):
                device = nvml.nvmlDeviceGetHandleByIndex(index)
                memory = nvml.nvmlDeviceGetMemoryInfo(device)
                used += memory.used / _GIB
                total += memory.total / _GIB
                with suppress(nvml.NVMLError):
                    busiest = max(busiest or 0.0, float(nvml.nvmlDeviceGetUtilizationRates(device).gpu))
        return (used, total, busiest) if total else (None, None, None)


def this_machine() -> Machine:
    """What this machine is. Blocks for as long as NVML takes to begin."""
    import psutil  # noqa: PLC0415  loaded when needed

    return Machine(
        name=platform.node(),
        cpu=_processor(),
        cores=psutil.cpu_count(logical=False),
        memory_gib=round(psutil.virtual_memory().total / _GIB, 1),
        gpus=_gpus(),
    )


def _processor() -> str | None:
    """Linux names the processor in this file; elsewhere Python knows."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip() or None
    return platform.processor() or None


def _gpus() -> tuple[str, ...]:
    import pynvml  # noqa: PLC0415

    try:
        pynvml.nvmlInit()
        devices = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return tuple(str(pynvml.nvmlDeviceGetName(device)) for device in devices)
    except pynvml.NVMLError:
        return ()


def _coarse(view: MachineView) -> MachineView:
    """Rounded to what is shown, so that noise in the last digits repaints nothing."""

    def rounded(value: float | None, digits: int) -> float | None:
        return None if value is None else round(value, digits)

    return MachineView(
        gpu_used_gib=rounded(view.gpu_used_gib, 1),
        gpu_total_gib=rounded(view.gpu_total_gib, 1),
        gpu_percent=rounded(view.gpu_percent, 0),
        cpu_percent=rounded(view.cpu_percent, 0),
        memory_used_gib=rounded(view.memory_used_gib, 1),
        memory_total_gib=rounded(view.memory_total_gib, 1),
    )
