"""The commands that open the dashboard, with a session for each profile or server named."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from spectui.cli.output import require_terminal, say
from spectui.cli.targets import load_profile, with_baseline
from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.secrets import KEY_VARIABLE
from spectui.core.views.sessions import MAX_SESSIONS
from spectui.errors import UsageError
from spectui.llama.http.address import server_address
from spectui.store.paths import Folders
from spectui.store.profiles import last_profile


def open_last() -> None:
    """Open the profile used last, or a welcome screen where there is none."""
    known = last_profile(Folders.default()) is not None
    _dashboard({"last": known}, welcome=not known)


@click.command()
def demo() -> None:
    """Open the dashboard on a real demo pair, built on first use."""
    _dashboard({"demo": True})


@click.command()
@click.argument("names", metavar="PROFILE...", nargs=-1, required=True)
@click.option("--no-traffic", is_flag=True, help="Start the server only; traffic waits for the space key.")
def run(names: tuple[str, ...], *, no_traffic: bool) -> None:
    """Start the server of PROFILE (a name or a .toml file) and open the dashboard; several in one session each."""
    _require_keys(names)
    _dashboard(*({"profile": load_profile(name), "name": name, "traffic": not no_traffic} for name in names))


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--baseline", metavar="TPS|URL", help="Its plain speed, or a second server without speculation."
)
@click.option("--ask-key", is_flag=True, help=f"Prompt for the API key (or set {KEY_VARIABLE}).")
def attach(urls: tuple[str, ...], *, baseline: str | None, ask_key: bool) -> None:
    """Open the dashboard on a running server, several in one session each; no traffic is sent before you ask."""
    _require_keys(urls)
    if baseline is not None and len(urls) > 1:
        raise UsageError("--baseline is the speed of one server: give it with b in the session it belongs to")
    profiles = [TuningProfile(server=ServerSettings(url=server_address(url))) for url in urls]
    if baseline is not None:
        profiles = [with_baseline(profile, baseline) for profile in profiles]
    require_terminal()
    openings: list[dict[str, Any]] = [{"profile": profile} for profile in profiles]
    for opening in openings if ask_key else ():
        which = f" of {opening['profile'].server.url}" if len(urls) > 1 else ""
        opening["api_key"] = click.prompt(f"API key{which}", hide_input=True)
    _dashboard(*openings)


def _require_keys(targets: Sequence[str]) -> None:
    """Raise UsageError for more sessions than there are number keys."""
    if len(targets) > MAX_SESSIONS:
        raise UsageError(
            f"{len(targets)} sessions: there are keys for {MAX_SESSIONS}, so name at most so many"
        )


def _dashboard(*openings: Mapping[str, Any], welcome: bool = False) -> None:
    """Open the dashboard with a session for each opening; whatever is heavy loads after its first frame."""
    require_terminal()
    # Collecting while modules load finds nothing and costs 50 ms. The controller switches it on again once the
    # first frame stands.
    gc.disable()
    from spectui.tui.app import SpectuiApp  # noqa: PLC0415
    from spectui.tui.control.opening import Opening  # noqa: PLC0415
    from spectui.tui.control.sessions import SessionsController  # noqa: PLC0415

    environ = dict(os.environ)
    sessions = [Opening(environ=environ, **one) for one in openings]
    app = SpectuiApp(SessionsController(*sessions), welcome=welcome)
    app.run()
    if app.fault:
        say(f"spectui: {app.fault}")
    if app.return_code:
        sys.exit(app.return_code)
