from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from spectui.lab.run_to_end import run_to_end

HEAD = """
import asyncio, sys
from spectui.lab.run_to_end import run_to_end
from spectui.llama.process.process import ServerProcess
def say(text): print(text, flush=True)
"""
CLEANS_UP = (
    HEAD
    + """
async def work():
    say("ready")
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        say("cleaned up")
try:
    run_to_end(work())
except KeyboardInterrupt:
    say("interrupted")
    sys.exit(130)
"""
)
SERVER = (
    "import signal, sys, time\nsignal.signal(signal.SIGTERM, {term})\nprint('up', flush=True)\ntime.sleep(60)"
)
OWNS_A_SERVER = (
    HEAD
    + """
async def work():
    up = asyncio.Event()
    server = await ServerProcess.start([sys.executable, "-S", "-c", sys.argv[1]], on_line=lambda _line: up.set())
    await up.wait()
    say(f"ready {server.pid}")
    try:
        await asyncio.Event().wait()
    finally:
        say("stopping")
        await server.stop(term_again_s=float(sys.argv[2]), kill_after_s=float(sys.argv[2]))
        say("stopped")
try:
    run_to_end(work())
except KeyboardInterrupt:
    sys.exit(130)
"""
)
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a script that runs a coroutine to its end."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether the process ends within that time; it is not our child, so nothing tells us."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_the_result_is_handed_over() -> None:
    async def work() -> int:
        return 42

    assert run_to_end(work()) == 42


def test_what_it_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_to_end(work())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_cancels_and_cleans_up(start: Start, number: signal.Signals) -> None:
    process = start(CLEANS_UP)
    assert line_of(process) == "ready"
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert out.split("\n") == ["cleaned up", "interrupted", ""]
    assert err == ""
    assert process.returncode == 130


def test_a_server_is_ended_before_the_interrupt_is_told(start: Start) -> None:
    process = start(OWNS_A_SERVER, SERVER.format(term="signal.SIG_DFL"), "5")
    pid = int(line_of(process).removeprefix("ready "))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert out.split() == ["stopping", "stopped"]
    assert err == ""
    assert process.returncode == 130
    assert gone(pid, 0.5)


def test_a_second_ctrl_c_leaves_no_server_behind(start: Start) -> None:
    """The server ignores SIGTERM; the impatient user gets out, and the server is ended all the same."""
    process = start(OWNS_A_SERVER, SERVER.format(term="signal.SIG_IGN"), "1")
    pid = int(line_of(process).removeprefix("ready "))
    os.kill(process.pid, signal.SIGINT)
    assert line_of(process) == "stopping"
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert err == ""
    assert process.returncode == 130
    assert gone(pid)
