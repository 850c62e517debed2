"""Which program runs a sweep: this one, one beside it, or one whose number another process got."""

from __future__ import annotations

import os
from dataclasses import replace

import psutil

from spectui.store.owners import runs_beside, this_program
from spectui.store.records import SweepOwner

PARENT = psutil.Process(os.getppid())
BESIDE = SweepOwner(host=this_program().host, pid=PARENT.pid, started=PARENT.create_time())


def test_this_program_is_not_beside_itself() -> None:
    assert this_program().pid == os.getpid()
    assert not runs_beside(this_program())


def test_another_process_is_known_by_its_number_and_its_start() -> None:
    assert runs_beside(BESIDE)
    assert not runs_beside(replace(BESIDE, started=BESIDE.started - 60))
    assert not runs_beside(replace(BESIDE, pid=2**31 - 1))


def test_of_other_hosts_nothing_is_known() -> None:
    assert not runs_beside(replace(BESIDE, host=f"not {BESIDE.host}"))
