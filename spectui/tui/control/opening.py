"""Opening: what a session of the dashboard opens on, and what only this one session may use.

The command line describes a session with it before anything heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.secrets import api_key_of

if TYPE_CHECKING:
    from spectui.store.paths import Folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a session opens on."""

    profile: TuningProfile | None = None
    name: str | None = None
    """Name or path of the profile; None for one that was made from an address."""
    demo: bool = False
    """Build the demo pair if needed and open it."""
    traffic: bool = True
    """Whether traffic starts by itself on our own server."""
    last: bool = False
    """Open the profile used last, if there is one."""
    environ: Mapping[str, str] = field(default_factory=dict)
    api_key: str | None = None
    """Given for the address of `profile`, in place of the environment's; no other server gets it."""
    log_name: str = "llama-server.log"
    """File for what its servers print; each session has its own."""

    def key_of(self, profile: TuningProfile) -> str | None:
        """The key for a server that the user names, or whose profile he opens."""
        here = self.profile is not None and self.profile.server.url == profile.server.url
        if here and self.api_key and not profile.server.api_key_env:
            return self.api_key
        return api_key_of(profile, self.environ)

    def at(self, url: str) -> Opening:
        """An opening on an address that was typed. Raises UsageError for what is no address."""
        from spectui.llama.http.client import normalise_url  # noqa: PLC0415

        profile = TuningProfile(server=ServerSettings(url=normalise_url(url)))
        return Opening(profile=profile, environ=self.environ, log_name=self.log_name)

    def log_file(self, folders: Folders) -> Path | None:
        """Where its servers' output goes; None where that folder cannot be made."""
        from spectui.store.paths import make_folder  # noqa: PLC0415

        with suppress(OSError):
            return make_folder(folders.log) / self.log_name
        return None
