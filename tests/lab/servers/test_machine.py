from __future__ import annotations

import platform

import psutil
import pytest

from spectui.lab.servers.machine import this_machine


def test_this_machine_is_described_by_what_it_says() -> None:
    machine = this_machine()
    assert machine.name == platform.node()
    assert machine.memory_gib == pytest.approx(psutil.virtual_memory().total / 1024**3, abs=0.06)
    assert machine.cores == psutil.cpu_count(logical=False)
    assert machine.cpu is None or machine.cpu.strip()
