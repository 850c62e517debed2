"""A server's address as people type it -> a base URL; loads no HTTP library."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from spectui.errors import UsageError

_EXAMPLE: Final = "give one like http://127.0.0.1:8080"


def server_address(text: str) -> str:
    """Base address: adds http://, drops a trailing slash and /v1. Raises UsageError, one line."""
    given = text.strip()
    shown = repr(given[:80])
    if not given or any(c.isspace() or not c.isprintable() for c in given):
        raise UsageError(f"{shown} is no server address; {_EXAMPLE}")
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{shown} is no server address ({error}); {_EXAMPLE}") from None
    if parts.scheme.lower() not in {"http", "https"}:
        raise UsageError(f"{shown} has the scheme {parts.scheme}; only http and https are spoken")
    if "@" in parts.netloc:
        raise UsageError("a server address must not hold a user or password; use the profile's api_key_env")
    if not host or parts.query or parts.fragment or port == 0:
        raise UsageError(f"{shown} is no server address; {_EXAMPLE}")
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc.rstrip(':')}{path}"


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses lead to the same server: scheme, host and port are equal."""
    a, b = (urlsplit(server_address(url)) for url in (one, other))
    return (a.scheme, a.hostname, a.port) == (b.scheme, b.hostname, b.port)


def port_of(address: str | None) -> int | None:
    """The port that an address names; None where it names none, or is no address."""
    try:
        return urlsplit(server_address(address)).port if address else None
    except UsageError:
        return None
