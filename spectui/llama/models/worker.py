"""Runs a module of this package in a short-lived process of its own and hands over the JSON lines that it prints.

Reading foreign model files can crash, hang or take much memory, and none of that may happen to the dashboard. The
limits, the clean-up and the reading of lines are the same for all of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import spectui
from spectui.core.text import one_line

LINE_LIMIT: Final = 1 << 20
"""Longest line of a worker, in bytes."""
GRACE: Final = 5.0
"""Seconds that a worker has to clean up after SIGTERM before it is killed."""

# Appending finds this package wherever it was found here, and lets nothing in the current folder shadow a module.
_START: Final = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); module = sys.argv.pop(1); "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker ended."""

    pid: int
    status: int | None
    """Exit status, negative for a signal; None when it was stopped for taking too long."""
    last_words: str
    """Last line that it wrote to stderr; empty if none."""

    @property
    def reason(self) -> str:
        """Why it failed, in a few words."""
        if self.status is None:
            return "it took too long"
        if self.status < 0:
            return f"it crashed with {_signal_name(-self.status)}"
        return self.last_words or f"it ended with exit status {self.status}"


def worker_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Command line that runs `module` of this package as a script."""
    root = str(Path(spectui.__file__).resolve().parent.parent)
    return [sys.executable, "-P", "-c", _START, root, module, *arguments]


async def run_worker(
    module: str,
    arguments: Sequence[str],
    *,
    on_object: Callable[[dict[str, Any]], None],
    seconds: float | None,
) -> WorkerEnd:
    """Run a worker to its end, calling `on_object` for each JSON object that it prints.

    It is stopped after `seconds` (None: never), and when this call is cancelled or `on_object` raises; when this
    returns or raises, the process is gone. Lines that are no JSON object are passed over. Raises OSError where no
    process can be started.
    """
    process = await asyncio.create_subprocess_exec(
        *worker_command(module, arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
        env=_environment(os.environ),
        # Ctrl-C in the terminal is ours to handle: it reaches the worker as the SIGTERM below.
        start_new_session=True,
    )
    words: list[str] = []
    reading_words = asyncio.create_task(_read_words(process, words))
    in_time = True
    try:
        async with asyncio.timeout(seconds):
            await _read_objects(process, on_object)
            await reading_words
            await process.wait()
    except TimeoutError:
        in_time = False
    finally:
        await _stop(process)
        reading_words.cancel()
    return WorkerEnd(process.pid, process.returncode if in_time else None, words[-1] if words else "")


async def _read_objects(
    process: asyncio.subprocess.Process, on_object: Callable[[dict[str, Any]], None]
) -> None:
    async for line in _lines(process.stdout):
        with suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                on_object(value)


async def _read_words(process: asyncio.subprocess.Process, words: list[str]) -> None:
    async for line in _lines(process.stderr):
        text = one_line(line.decode(errors="replace").strip(), 300)
        if text:
            words[:] = [text]


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # longer than the limit; asyncio has dropped it
            continue
        if not line:
            return
        yield line


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End the process if it still runs, first gently; a cancellation on the way only makes it quicker."""
    try:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()
            async with asyncio.timeout(GRACE):
                await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what would slow a worker down or change what it loads."""
    return {
        name: value for name, value in environ.items() if not name.startswith(("LLAMA_ARG_", "PYTHONSTARTUP"))
    }


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
