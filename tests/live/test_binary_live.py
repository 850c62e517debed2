from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spectui.core.profile import TuningProfile
from spectui.errors import BinaryError
from spectui.llama.binary.argv import build_argv, child_environment
from spectui.llama.binary.find import BinaryProbe, find_binary, list_devices
from spectui.llama.log.events import LogFailure
from spectui.llama.log.parser import LogParser

pytestmark = pytest.mark.live

ATTEMPTS = 3


@pytest.fixture
def binary() -> Path:
    try:
        return find_binary(None)
    except BinaryError as error:
        pytest.skip(str(error))


async def first_failure(argv: tuple[str, ...]) -> LogFailure | None:
    """What it says before it exits; asked again where it exits before its log is written, as on a busy machine."""
    for _ in range(ATTEMPTS):
        failure = await failure_of_one(argv)
        if failure is not None:
            return failure
    return None


async def failure_of_one(argv: tuple[str, ...]) -> LogFailure | None:
    environ, _ = child_environment({}, inherit=False)
    process = await asyncio.create_subprocess_exec(
        *argv, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    parser = LogParser()
    events = (parser.feed(line) for line in output.decode(errors="replace").splitlines())
    return next((event for event in events if isinstance(event, LogFailure)), None)


async def test_real_help_is_understood(binary: Path) -> None:
    caps = await BinaryProbe().capabilities(binary)
    assert caps.modes[0] == "off"
    assert "draft-simple" in caps.modes
    assert caps.accepts("--metrics")
    assert caps.version.text


async def test_real_device_list(binary: Path) -> None:
    assert all(device.total_mib > 0 for device in await list_devices(binary))


async def test_real_server_takes_every_flag_and_misses_only_the_file(binary: Path, tmp_path: Path) -> None:
    caps = await BinaryProbe().capabilities(binary)
    missing = str(tmp_path / "missing.gguf")
    for mode in caps.modes:
        profile = TuningProfile().with_server(model=missing, context=256)
        profile = profile.with_speculation(mode=mode, draft_model=missing, ngram_lookup=4, ngram_length=8)
        failure = await first_failure(build_argv(profile, caps, binary=str(binary), port=0))
        assert failure is not None
        assert (mode, failure.code, failure.subject) == (mode, "model-missing", missing)


async def test_real_server_refuses_what_the_help_calls_removed(binary: Path) -> None:
    caps = await BinaryProbe().capabilities(binary)
    removed = next((flag.spellings[-1] for flag in caps.flags if flag.removed), None)
    if removed is None:
        pytest.skip("this build lists no removed flag")
    failure = await first_failure((str(binary), removed, "3"))
    assert failure is not None
    assert (failure.code, failure.subject) == ("flag-removed", removed)
