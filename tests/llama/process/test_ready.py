from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator

import psutil
import pytest

from spectui.errors import LaunchError, ServerError
from spectui.llama.http.client import LlamaClient
from spectui.llama.http.wire import Health
from spectui.llama.process.process import ServerProcess
from spectui.llama.process.ready import StartProgress, _listens, free_port, require_free_port, wait_ready

SERVER = """
import http.server, sys, time
time.sleep(float(sys.argv[2]))
loading = [int(sys.argv[3])]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        loading[0] -= 1
        body = b'{"status":"ok"}' if loading[0] < 0 else b'{"error":{"code":503,"message":"Loading model"}}'
        self.send_response(200 if loading[0] < 0 else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Answers:
    """A source of health that says one thing after another, and then the last for ever."""

    base_url = f"http://127.0.0.1:{free_port()}"

    def __init__(self, *answers: Health | Exception) -> None:
        self._answers = list(answers)

    async def health(self, *, timeout: float | None = None) -> Health:  # noqa: ASYNC109
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def sleeper() -> AsyncIterator[ServerProcess]:
    process = await ServerProcess.start([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    yield process
    await process.stop(term_again_s=0, kill_after_s=0)


async def script(code: str, *args: str) -> ServerProcess:
    return await ServerProcess.start([sys.executable, "-c", code, *args])


def test_ports() -> None:
    port = free_port()
    require_free_port("127.0.0.1", port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(LaunchError) as caught:
            require_free_port("127.0.0.1", port)
    assert caught.value.code == "port-in-use"
    with pytest.raises(LaunchError, match="no address of this machine"):
        free_port("192.0.2.1")


async def test_a_server_that_loads_becomes_ready() -> None:
    port = free_port()
    phases: list[StartProgress] = []
    process = await script(SERVER, str(port), "0.1", "3")
    try:
        async with LlamaClient(f"127.0.0.1:{port}") as client:
            seconds = await wait_ready(client, process, 20, phases.append)
        assert seconds > 0.1
        assert phases[0].phase == "starting"
        assert phases[-1].phase == "loading"
        assert [p.seconds for p in phases] == sorted(p.seconds for p in phases)
    finally:
        await process.stop()


async def test_readiness_is_noticed_with_the_next_look(sleeper: ServerProcess) -> None:
    seen: list[StartProgress] = []
    source = Answers(Health.UNREACHABLE, ServerError("busy"), Health.LOADING, Health.OK)
    await wait_ready(source, sleeper, 10, seen.append, owns_port=lambda _pid, _port: True)
    assert [p.phase for p in seen] == ["starting", "starting", "loading"]


async def test_where_the_system_does_not_tell_who_listens_a_living_process_counts(
    sleeper: ServerProcess,
) -> None:
    assert await wait_ready(Answers(Health.OK), sleeper, 10, owns_port=lambda _pid, _port: None) < 5


def test_a_system_that_shows_no_connections_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        assert _listens(os.getpid(), port) is True
        assert _listens(os.getpid(), free_port()) is False

        def refuse(process: psutil.Process, kind: str) -> None:
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "net_connections", refuse)
        assert _listens(os.getpid(), port) is None


async def test_a_process_that_ends_fails_at_once() -> None:
    code = "print('loading'); print('error: invalid argument: -cd'); print('usage'); raise SystemExit(1)"
    process = await script(code)
    with pytest.raises(LaunchError) as caught:
        await wait_ready(Answers(Health.UNREACHABLE), process, 60)
    assert str(caught.value) == (
        "llama-server ended before it was ready (exit code 1): error: invalid argument: -cd"
    )
    assert caught.value.code == "server-crashed"
    assert caught.value.log_tail[-1] == "usage"


async def test_a_hanging_look_does_not_hide_the_end() -> None:
    class Hangs(Answers):
        async def health(self, *, timeout: float | None = None) -> Health:  # noqa: ASYNC109
            await asyncio.sleep(60)
            return Health.OK

    process = await script("import os; os.abort()")
    async with asyncio.timeout(10):
        with pytest.raises(LaunchError, match="killed by SIGABRT"):
            await wait_ready(Hangs(Health.OK), process, 60)


async def test_time_is_up(sleeper: ServerProcess) -> None:
    with pytest.raises(LaunchError, match=r"not ready after 0\.1 s") as caught:
        await wait_ready(Answers(Health.LOADING), sleeper, 0.1)
    assert caught.value.code == "server-hung"
    assert sleeper.returncode is None


async def test_a_foreign_server_on_the_same_port_is_not_ours() -> None:
    port = free_port()
    foreign = await script(SERVER, str(port), "0", "0")
    ours = await script('import time; time.sleep(0.3); raise SystemExit("couldn\'t bind HTTP server socket")')
    try:
        async with LlamaClient(f"127.0.0.1:{port}") as client:
            await wait_ready(client, foreign, 20)
            with pytest.raises(LaunchError) as caught:
                await wait_ready(client, ours, 20)
        assert caught.value.code == "port-in-use"
        assert str(port) in str(caught.value)
    finally:
        await foreign.stop()
        await ours.stop()


async def test_a_taken_port_is_named_although_the_log_was_lost() -> None:
    process = await script("raise SystemExit(1)")
    source = Answers(Health.UNREACHABLE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        source.base_url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(LaunchError) as caught:
            await wait_ready(source, process, 20)
    assert caught.value.code == "port-in-use"


async def test_an_end_without_a_word_says_so() -> None:
    process = await script("raise SystemExit(1)")
    with pytest.raises(LaunchError, match=r"exit code 1\): it printed nothing"):
        await wait_ready(Answers(Health.UNREACHABLE), process, 20)


async def test_a_port_taken_before_anything_answers() -> None:
    process = await script(
        'print("couldn\'t bind HTTP server socket, hostname: x, port: 1"); raise SystemExit(1)'
    )
    with pytest.raises(LaunchError) as caught:
        await wait_ready(Answers(Health.UNREACHABLE), process, 20)
    assert caught.value.code == "port-in-use"


async def test_a_wrapper_whose_child_listens_is_ours() -> None:
    port = free_port()
    wrapper = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
    process = await script(wrapper, SERVER, str(port), "0", "0")
    try:
        async with LlamaClient(f"127.0.0.1:{port}") as client:
            await wait_ready(client, process, 20)
            await process.stop()
            with pytest.raises(LaunchError):
                await wait_ready(client, process, 20)
    finally:
        await process.stop()
