"""One SQLite file with a versioned schema, which several programs may use at once.

It knows nothing of what is kept in it. Every change is one transaction that is on the disk when it returns, so
that a crash loses what was not written yet and nothing else. A rollback journal, not a write-ahead log: that one
needs shared memory, which home folders on a network do not have, and a second file, which a copy forgets.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from spectui.core.text import one_line
from spectui.errors import StoreBusy, StoreError
from spectui.store.paths import make_folder

_APPLICATION: Final = 0x53706543
"""Tells our file from another program's ("SpeC")."""
PATIENCE: Final = 10.0
"""Seconds that a change waits for another program's; each takes milliseconds."""
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SURROUNDINGS: Final = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
}
"""Errors that say something about the folder and the disk, not about the file's content."""

Step = tuple[str, ...]
"""Statements that lead from one version of a schema to the next; the first step begins with an empty file."""


class Database:
    """Every method raises StoreError, one line, when the file cannot be used; StoreBusy when only not now.

    Nothing is created before something is written. steps: the schema; its version is their number. An older file
    is brought to it after a copy was put beside it, a newer one is refused. patience: seconds.
    """

    def __init__(self, path: Path, steps: Sequence[Step], *, patience: float = PATIENCE) -> None:
        self.path = path
        self._steps = steps
        self._patience = patience
        self._sound = False

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows of one query; none where nothing was kept yet."""
        if not self.exists():
            return []
        with self._explained(), self._connection() as db:
            version = self._version(db)
            if version == len(self._steps):
                return db.execute(sql, values).fetchall()
        if version == 0:
            return []
        with self.transaction() as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change the file as a whole or not at all; made, or brought to the schema of now, if need be."""
        with self._explained():
            make_folder(self.path.parent)
            _create(self.path)
            with self._connection() as db:
                if self._version(db) == 0:
                    db.execute("PRAGMA auto_vacuum = FULL")
                self._check(db)
                db.execute("BEGIN IMMEDIATE")
                try:
                    self._migrate(db)
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                    raise

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        made = sqlite3.connect(address, uri=True, isolation_level=None, timeout=self._patience)
        with closing(made) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = EXTRA")
            yield db

    def _version(self, db: sqlite3.Connection) -> int:
        """Version of the file's schema, 0 for an empty file. Raises StoreError for a file that is not for us."""
        # One statement, so that another program's migration falls before it or after it.
        version, owner, tables = db.execute(
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)"
            " FROM pragma_user_version, pragma_application_id"
        ).fetchone()
        if owner != _APPLICATION and (owner or version or tables):
            raise StoreError(f"{self.path}: is a database of another program; move it away")
        if version > len(self._steps):
            raise StoreError(
                f"{self.path}: was written by a newer spectui (schema {version}, this one reads"
                f" {len(self._steps)}); update spectui"
            )
        return int(version)

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse to write into a damaged file: that could cost what is still readable. Once per store."""
        if self._sound:
            return
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise StoreError(self.damaged(found))
        self._sound = True

    def _migrate(self, db: sqlite3.Connection) -> None:
        version = self._version(db)
        if version == len(self._steps):
            return
        if version:
            self._back_up(version)
        for step in self._steps[version:]:
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {len(self._steps)}")

    def _back_up(self, version: int) -> None:
        """A copy of the file in its old schema beside it; whole or not there."""
        # Read through a connection of its own: SQLite copies nothing out of an open change. Ours, which has
        # changed nothing yet, keeps other programs from changing anything meanwhile.
        copy = self.path.with_name(f"{self.path.name}.schema{version}")
        unfinished = copy.with_name(f".{copy.name}.{os.getpid()}.tmp")
        try:
            _create(unfinished)
            with self._connection() as source, closing(sqlite3.connect(unfinished)) as target:
                source.backup(target)
            unfinished.replace(copy)
        finally:
            unfinished.unlink(missing_ok=True)

    def exists(self) -> bool:
        """Whether anything was ever written. A missing folder is empty; one that is a file holds nothing ever."""
        with self._explained():
            try:
                self.path.stat()
            except FileNotFoundError:
                return False
            return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{self.path}: the file cannot be read or written: {reason}") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _BUSY:
                raise StoreBusy(f"{self.path}: another program keeps it busy; try again") from error
            if code in _SURROUNDINGS:
                text = (
                    f"{self.path}: the file cannot be read or written ({error});"
                    " check the rights on the file and its folder, and the space on the disk"
                )
            else:
                text = self.damaged(str(error))
            raise StoreError(text) from error

    def damaged(self, what: str) -> str:
        """The line that says so. what: in which way."""
        shown = one_line(" ".join(what.split()), 100)
        return f"{self.path}: is damaged ({shown}); put a copy in its place, or move it away to begin anew"


def _create(path: Path) -> None:
    """An empty file for this user only, where there is none."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
