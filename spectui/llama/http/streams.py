"""One streamed request, which can be ended at any moment, and what httpx raises, in our words.

Connections and cancellation; what is asked is in client.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx

from spectui.core.text import one_line
from spectui.errors import ServerError, ServerGone


class OpenStream:
    """A request from before its first byte until it is closed, so that it can be ended at any moment."""

    __slots__ = ("_sending", "closed_here", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.closed_here = False
        self._sending: asyncio.Task[httpx.Response] | None = None

    async def send(self, http: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """Send the request; returns once the answer's headers are there."""
        # A task of its own, because the reader's task is not ours to cancel when streams are closed, and the
        # server sends no header before the prompt is processed.
        self._sending = asyncio.create_task(http.send(request, stream=True), name="stream-send")
        try:
            return await asyncio.shield(self._sending)
        except asyncio.CancelledError:
            if self._sending.cancelled() and not _being_cancelled():
                raise _StreamClosedError from None
            raise

    async def close(self) -> None:
        """End it, whatever it is doing; its reader gets ServerGone. Closing twice is fine."""
        self.closed_here = True
        sending = self._sending
        if sending is not None and not sending.done():
            sending.cancel()
            await asyncio.wait({sending})
        if sending is not None and not sending.cancelled() and sending.exception() is None:
            with suppress(httpx.HTTPError):
                await sending.result().aclose()


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _StreamClosedError(Exception):
    """The stream was closed before its answer began."""


@contextmanager
def translated(url: str, opened: OpenStream | None = None) -> Iterator[None]:
    """Turn what httpx raises into one line of ours."""
    try:
        yield
    except (_StreamClosedError, httpx.StreamError):
        raise ServerGone(f"the stream from {url} was closed here") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ServerGone(f"nothing answers at {url}{_reason(error)}; is the server running there?") from error
    except httpx.TimeoutException as error:
        raise silent(url) from error
    except httpx.HTTPError as error:
        if opened is not None and opened.closed_here:
            raise ServerGone(f"the stream from {url} was closed here") from None
        if isinstance(error, httpx.DecodingError):
            raise ServerError(f"{url} sent a damaged answer; is this a llama-server?") from error
        raise ServerGone(f"the connection to {url} was lost; see the server's log") from error
    except OverflowError as error:
        raise ServerError(f"{url} sent {error}; is this a llama-server?") from error


def silent(url: str) -> ServerError:
    """What is said of a server from which nothing came in time."""
    return ServerError(f"{url} did not answer in time; the server is busy or hangs")


def _reason(error: httpx.HTTPError) -> str:
    """A name that does not resolve or a certificate that is not trusted; "refused" needs no words."""
    said = one_line(str(error), 120)
    return f" ({said})" if said.startswith("[") else ""
