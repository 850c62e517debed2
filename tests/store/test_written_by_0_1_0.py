"""What version 0.1.0 wrote opens in every later version, and says the same.

The files were written by its own commands; `expected` is what it said of them itself.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spectui.cli.main import cli
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from spectui.store.profiles import last_profile, load

WRITTEN = Path(__file__).parents[1] / "data" / "written_by_0_1_0"
PLACES = {
    "XDG_CONFIG_HOME": "config",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
}


@pytest.fixture(autouse=True)
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home as 0.1.0 left it."""
    for variable, name in PLACES.items():
        shutil.copytree(WRITTEN / name, tmp_path / name)
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path


def said(name: str) -> Any:
    return json.loads((WRITTEN / "expected" / name).read_text("utf-8"))


def printed(*arguments: str) -> Any:
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def without_new(now: Any, before: Any) -> Any:
    """What is said now, without fields that a later version added."""
    if isinstance(before, dict) and isinstance(now, dict):
        return {name: without_new(now[name], before[name]) for name in before}
    if isinstance(before, list) and isinstance(now, list) and len(now) == len(before):
        return [without_new(a, b) for a, b in zip(now, before, strict=True)]
    return now


def test_kept_runs_are_listed_with_the_same_values() -> None:
    before = said("history.json")
    assert without_new(printed("history", "--json"), before) == before
    assert len(before["runs"]) == 28


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_kept_sweep_has_the_same_cells_and_recommendations(number: int) -> None:
    before = said(f"sweep-{number}.json")
    now = printed("export", str(number), "--format", "json")
    assert without_new(now, before) == before


def test_profiles_load_with_the_same_values() -> None:
    folders = Folders.default()
    for name, before in said("profiles-parsed.json").items():
        now = json.loads(json.dumps(asdict(load(name, folders).profile)))
        assert without_new(now, before) == before, name
    assert last_profile(folders) == "own"


def test_baselines_are_still_known() -> None:
    store, before = BaselineStore.default(Folders.default()), said("baselines-parsed.json")
    now = [
        {"digest": key.digest, "key": asdict(key), "baseline": asdict(found)} for key, found in store.all()
    ]
    assert without_new(json.loads(json.dumps(now)), before) == before
    assert len(before) == 7
