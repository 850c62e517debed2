from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from spectui.lab.servers import machine
from spectui.lab.servers.machine import MachineMonitor, this_machine

GIB = 1024**3


def refusing(code: int) -> Callable[..., object]:
    """A function of NVML that answers with this error."""

    def refuse(*_: object) -> object:
        raise pynvml.NVMLError(code)

    return refuse


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML with two GPUs, of which the first does not say how busy it is."""

    def rates(device: int) -> SimpleNamespace:
        if device == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(gpu=37)

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda device: f"GPU {device}")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", rates)
    monkeypatch.setattr(
        pynvml,
        "nvmlDeviceGetMemoryInfo",
        lambda device: SimpleNamespace(used=(device + 1) * GIB, total=24 * GIB),
    )


def test_this_machine_is_described_by_what_it_says() -> None:
    described = this_machine()
    assert described.name == platform.node()
    assert described.memory_gib == pytest.approx(psutil.virtual_memory().total / GIB, abs=0.06)
    assert described.cores == psutil.cpu_count(logical=False)
    assert described.cpu is None or described.cpu.strip()


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
async def test_without_nvml_the_gpu_is_unknown_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", refusing(code))
    view = await MachineMonitor().sample()
    assert (view.gpu_used_gib, view.gpu_total_gib, view.gpu_percent) == (None, None, None)
    assert view.cpu_percent is not None
    assert view.memory_total_gib == pytest.approx(psutil.virtual_memory().total / GIB, abs=0.06)
    assert this_machine().gpus == ()


@pytest.mark.usefixtures("two_gpus")
async def test_the_memory_of_all_gpus_is_summed_and_the_busiest_told() -> None:
    view = await MachineMonitor().sample()
    assert (view.gpu_used_gib, view.gpu_total_gib, view.gpu_percent) == (3.0, 48.0, 37.0)
    assert this_machine().gpus == ("GPU 0", "GPU 1")


@pytest.mark.usefixtures("two_gpus")
async def test_gpus_that_do_not_say_how_busy_they_are_are_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = refusing(pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", refuse)
    view = await MachineMonitor().sample()
    assert (view.gpu_total_gib, view.gpu_percent) == (48.0, None)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("function", ["nvmlDeviceGetCount", "nvmlDeviceGetMemoryInfo"])
async def test_a_gpu_that_tells_no_memory_is_unknown(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    monkeypatch.setattr(pynvml, function, refusing(pynvml.NVML_ERROR_NOT_SUPPORTED))
    view = await MachineMonitor().sample()
    assert (view.gpu_used_gib, view.gpu_total_gib, view.gpu_percent) == (None, None, None)


@pytest.mark.parametrize(("python_says", "cpu"), [("arm", "arm"), ("", None)])
def test_without_proc_python_names_the_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, python_says: str, cpu: str | None
) -> None:
    monkeypatch.setattr(machine, "Path", lambda name: tmp_path / str(name).lstrip("/"))
    monkeypatch.setattr(platform, "processor", lambda: python_says)
    assert this_machine().cpu == cpu


def test_cores_that_the_system_does_not_count_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: None)
    assert this_machine().cores is None
