from __future__ import annotations

import pytest

from spectui.core.bet.estimates import BetReading
from spectui.core.profile import TuningProfile
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.servers.server import LaunchedServer
from tests.unlaunched import plan_for

TARGET_ON_CPU = (
    "srv    load_model: loading model 't.gguf'",
    "load_tensors:   CPU_Mapped model buffer size =   900.00 MiB",
)
DRAFT_ON_GPU = (
    "srv    load_model: loading draft model 'd.gguf'",
    "load_tensors: offloaded 7/7 layers to GPU",
    "load_tensors:      Vulkan0 model buffer size =   500.25 MiB",
)


def loading(profile: TuningProfile, log: tuple[str, ...]) -> LaunchedServer:
    server = LaunchedServer(plan_for(profile))
    for line in log:
        server._line(line)
    return server


@pytest.mark.parametrize(
    ("layers", "draft_layers", "log", "told"),
    [
        ("all", None, TARGET_ON_CPU, True),
        (None, "all", TARGET_ON_CPU, True),
        (None, None, TARGET_ON_CPU, False),
        (0, "all", TARGET_ON_CPU + DRAFT_ON_GPU, False),
        ("all", None, (), False),
    ],
)
async def test_layers_for_a_gpu_that_is_not_used_are_pointed_out(
    layers: object, draft_layers: object, log: tuple[str, ...], told: bool
) -> None:
    profile = TuningProfile().with_server(gpu_layers=layers)
    profile = profile.with_speculation(
        mode="draft-simple", draft_model="d.gguf", draft_gpu_layers=draft_layers
    )
    server = loading(profile, log)
    try:
        verdict = verdict_of(BetReading(), profile, server)
        assert ("gpu-unused" in {f.code for f in verdict.findings}) is told
    finally:
        await server.stop()
