"""Programs that are no llama-server and behave badly when asked what they are."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from spectui.errors import BinaryError
from spectui.llama.binary.find import probe_binary


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def test_a_hang_behind_a_shell_ends_and_leaves_nothing(tmp_path: Path) -> None:
    binary = script(tmp_path / "hang", "sleep 973\nexit 0")
    with pytest.raises(BinaryError, match="no answer within"):
        await probe_binary(binary, timeout=0.5)
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "973"]]
    assert left == []


async def test_an_endless_answer_is_cut_off(tmp_path: Path) -> None:
    binary = script(tmp_path / "flood", "exec yes 'no help at all, for ever and ever and ever'")
    with pytest.raises(BinaryError, match="prints more than a help text"):
        await probe_binary(binary, timeout=20)
