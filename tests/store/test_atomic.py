from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from spectui.store.atomic import write_text

AS_ROOT = os.geteuid() == 0


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    write_text(file, "é\r\nx\n")
    assert file.read_bytes() == "é\r\nx\n".encode()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permission_bits_of_an_existing_file_stay(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(mode)
    write_text(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "a", tmp_path / "a"
    real.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_failed_write_leaves_the_old_text_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_text_that_is_not_unicode_leaves_no_litter(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")


@pytest.mark.skipif(AS_ROOT, reason="root may write everything")
def test_a_write_protected_file_is_respected(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        write_text(file, "new")


def test_readers_see_one_whole_text_while_several_write(tmp_path: Path) -> None:
    file = tmp_path / "a"
    texts = [letter * 20_000 for letter in "abcd"]
    write_text(file, texts[0])
    writers = [threading.Thread(target=_write_often, args=(file, text)) for text in texts]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(file.read_text())
    for writer in writers:
        writer.join()
    assert seen | {file.read_text()} <= set(texts)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def _write_often(file: Path, text: str) -> None:
    for _ in range(10):
        write_text(file, text)
