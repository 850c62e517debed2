from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import spectui.core

FORBIDDEN = {
    "_sqlite3",
    "asyncio",
    "gguf",
    "httpx",
    "llama_cpp",
    "numpy",
    "pathlib",
    "platformdirs",
    "plotext",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pydantic_core",
    "rich",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "textual",
    "threading",
    "tomllib",
}
CORE = sorted(path.stem for path in Path(spectui.core.__path__[0]).glob("*.py") if path.stem != "__init__")
CHILD = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
opened = []
importing = (".py", ".pyc", ".so")
def watch(event, args):
    if event == "open" and isinstance(args[0], str) and not args[0].endswith(importing) and ".pyc." not in args[0]:
        opened.append(args[0])
    elif event in {"os.mkdir", "os.remove", "subprocess.Popen", "socket.connect"}:
        opened.append(event)
sys.addaudithook(watch)
for name in json.loads(sys.argv[2]):
    importlib.import_module(name)
print(json.dumps({"modules": sorted(sys.modules), "opened": opened}))
"""


def loaded_by(names: list[str]) -> dict[str, list[str]]:
    """What importing these modules loads and opens in an interpreter that has loaded nothing else."""
    argv = [sys.executable, "-I", "-S", "-B", "-c", CHILD, json.dumps(sys.path), json.dumps(names)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_the_core_loads_nothing_that_reads_waits_or_draws() -> None:
    found = loaded_by([f"spectui.core.{name}" for name in CORE] + ["spectui.errors"])
    assert {f"spectui.core.{name}" for name in CORE} <= set(found["modules"])
    assert FORBIDDEN.isdisjoint(found["modules"])
    assert found["opened"] == []


def test_the_core_needs_no_layer_above_it() -> None:
    above = {"cli", "tui", "lab", "llama", "store"}
    modules = loaded_by([f"spectui.core.{name}" for name in CORE])["modules"]
    parts = [name.split(".") for name in modules if name.startswith("spectui.")]
    assert above.isdisjoint(part[1] for part in parts)


@pytest.mark.parametrize("name", ["pathlib", "asyncio", "sqlite3"])
def test_the_check_sees_what_is_loaded(name: str) -> None:
    assert not FORBIDDEN.isdisjoint(loaded_by([name])["modules"])
