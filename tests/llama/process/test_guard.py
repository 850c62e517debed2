"""The watchman, on real processes: a group ends with its owner, and only then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil

from spectui.llama.process.guard import Watchman

OWNER = """
import os, signal, subprocess
from spectui.llama.process.guard import Watchman
watchman = Watchman()
wrapper = subprocess.Popen(
    ["/bin/sh", "-c", "sleep 600 & echo $!; wait"],
    stdout=subprocess.PIPE, start_new_session=True, preexec_fn=watchman.enrol,
)
print(wrapper.pid, wrapper.stdout.readline().decode().strip(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_owner_takes_the_group_along() -> None:
    owner = subprocess.run([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, check=False, timeout=60)
    assert owner.returncode == -signal.SIGKILL
    processes = [psutil.Process(pid) for pid in map(int, owner.stdout.split()) if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_after_the_dismissal_the_group_lives_on() -> None:
    watchman = Watchman()
    child = subprocess.Popen(
        ["/bin/sleep", "600"],
        start_new_session=True,
        preexec_fn=watchman.enrol,  # noqa: PLW1509  no thread of ours runs
    )
    try:
        watchman.dismiss()
        assert child.poll() is None
        os.killpg(child.pid, 0)
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL


def test_nobody_enrolled_is_nobody_ended() -> None:
    watchman = Watchman()
    shell = watchman._shell
    assert shell.stdin is not None
    shell.stdin.close()  # as when spectui is gone: the watchman knows of no group, and ends
    assert shell.wait(timeout=30) == 1
    watchman.dismiss()
