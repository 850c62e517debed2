from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectui.errors import BinaryError, LaunchError
from spectui.llama.process.process import ServerProcess, describe_exit

READY = "import sys, time, signal, os\ndef say(x): print(x, flush=True)\n"
SLEEPS = READY + "say('ready'); time.sleep(60)"
STUBBORN = (
    READY + "signal.signal(signal.SIGTERM, lambda *_: say('no')); say('ready')\nwhile True: time.sleep(60)"
)
SECOND_TERM = READY + (
    "n = []\ndef on(*_):\n    n.append(1)\n    if len(n) == 2: os._exit(7)\n"
    "signal.signal(signal.SIGTERM, on); say('ready')\nwhile True: time.sleep(60)"
)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  nothing signals it
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Launcher:
    """Starts scripts and stops what a failed test leaves."""

    def __init__(self) -> None:
        self._started: list[ServerProcess] = []

    async def __call__(self, script: str, **options: Any) -> ServerProcess:
        process = await ServerProcess.start([sys.executable, "-S", "-c", script], **options)
        self._started.append(process)
        return process

    async def ready(self, script: str) -> ServerProcess:
        process = await self(script)
        await until(lambda: "ready" in process.tail())
        return process

    async def close(self) -> None:
        for process in self._started:
            await process.stop(term_again_s=0, kill_after_s=0)


@pytest.fixture
async def launch() -> AsyncIterator[Launcher]:
    launcher = Launcher()
    yield launcher
    await launcher.close()


async def test_output_environment_and_exit_code(launch: Launcher, tmp_path: Path) -> None:
    seen: list[str] = []
    process = await launch(
        READY
        + "say(os.environ['X']); print('err', file=sys.stderr, flush=True); say(sys.stdin.read()); sys.exit(3)",
        env={"X": "value"},
        on_line=seen.append,
        log_file=tmp_path / "server.log",
    )
    assert await process.wait() == 3
    assert process.returncode == 3
    assert seen == ["value", "err", ""]
    assert process.tail(2) == ("err", "")
    assert (tmp_path / "server.log").read_text() == "value\nerr\n\n"


async def test_only_the_given_environment_is_passed(
    launch: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "7")
    process = await launch(READY + "say(os.environ.get('LLAMA_ARG_CTX_SIZE'))", env={})
    await process.wait()
    assert process.tail() == ("None",)


async def test_it_leads_its_own_session(launch: Launcher) -> None:
    process = await launch.ready(SLEEPS)
    assert os.getsid(process.pid) == process.pid
    assert os.getpgid(process.pid) == process.pid


async def test_stop_twice_and_at_once(launch: Launcher) -> None:
    process = await launch.ready(SLEEPS)
    codes = await asyncio.gather(process.stop(), process.stop())
    assert set(codes) == {-signal.SIGTERM}
    assert await process.stop() == -signal.SIGTERM
    assert gone(process.pid)


async def test_stop_after_the_end_returns_its_code(launch: Launcher) -> None:
    process = await launch("import sys; sys.exit(5)")
    await process.wait()
    assert await process.stop() == 5


async def test_stop_before_it_said_anything(launch: Launcher) -> None:
    process = await launch(SLEEPS)
    assert await process.stop() == -signal.SIGTERM


async def test_a_second_term_is_sent(launch: Launcher) -> None:
    process = await launch.ready(SECOND_TERM)
    assert await process.stop(term_again_s=0.05, kill_after_s=30) == 7


async def test_what_ignores_term_is_killed(launch: Launcher) -> None:
    process = await launch.ready(STUBBORN)
    assert await process.stop(term_again_s=0.05, kill_after_s=0.05) == -signal.SIGKILL
    assert gone(process.pid)


async def test_a_cancelled_stop_goes_on(launch: Launcher) -> None:
    process = await launch.ready(STUBBORN)
    stopping = asyncio.create_task(process.stop(term_again_s=0.05, kill_after_s=0.05))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert await process.wait() == -signal.SIGKILL


async def test_children_that_outlive_it_are_swept(launch: Launcher) -> None:
    process = await launch.ready(
        READY
        + "import subprocess\nc = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "say(c.pid); say('ready'); time.sleep(60)"
    )
    child = int(process.tail(2)[0])
    assert not gone(child)
    os.kill(process.pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    await until(lambda: gone(child))


async def test_a_flood_neither_blocks_the_child_nor_fills_the_memory(launch: Launcher) -> None:
    process = await launch(
        READY + "for i in range(30000): sys.stdout.write('x' * 400 + '\\n')\n"
        "sys.stdout.write('y' * 5_000_000 + '\\n'); say('end')"
    )
    assert await process.wait() == 0
    assert process.tail(1) == ("end",)
    assert len(process.tail(100_000)) == 2000
    assert len(process.tail(2)[0]) == 4000


async def test_the_exit_is_seen_although_a_stranger_holds_the_output(launch: Launcher) -> None:
    process = await launch(
        READY
        + "import subprocess\nc = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(20)'],"
        " start_new_session=True)\nsay(c.pid); sys.exit(4)"
    )
    async with asyncio.timeout(10):
        assert await process.wait() == 4
    os.kill(int(process.tail(1)[0]), signal.SIGKILL)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "was not found"),
        (b"#!/bin/sh\n", 0o644, "is not executable"),
        (b"\x7fELF nonsense", 0o755, "is no program for this machine"),
        (b"#!/nowhere/sh\n", 0o755, "was not found"),
    ],
)
async def test_what_cannot_be_run_is_one_line(
    tmp_path: Path, content: bytes | None, mode: int, words: str
) -> None:
    program = tmp_path / "llama-server"
    if content is not None:
        program.write_bytes(content)
        program.chmod(mode)
    with pytest.raises(BinaryError) as caught:
        await ServerProcess.start([str(program)])
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


async def test_unusable_arguments_and_log(tmp_path: Path) -> None:
    with pytest.raises(BinaryError):
        await ServerProcess.start([])
    with pytest.raises(BinaryError):
        await ServerProcess.start([str(tmp_path)])
    with pytest.raises(LaunchError, match="null byte"):
        await ServerProcess.start([sys.executable, "a\0b"])
    with pytest.raises(LaunchError, match="cannot be written"):
        await ServerProcess.start([sys.executable], log_file=tmp_path)


async def test_no_descriptor_is_left_open(launch: Launcher) -> None:
    me = psutil.Process()
    await (await launch("pass")).wait()
    before = me.num_fds()
    for _ in range(3):
        await (await launch("pass")).wait()
    with pytest.raises(BinaryError):
        await ServerProcess.start(["/nowhere/llama-server"])
    await until(lambda: me.num_fds() <= before)


async def test_losing_the_last_reference_kills() -> None:
    process = await ServerProcess.start([sys.executable, "-S", "-c", SLEEPS])
    pid, ended = process.pid, process._ended
    del process
    gc.collect()
    assert await ended == -signal.SIGKILL
    assert gone(pid)


PARENT = """
import asyncio, sys
from spectui.llama.process import process
async def main():
    {first}
    server = await process.ServerProcess.start([sys.executable, "-S", "-c", sys.argv[1]])
    while "ready" not in server.tail():
        await asyncio.sleep(0.005)
    print(server.pid, flush=True)
    {then}
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("then", "kill"),
    [
        pytest.param("await asyncio.sleep(60)", signal.SIGKILL, id="kill -9"),
        pytest.param("await asyncio.sleep(60)", signal.SIGINT, id="ctrl-c"),
        pytest.param("sys.exit(1)", None, id="exit"),
        pytest.param("return", None, id="end of the event loop"),
        pytest.param("asyncio.get_running_loop().stop()", None, id="loop stopped"),
        pytest.param("raise KeyError", None, id="crash"),
    ],
)
@pytest.mark.parametrize(
    "first",
    [
        pytest.param("pass", id="this system"),
        # Nothing tells the child of its parent's death there: the watchman alone ends the server.
        pytest.param(
            "sys.platform = 'darwin'; process.ctypes.CDLL = None", id="without a parent-death signal"
        ),
    ],
)
async def test_no_orphan_however_the_parent_ends(first: str, then: str, kill: signal.Signals | None) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT.format(first=first, then=then),
        STUBBORN,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    try:
        async with asyncio.timeout(20):
            pid = int(await parent.stdout.readline())
        if kill is not None:
            assert not gone(pid)
            parent.send_signal(kill)
        await parent.wait()
        await until(lambda: gone(pid))
    finally:
        if parent.returncode is None:
            parent.kill()


async def test_a_group_that_cannot_be_signalled_is_left(
    launch: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await launch("import sys; sys.exit(3)")
    assert await process.wait() == 3

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError  # as macOS answers for a group whose processes have ended

    monkeypatch.setattr(os, "killpg", refuse)
    assert await process.stop() == 3


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (1, "exit code 1"), (-11, "killed by SIGSEGV"), (-99, "killed by signal 99")],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert describe_exit(code) == words
