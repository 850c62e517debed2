"""From a started process to a server that answers: ports, polling, and whose answer it is.

It brings together process.py and client.py, which do not know each other.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from urllib.parse import SplitResult, urlsplit

import psutil

from spectui.core.text import one_line
from spectui.errors import LaunchError, ServerError
from spectui.llama.http.wire import Health
from spectui.llama.process.process import ServerProcess, describe_exit

POLL_S: Final = 0.02
"""Pause between two looks at /health; a restart is felt."""
_ANSWER_S: Final = 2.0
_TAIL: Final = 60
_HTTP_PORT: Final = 80
_TROUBLE: Final = re.compile(
    r"error|fail|invalid|couldn't|cannot|abort|assert|not found|unknown", re.IGNORECASE
)
_PORT_TAKEN: Final = re.compile(r"couldn't bind|address already in use", re.IGNORECASE)


class HealthSource(Protocol):
    """The part of LlamaClient that is needed here."""

    @property
    def base_url(self) -> str:
        """Address that is asked."""

    async def health(self, *, timeout: float | None = None) -> Health:  # noqa: ASYNC109
        """Whether the server is ready."""


@dataclass(frozen=True, slots=True)
class StartProgress:
    """How far a start has come: `phase` is starting until the port answers, then loading; seconds so far."""

    phase: Literal["starting", "loading"]
    seconds: float


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free now. Raises LaunchError when `host` is no address of this machine."""
    return _bind(host, 0)


def require_free_port(host: str, port: int) -> None:
    """Raise LaunchError (port-in-use) when something listens on `port` already."""
    _bind(host, port)


async def wait_ready(
    client: HealthSource,
    process: ServerProcess,
    timeout: float,  # noqa: ASYNC109  it becomes part of the error's text
    on_progress: Callable[[StartProgress], None] | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    owns_port: Callable[[int, int], bool | None] | None = None,
) -> float:
    """Wait until `process` answers at `client`'s address; returns the seconds since this call.

    Raises LaunchError at once when the process ends (server-crashed or port-in-use), when another program answers
    there (port-in-use), and after `timeout` seconds (server-hung).
    """
    begun = clock()
    address = urlsplit(client.base_url)
    exited = asyncio.ensure_future(process.wait())
    try:
        while True:
            poll = asyncio.ensure_future(_look(client))
            left = timeout - (clock() - begun)
            await _first_of(poll, exited, left)
            if exited.done():
                raise _ended(process, exited.result(), address)
            phase = poll.result() if poll.done() and not poll.cancelled() else None
            if phase is Health.OK:
                await _refuse_foreign(process, exited, address, owns_port or _listens)
                return clock() - begun
            spent = clock() - begun
            if spent >= timeout:
                raise _hung(process, timeout)
            if on_progress is not None:
                on_progress(StartProgress("loading" if phase is Health.LOADING else "starting", spent))
            await asyncio.wait({exited}, timeout=min(POLL_S, timeout - spent))
    finally:
        exited.cancel()


async def _look(client: HealthSource) -> Health:
    try:
        return await client.health(timeout=_ANSWER_S)
    except ServerError:
        # A foreign server or one that is busy starting: whose answer it is shows when the process ends.
        return Health.UNREACHABLE


async def _first_of(poll: asyncio.Future[Health], exited: asyncio.Future[int], left: float) -> None:
    try:
        both: set[asyncio.Future[Any]] = {poll, exited}
        await asyncio.wait(both, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not poll.done():
            poll.cancel()
            await asyncio.wait({poll})


async def _refuse_foreign(
    process: ServerProcess,
    exited: asyncio.Future[int],
    address: SplitResult,
    owns_port: Callable[[int, int], bool | None],
) -> None:
    """An older server on the same port answers long before ours has noticed that it cannot bind."""
    owned = owns_port(process.pid, address.port or _HTTP_PORT)
    if owned is not False and process.returncode is None:
        return
    await asyncio.wait({exited}, timeout=_ANSWER_S)
    if owned is not False and exited.done():
        raise _ended(process, exited.result(), address)
    raise _taken(process, address.port)


def _listens(pid: int, port: int) -> bool | None:
    """Whether the process or a child of it listens on `port`; None where the system does not tell."""
    try:
        process = psutil.Process(pid)
        return any(_has_listener(one, port) for one in (process, *process.children(recursive=True)))
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None


def _has_listener(process: psutil.Process, port: int) -> bool:
    try:
        connections = process.net_connections(kind="inet")
    except psutil.NoSuchProcess:
        return False
    return any(c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port for c in connections)


def _ended(process: ServerProcess, code: int, address: SplitResult) -> LaunchError:
    """What to say about a server that ended. Its log may be lost: it exits without waiting for its log thread."""
    lines = process.tail(_TAIL)
    if any(_PORT_TAKEN.search(line) for line in lines) or _is_taken(address):
        return _taken(process, address.port)
    said = _telling_line(lines) or "it printed nothing; start it again, or its command by hand"
    return LaunchError(
        f"llama-server ended before it was ready ({describe_exit(code)}): {said}", log_tail=lines
    )


def _taken(process: ServerProcess, port: int | None) -> LaunchError:
    return LaunchError(
        f"port {port} is in use by another program; choose another port or end that program",
        code="port-in-use",
        log_tail=process.tail(_TAIL),
    )


def _hung(process: ServerProcess, timeout: float) -> LaunchError:
    lines = process.tail(_TAIL)
    said = next((line for line in reversed(lines) if line.strip()), "")
    return LaunchError(
        f"llama-server was not ready after {timeout:g} s; raise ready_timeout or look at its log"
        + (f" (last: {one_line(said, 160)})" if said else ""),
        code="server-hung",
        log_tail=lines,
    )


def _telling_line(lines: Sequence[str]) -> str:
    """The first line that names trouble, else the last line; what follows the first is its consequence."""
    filled = [line.strip() for line in lines if line.strip()]
    told = next((line for line in filled if _TROUBLE.search(line)), filled[-1] if filled else "")
    return one_line(told, 240)


def _is_taken(address: SplitResult) -> bool:
    """Whether somebody else holds the port that a server of ours ended without."""
    try:
        _bind(address.hostname or "127.0.0.1", address.port or _HTTP_PORT)
    except LaunchError:
        return True
    return False


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # As servers do: a port whose connections only linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if port:
                raise LaunchError(
                    f"port {port} on {host} cannot be used ({error.strerror}); choose another port",
                    code="port-in-use",
                ) from error
            raise LaunchError(f"{host} is no address of this machine; use 127.0.0.1") from error
        return int(probe.getsockname()[1])
