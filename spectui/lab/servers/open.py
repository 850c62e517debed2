"""A profile -> a server that is ready: started, or attached to."""

from __future__ import annotations

from collections.abc import Callable

from spectui.core.profile import TuningProfile
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.server import AttachedServer, LaunchedServer, Server
from spectui.llama.http.address import same_origin

Progress = Callable[[str], None]


async def open_server(
    profile: TuningProfile,
    launcher: Launcher,
    *,
    api_key: str | None,
    progress: Progress,
    key_of: TuningProfile | None = None,
) -> Server:
    """Start a profile's server, or attach to it.

    The key is sent to attached servers only, and with `key_of` only to the address of that profile's server, which
    it belongs to. Raises SpectuiError.
    """
    if profile.attached:
        progress(f"attaching to {profile.server.url}")
        mine = key_of is None or same_origin(key_of.server.url or "", profile.server.url or "")
        attached = AttachedServer(profile, api_key=api_key if mine else None)
        await attached.connect()
        return attached
    plan = await launcher.plan(profile)
    progress(f"starting {plan.command}")
    server = LaunchedServer(plan)
    await server.start()
    return server
