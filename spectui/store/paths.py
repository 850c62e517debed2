"""Where spectui keeps its files: the folders of this user, and the examples that came with the package.

Functions that use them take them as a parameter, so that a test hands in its own. Nothing is created before
something is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spectui.errors import UsageError

APP = "spectui"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders in use; none of them needs to exist."""

    config: Path
    """Profiles, in the folder `profiles`."""
    cache: Path
    """What can be made again: the demo pair, remembered baselines."""
    data: Path
    """Results that the user asked to keep."""
    state: Path
    """What the last run left behind, such as the name of its profile."""
    log: Path
    """Logs of spectui and of the servers that it started."""
    examples: Path | None = None
    """The shipped example profiles; None when this installation has none."""

    @classmethod
    def default(cls) -> Folders:
        """The folders of this user and platform; XDG_CONFIG_HOME and its kin are honoured.

        Raises UsageError when one of them is not absolute: XDG forbids it, and files would land wherever
        spectui was started.
        """
        from platformdirs import PlatformDirs  # noqa: PLC0415  not needed for the first frame

        dirs = PlatformDirs(APP, appauthor=False)
        folders = cls(
            config=dirs.user_config_path,
            cache=dirs.user_cache_path,
            data=dirs.user_data_path,
            state=dirs.user_state_path,
            log=dirs.user_log_path,
            examples=shipped_examples(),
        )
        for name in ("config", "cache", "data", "state", "log"):
            folder: Path = getattr(folders, name)
            if not folder.is_absolute():
                raise UsageError(
                    f"the {name} folder {folder} is not absolute; set HOME or XDG_{name.upper()}_HOME"
                )
        return folders

    @property
    def profiles(self) -> Path:
        """The user's own profiles."""
        return self.config / "profiles"

    @property
    def baselines(self) -> Path:
        """The file of remembered baselines."""
        return self.cache / "baselines.json"

    @property
    def results(self) -> Path:
        """The database of results."""
        return self.data / "results.sqlite3"


def make_folder(folder: Path) -> Path:
    """Create a folder and its missing parents for this user only (0700); leaves existing ones as they are.

    Raises OSError, as Path.mkdir does.
    """
    if not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def shipped_examples() -> Path | None:
    """The example profiles: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "profiles", package.parent / "profiles"):
        if folder.is_dir():
            return folder
    return None
