"""Profiles as files: found by name or path, loaded, listed, saved, and the last one remembered.

Everything that touches the disk; their text is read by `profile_text` and written by `profile_edit`. Loading never
changes a file.
"""

from __future__ import annotations

import difflib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectui.core.profile import TuningProfile
from spectui.errors import ProfileError
from spectui.store.atomic import write_text
from spectui.store.paths import Folders, make_folder
from spectui.store.profile_edit import edited_text, new_text, refuse_secrets
from spectui.store.profile_text import check, one_line, parse

_MAX_BYTES: Final = 1_000_000
"""No profile is longer; a model file given by mistake is."""
_MAX_NAME: Final = 100
_SUFFIX: Final = ".toml"


@dataclass(frozen=True, slots=True)
class LoadedProfile:
    """A profile and where it came from; file names inside it are absolute."""

    profile: TuningProfile
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One profile in a list; `problem` is the one line that says why it cannot be loaded, None if it can."""

    name: str
    path: Path
    description: str
    builtin: bool
    problem: str | None = None


def load(path_or_name: str | Path, folders: Folders) -> LoadedProfile:
    """Load a profile by path, or by name: first the user's own, then the shipped examples.

    What holds a slash or ends in .toml is a path. Raises ProfileError, one line that names file and key.
    """
    path = _existing(path_or_name, folders)
    text = _read(path)
    profile = parse(text, source=_label(path), folder=path.absolute().parent)
    return LoadedProfile(profile, path, path.name.removesuffix(_SUFFIX))


def save(profile: TuningProfile, path_or_name: str | Path, folders: Folders) -> LoadedProfile:
    """Save a profile; a name goes into the user's own profiles. Returns it as loading it would.

    An existing profile keeps its comments and order, and the words of every value that did not change; a file
    that is no readable profile is not overwritten. Relative file names are taken from the current folder.
    Raises ProfileError with the old file untouched.
    """
    path = Path(path_or_name) if _is_path(path_or_name) else path_of(str(path_or_name), folders)
    source = _label(path)
    checked = check(profile, source=source)
    refuse_secrets(checked, source=source)
    if folders.examples is not None and path.resolve().is_relative_to(folders.examples.resolve()):
        raise ProfileError(f"{source}: is a shipped example; save under a name of your own")
    folder = path.absolute().parent
    try:
        if path.exists() or path.is_symlink():
            text = edited_text(_old_text(path), checked, source=source, folder=folder)
        else:
            text = new_text(checked)
            if path.parent == folders.profiles:
                make_folder(folder)
        write_text(path, text)
    except (OSError, ValueError) as error:
        raise ProfileError(f"{source}: cannot be saved: {_reason(error)}") from error
    return LoadedProfile(checked, path, path.name.removesuffix(_SUFFIX))


def path_of(name: str, folders: Folders) -> Path:
    """The file of a profile of the user's own, whether it exists or not; `name` may end in .toml.

    Raises ProfileError for a name that is no file name: separators, a leading dot, control characters.
    """
    bare = name.removesuffix(_SUFFIX)
    problem = _name_problem(bare)
    if problem:
        raise ProfileError(f'profile name "{one_line(name, 60)}": {problem}')
    return folders.profiles / f"{bare}{_SUFFIX}"


def list_profiles(folders: Folders) -> tuple[ProfileEntry, ...]:
    """The user's own profiles, then the shipped examples that none of them hides, each sorted by name."""
    own = [_entry(path, folders, builtin=False) for path in _files(folders.profiles)]
    hidden = {entry.name for entry in own}
    shipped = [_entry(path, folders, builtin=True) for path in _files(folders.examples)]
    return (*own, *(entry for entry in shipped if entry.name not in hidden))


def last_profile(folders: Folders) -> str | None:
    """Name or path of the profile used last; None when there was none or it is gone."""
    try:
        remembered = _last_file(folders).read_text("utf-8").rstrip("\n")
        return remembered if _find(remembered, folders) is not None else None
    except (OSError, ValueError, ProfileError):
        return None


def remember_last(path_or_name: str | Path, folders: Folders) -> None:
    """Remember the profile in use for the next start; raises ProfileError when that cannot be written."""
    text = str(Path(path_or_name).absolute()) if _is_path(path_or_name) else str(path_or_name)
    try:
        make_folder(folders.state)
        write_text(_last_file(folders), f"{text}\n")
    except (OSError, ValueError) as error:
        raise ProfileError(f"{_label(_last_file(folders))}: cannot be saved: {_reason(error)}") from error


def _last_file(folders: Folders) -> Path:
    return folders.state / "last-profile"


def _is_path(path_or_name: str | Path) -> bool:
    return isinstance(path_or_name, Path) or "/" in path_or_name or path_or_name.endswith(_SUFFIX)


def _name_problem(name: str) -> str:
    if not name or name != name.strip():
        return "a name is not empty and does not begin or end with a space"
    if "/" in name or "\\" in name:
        return "a name holds no path separator"
    if name.startswith("."):
        return "a name does not begin with a dot"
    if not name.isprintable():
        return "a name holds no control characters"
    if len(name.encode()) > _MAX_NAME:
        return f"a name is at most {_MAX_NAME} bytes long"
    return ""


def _find(path_or_name: str | Path, folders: Folders) -> Path | None:
    """The file, or None where there is none; raises ProfileError for a name that cannot be one."""
    if _is_path(path_or_name):
        path = Path(path_or_name)
        return path if path.exists() else None
    own = path_of(str(path_or_name), folders)
    candidates = [own] if folders.examples is None else [own, folders.examples / own.name]
    return next((path for path in candidates if path.exists()), None)


def _existing(path_or_name: str | Path, folders: Folders) -> Path:
    try:
        found = _find(path_or_name, folders)
    except (OSError, ValueError) as error:
        raise ProfileError(f"{_label(Path(path_or_name))}: cannot be read: {_reason(error)}") from error
    if found is not None:
        return found
    names = [
        path.name.removesuffix(_SUFFIX) for path in (*_files(folders.profiles), *_files(folders.examples))
    ]
    if _is_path(path_or_name):
        path = Path(path_or_name)
        beside = [each.name for each in _files(path.parent)]
        near = [str(path.with_name(each)) for each in difflib.get_close_matches(path.name, beside, n=3)]
        near += difflib.get_close_matches(path.name.removesuffix(_SUFFIX), names, n=3)
        raise ProfileError(f"{_label(path)}: no such file{_nearest(near, names)}")
    near = difflib.get_close_matches(str(path_or_name), names, n=3)
    raise ProfileError(f'no profile is named "{one_line(str(path_or_name), 60)}"{_nearest(near, names)}')


def _nearest(near: list[str], names: list[str]) -> str:
    near, names = list(dict.fromkeys(near)), list(dict.fromkeys(names))
    if near:
        return f"; did you mean {one_line(' or '.join(near))}?"
    return f"; profiles here: {one_line(', '.join(names))}" if names else "; there are no profiles yet"


def _read(path: Path) -> str:
    """The text of a profile; raises ProfileError for what is no text file of a sensible size."""
    source = _label(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ProfileError(
                f"{source}: is {'a folder' if path.is_dir() else 'not a regular file'}, not a profile"
            )
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ProfileError(f"{source}: cannot be read: {_reason(error)}") from error
    if len(raw) > _MAX_BYTES:
        raise ProfileError(f"{source}: is larger than {_MAX_BYTES // 1_000_000} MB, not a profile")
    if b"\0" in raw:
        raise ProfileError(f"{source}: is a binary file, not a profile")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProfileError(f"{source}: line {line}: is not UTF-8 text") from error


def _old_text(path: Path) -> str:
    """The text that a save changes; raises ProfileError when it is not a readable profile."""
    try:
        text = _read(path)
        parse(text, source=_label(path), folder=path.absolute().parent)
    except ProfileError as error:
        raise ProfileError(f"not saved, the file there cannot be read as a profile: {error}") from error
    return text


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        return sorted(
            path for path in folder.iterdir() if path.suffix == _SUFFIX and not path.name.startswith(".")
        )
    except OSError:
        return []


def _entry(path: Path, folders: Folders, *, builtin: bool) -> ProfileEntry:
    name = path.name.removesuffix(_SUFFIX)
    try:
        loaded = load(path, folders)
    except ProfileError as error:
        return ProfileEntry(name, path, "", builtin, str(error))
    return ProfileEntry(name, path, one_line(loaded.profile.description), builtin)


def _label(path: Path) -> str:
    return one_line(str(path), 300)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or one_line(str(error))
