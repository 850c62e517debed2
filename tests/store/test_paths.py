from __future__ import annotations

import stat
from pathlib import Path

import pytest

from spectui.errors import UsageError
from spectui.store.paths import Folders, make_folder, shipped_examples


def test_xdg_variables_decide_where_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folders = Folders.default()
    assert folders.config == tmp_path / "config" / "spectui"
    assert folders.cache == tmp_path / "cache" / "spectui"
    assert folders.data == tmp_path / "data" / "spectui"
    assert folders.state == tmp_path / "state" / "spectui"
    assert folders.profiles == tmp_path / "config" / "spectui" / "profiles"
    assert folders.baselines == tmp_path / "cache" / "spectui" / "baselines.json"
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_is_refused_or_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    try:
        folders = Folders.default()
    except UsageError as error:
        assert "XDG_CONFIG_HOME" in str(error)  # noqa: PT017  which of the two depends on platformdirs
    else:
        assert folders.config.is_absolute()


def test_new_folders_are_for_this_user_only_and_old_ones_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = make_folder(tmp_path / "a" / "b")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (made, made.parent, tmp_path)] == [
        0o700,
        0o700,
        0o755,
    ]
    assert make_folder(made) == made


def test_the_shipped_examples_are_found() -> None:
    folder = shipped_examples()
    assert folder is not None
    assert (folder / "code-draft.toml").is_file()
