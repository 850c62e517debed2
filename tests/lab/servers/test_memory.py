from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.views.snapshot import MachineView
from spectui.lab.servers.memory import needed_gib, obstacle
from spectui.llama.binary.find import Device

GIB = 1024**3


def sparse(path: Path, gib: float) -> str:
    with path.open("wb") as file:
        file.truncate(int(gib * GIB))
    return str(path)


def profile_of(model: str | None, draft: str | None = None, **server: Any) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(model=model, **server),
        speculation=SpeculationSettings(mode="draft-simple" if draft else "off", draft_model=draft),
    )


def machine(free: float, *, gpu: float | None = None) -> MachineView:
    return MachineView(
        memory_total_gib=64.0,
        memory_used_gib=64.0 - free,
        gpu_total_gib=None if gpu is None else 24.0,
        gpu_used_gib=None if gpu is None else 24.0 - gpu,
    )


def test_a_server_takes_its_models_and_a_margin(tmp_path: Path) -> None:
    target, draft = sparse(tmp_path / "t.gguf", 4), sparse(tmp_path / "d.gguf", 1)
    assert needed_gib(profile_of(target)) == pytest.approx(4 * 1.3 + 0.5)
    assert needed_gib(profile_of(target, draft)) == pytest.approx(5 * 1.3 + 0.5)
    assert needed_gib(profile_of(None)) is None


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    first = sparse(tmp_path / "big-00001-of-00002.gguf", 1)
    sparse(tmp_path / "big-00002-of-00002.gguf", 2)
    sparse(tmp_path / "bigger-00001-of-00001.gguf", 8)
    assert needed_gib(profile_of(first)) == pytest.approx(3 * 1.3 + 0.5)


def test_both_fit_or_not_into_main_memory(tmp_path: Path) -> None:
    both = [profile_of(sparse(tmp_path / "t.gguf", 4))] * 2
    assert obstacle(both, machine(11.5)) is None
    assert obstacle(both, machine(11.3)) == "they take about 11.4 GiB, and 11.3 GiB of main memory are free"
    unknown = obstacle(both, MachineView())
    assert unknown is not None
    assert "not known" in unknown
    assert obstacle([both[0], profile_of(None)], machine(60)) is not None


def test_with_a_gpu_in_use_its_memory_counts(tmp_path: Path) -> None:
    model = sparse(tmp_path / "t.gguf", 4)
    both = [profile_of(model)] * 2
    device = Device(name="Vulkan0", description="a card", total_mib=16384, free_mib=8192)
    assert obstacle(both, machine(60, gpu=12.0), [device]) is None
    assert "GPU" in (obstacle(both, machine(60, gpu=8.0), [device]) or "")
    # A card that the binary cannot use takes nothing.
    assert "main memory" in (obstacle(both, machine(8, gpu=24.0)) or "")
    assert "8.0 GiB of GPU memory" in (obstacle(both, machine(60), [device]) or "")
    for cpu in ({"gpu_layers": 0}, {"device": "none"}):
        assert obstacle([profile_of(model, **cpu)] * 2, machine(60, gpu=1.0), [device]) is None


def test_one_port_serves_one_server(tmp_path: Path) -> None:
    model = sparse(tmp_path / "t.gguf", 1)
    same = [profile_of(model, port=8080)] * 2
    assert obstacle(same, machine(60)) == "both name the same port"
    assert obstacle([same[0], profile_of(model, port=8081)], machine(60)) is None
    assert obstacle([same[0], profile_of(model)], machine(60)) is None
