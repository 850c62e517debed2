from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectui.llama.models import worker

SCRIPTS = {
    "talks": "import json, sys\nprint(json.dumps({'argv': sys.argv[1:]}))\nprint('no json')\nprint('[1]')\n"
    "print('x' * (1 << 21))\nprint('{\"last\": true}')\n",
    "fails": "import sys\nsys.stderr.write('first\\n\\x1b[31mwhat went wrong\\n')\nsys.exit(3)\n",
    "crashes": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "hangs": "import os, time\nprint('{\"pid\": %d}' % os.getpid(), flush=True)\ntime.sleep(600)\n",
    "stubborn": "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('{\"pid\": %d}' % os.getpid(), flush=True)\ntime.sleep(600)\n",
}


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    package = tmp_path / "spectui"
    package.mkdir()
    monkeypatch.setattr("spectui.__file__", str(package / "__init__.py"))


async def run(
    name: str, *arguments: str, seconds: float | None = 60
) -> tuple[worker.WorkerEnd, list[dict[str, Any]]]:
    objects: list[dict[str, Any]] = []
    end = await worker.run_worker(name, arguments, on_object=objects.append, seconds=seconds)
    return end, objects


async def test_objects_arrive_and_everything_else_is_passed_over() -> None:
    end, objects = await run("talks", "a b", "")
    assert objects == [{"argv": ["a b", ""]}, {"last": True}]
    assert (end.status, end.last_words) == (0, "")


async def test_a_failure_gives_its_last_words_without_escapes() -> None:
    end, _ = await run("fails")
    assert (end.status, end.reason) == (3, "what went wrong")


async def test_a_crash_is_named() -> None:
    end, _ = await run("crashes")
    assert (end.status, end.reason) == (-11, "it crashed with SIGSEGV")


async def test_a_hang_ends_at_the_limit() -> None:
    end, objects = await run("hangs", seconds=1.0)
    assert end.status is None
    assert end.reason == "it took too long"
    assert not psutil.pid_exists(end.pid)
    assert objects in ([], [{"pid": end.pid}])


@pytest.mark.parametrize("name", ["hangs", "stubborn"])
async def test_cancelling_leaves_no_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.1)
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        worker.run_worker(name, [], on_object=lambda said: started.set_result(said["pid"]), seconds=None)
    )
    pid = await started
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(pid)


async def test_an_error_of_the_listener_stops_the_worker() -> None:
    pids: list[int] = []

    def refuse(said: dict[str, Any]) -> None:
        pids.append(said["pid"])
        raise LookupError

    with pytest.raises(LookupError):
        await worker.run_worker("hangs", [], on_object=refuse, seconds=None)
    assert not psutil.pid_exists(pids[0])


async def test_modules_of_the_current_folder_shadow_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "elsewhere"
    trap.mkdir()
    (trap / "json.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(trap)
    end, objects = await run("talks")
    assert end.status == 0
    assert len(objects) == 2
