"""Remembered baselines: the plain speed of a server that spectui starts itself, for exactly the same conditions.

Measuring one takes minutes and a restart: what was measured once is not measured again until the build, a file, a
setting, the prompts or the machine changes. It is a cache: losing it costs only time.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge, Gt

from spectui.core.bet.ngram_replay import Replay
from spectui.core.secrets import without_secrets
from spectui.errors import SpectuiError
from spectui.store.atomic import write_text
from spectui.store.paths import Folders, make_folder

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_log = logging.getLogger(__name__)

MAX_ENTRIES: Final = 200
_PORT: Final = "--port"
"""It changes with each start, and says nothing about speed."""
_STRICT: Final[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file as it was: another size or time means another file."""

    path: str
    size: int
    """Bytes."""
    mtime_ns: int
    """Time of the last change in nanoseconds since 1970."""

    @classmethod
    def of(cls, path: str | Path) -> FileIdentity:
        """The identity of an existing file, links followed; raises OSError."""
        real = Path(path).resolve(strict=True)
        found = real.stat()
        return cls(str(real), found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineKey:
    """Everything that the plain speed depends on; two equal keys promise the same speed."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    build: str | None
    """As the server names it, such as b10434."""
    binary: FileIdentity
    model: FileIdentity
    argv: tuple[str, ...]
    """The plain server's arguments; the port and secrets are taken out here."""
    workload: str
    prompts_hash: str
    """From `hash_prompts`."""
    temperature: float
    seed: int
    concurrency: int
    depth: int
    """Tokens that prompts are padded to."""
    max_tokens: int
    ignore_eos: bool
    machine: str
    """Host name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "argv", _comparable(self.argv))
        object.__setattr__(self, "temperature", float(self.temperature))

    @property
    def digest(self) -> str:
        """Stable over runs and Python versions: SHA-256 of the key as canonical JSON, in hex."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A plain speed with its 95 % interval, where there is one."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    tokens_per_second: Annotated[float, Gt(0)]
    """Of one stream; a mean over all of them."""
    low: float | None = None
    high: float | None = None
    streams: Annotated[float, Ge(1)] = 1.0
    """Mean number of streams that decoded at once."""
    requests: Annotated[int, Ge(0)]
    """Requests that it was measured over."""
    tokens: Annotated[int, Ge(0)]
    """Tokens that it was measured over."""
    t1_ms: Annotated[float, Gt(0)] | None = None
    """T1, a plain decode step, in milliseconds."""
    v: dict[int, Annotated[float, Gt(0)]] = field(default_factory=dict)
    """V(n), a pass over n tokens in plain steps, where it was probed in the same server process."""
    v_error: dict[int, Annotated[float, Ge(0)]] = field(default_factory=dict)
    """Relative standard error of V(n)."""
    replayed: tuple[Replay, ...] = ()
    """What n-gram lookups make of its answers, where they could be read back."""
    measured_at: Annotated[float, Ge(0)]
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class _Entry:
    key: BaselineKey
    baseline: StoredBaseline


@dataclass(frozen=True, slots=True)
class _Content:
    """The file; another version is not read."""

    version: Literal[1]
    entries: tuple[_Entry, ...]


class BaselineStore:
    """The remembered baselines in one JSON file, bounded; the oldest go first.

    Two programs that put at the same moment may lose one of the two baselines, never the file.
    """

    def __init__(self, path: Path, *, limit: int = MAX_ENTRIES) -> None:
        self._path = path
        self._limit = limit

    @classmethod
    def default(cls, folders: Folders) -> BaselineStore:
        """The store in the user's cache folder."""
        return cls(folders.baselines)

    def get(self, key: BaselineKey) -> StoredBaseline | None:
        """The baseline for exactly these conditions; None when it is not known or cannot be read."""
        return next((entry.baseline for entry in self._read() if entry.key == key), None)

    def all(self) -> tuple[tuple[BaselineKey, StoredBaseline], ...]:
        """Every baseline with its conditions, the newest first."""
        return tuple((entry.key, entry.baseline) for entry in _newest_first(self._read()))

    def put(self, key: BaselineKey, baseline: StoredBaseline) -> None:
        """Remember a baseline in place of an older one for the same conditions.

        Raises SpectuiError, one line, when the file cannot be written; what was measured is still good.
        """
        others = _newest_first(entry for entry in self._read() if entry.key != key)
        kept = (_Entry(key, baseline), *others[: self._limit - 1])
        try:
            text = _adapter().dump_json(_Content(1, kept), indent=1).decode()
            make_folder(self._path.parent)
            write_text(self._path, f"{text}\n", mode=0o600)
        except OSError as error:
            raise SpectuiError(
                f"{self._path}: the baseline cannot be remembered: {error.strerror}"
            ) from error

    def _read(self) -> tuple[_Entry, ...]:
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            _log.warning("%s: remembered baselines cannot be read: %s", self._path, error.strerror)
            return ()
        try:
            return _adapter().validate_json(raw).entries
        except ValidationError:
            self._put_aside()
            return ()

    def _put_aside(self) -> None:
        """Keep a file that cannot be understood under another name, where it is in nobody's way."""
        aside = self._path.with_name(f"{self._path.name}.unreadable")
        try:
            self._path.replace(aside)
        except OSError as error:
            _log.warning("%s: cannot be understood or put aside: %s", self._path, error.strerror)
        else:
            _log.warning("%s: cannot be understood; kept as %s, baselines start anew", self._path, aside.name)


def hash_prompts(prompts: Iterable[str]) -> str:
    """A hash of the prompts in their order; SHA-256 in hex."""
    return hashlib.sha256(json.dumps(list(prompts)).encode()).hexdigest()


def _comparable(argv: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    arguments = iter(without_secrets(tuple(argv)))
    for argument in arguments:
        if argument == _PORT:
            next(arguments, None)
        elif argument.partition("=")[0] != _PORT:
            kept.append(argument)
    return tuple(kept)


def _newest_first(entries: Iterable[_Entry]) -> list[_Entry]:
    return sorted(entries, key=lambda entry: entry.baseline.measured_at, reverse=True)


@cache
def _adapter() -> TypeAdapter[_Content]:
    from pydantic import TypeAdapter  # noqa: PLC0415  not needed for the first frame

    return TypeAdapter(_Content)
