"""The results store: runs and sweeps of this user, in one file. All SQL about them is here.

A run is kept from its first request on and again with each that ends, a sweep with each cell, so that whatever ends
spectui costs what was in flight. The columns of a run that can be asked for stand beside its conditions in full.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spectui.core.text import one_line
from spectui.core.views.run_list import RunSource
from spectui.errors import RecordError, StoreError
from spectui.store.database import PATIENCE, Database, Step
from spectui.store.owners import runs_beside, this_program
from spectui.store.paths import Folders
from spectui.store.records import (
    Run,
    RunConditions,
    RunFilter,
    RunSummary,
    Sweep,
    SweepCell,
    SweepOwner,
    SweepState,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

STEPS: Final[tuple[Step, ...]] = (
    (
        """
        CREATE TABLE run (
            id INTEGER PRIMARY KEY AUTOINCREMENT, started_at REAL NOT NULL, ended_at REAL, failure TEXT,
            workload TEXT NOT NULL, mode TEXT NOT NULL, model TEXT, draft TEXT, build TEXT, place TEXT,
            conditions TEXT NOT NULL, summary TEXT NOT NULL
        )
        """,
        "CREATE INDEX run_started ON run (started_at)",
        """
        CREATE TABLE sweep (
            id INTEGER PRIMARY KEY AUTOINCREMENT, started_at REAL NOT NULL, ended_at REAL,
            state TEXT NOT NULL, plan TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE cell (
            id INTEGER PRIMARY KEY, sweep INTEGER NOT NULL REFERENCES sweep (id) ON DELETE CASCADE,
            key TEXT NOT NULL, done_at REAL NOT NULL, result TEXT NOT NULL, UNIQUE (sweep, key)
        )
        """,
    ),
    # Until then only `measure` kept runs.
    ("ALTER TABLE run ADD COLUMN source TEXT NOT NULL DEFAULT 'measure'",),
    (
        "ALTER TABLE sweep ADD COLUMN owner TEXT",
        # Until then a failure had the key of what yields something when it is tried again.
        """UPDATE cell SET key = key || ' failed' WHERE instr(result, '"failure": "')""",
    ),
    (
        # Until then nothing said which run a cell comes from.
        "ALTER TABLE cell ADD COLUMN run INTEGER REFERENCES run (id) ON DELETE SET NULL",
        "CREATE INDEX cell_run ON cell (run)",
    ),
)
"""Statements that lead from one version of the schema to the next; the first make version 1 of an empty file."""
_RUN: Final = "SELECT *, (SELECT sweep FROM cell WHERE cell.run = run.id) AS sweep FROM run"
_KEPT: Final = (Run, RunConditions, RunSummary, Sweep, SweepCell, SweepOwner)
_MAY_GO_ON: Final = 86_400.0
"""Seconds after its beginning in which what has not ended counts as going on, and not as left by a crash."""


class ResultStore:
    """The results of this user. Every method raises StoreError, one line, when the file cannot be used.

    What changes a run or a sweep raises RecordError when that one cannot be kept, or is not there any more.
    Nothing is created before something is kept. steps and patience are those of `database.Database`.
    """

    def __init__(self, path: Path, *, steps: Sequence[Step] = STEPS, patience: float = PATIENCE) -> None:
        self._database = Database(path, steps, patience=patience)

    @classmethod
    def default(cls, folders: Folders) -> ResultStore:
        """The store in the user's data folder."""
        return cls(folders.results)

    def begin_run(
        self,
        conditions: RunConditions,
        summary: RunSummary | None = None,
        *,
        at: float,
        source: RunSource = "measure",
    ) -> int:
        """Keep that a run began, with what it yielded so far; returns its number, which no other run ever gets."""
        profile = conditions.profile
        row = {
            "started_at": at,
            "source": source,
            "workload": profile.traffic.workload,
            "mode": profile.speculation.mode,
            "model": profile.server.model,
            "draft": conditions.draft_path,
            "build": conditions.build,
            "place": conditions.place,
            "conditions": self._text(RunConditions, conditions),
            "summary": self._text(RunSummary, summary or RunSummary()),
        }
        names = ", ".join(row)
        with self._database.transaction() as db:
            values = ", ".join(f":{name}" for name in row)
            insert = f"INSERT INTO run ({names}) VALUES ({values}) RETURNING id"  # noqa: S608  our own names
            return _number(db.execute(insert, row))

    def update_run(self, run: int, summary: RunSummary) -> None:
        """Keep what a run yielded so far."""
        text = self._text(RunSummary, summary)
        with self._database.transaction() as db:
            changed = db.execute("UPDATE run SET summary = ? WHERE id = ?", (text, run))
            self._require(changed, "run", run)

    def end_run(self, run: int, summary: RunSummary, *, at: float, failure: str | None = None) -> None:
        """Keep what a run yielded, that it ended, and what ended it early."""
        text = self._text(RunSummary, summary)
        with self._database.transaction() as db:
            changed = db.execute(
                "UPDATE run SET summary = ?, ended_at = ?, failure = ? WHERE id = ?", (text, at, failure, run)
            )
            self._require(changed, "run", run)

    def remove_run(self, run: int) -> None:
        """Keep nothing of a run."""
        with self._database.transaction() as db:
            self._require(db.execute("DELETE FROM run WHERE id = ?", (run,)), "run", run)

    def run(self, run: int) -> Run:
        """One run by its number."""
        rows = self._database.rows(f"{_RUN} WHERE id = ?", (run,))
        if not rows:
            raise StoreError(f"no run has the number {run}; spectui history lists them")
        return self._run_of(rows[0])

    def runs(self, wanted: RunFilter | None = None) -> tuple[Run, ...]:
        """The runs that are wanted, the newest first."""
        wanted = wanted or RunFilter()
        conditions = {
            "workload = ?": wanted.workload,
            "mode = ?": wanted.mode,
            "instr(draft, ?)": wanted.draft,
            "instr(model, ?)": wanted.model,
            "build = ?": wanted.build,
            "source = ?": wanted.source,
            "started_at >= ?": wanted.since,
        }
        given = {sql: value for sql, value in conditions.items() if value is not None}
        where = " AND ".join(given) or "TRUE"
        rows = self._database.rows(
            f"{_RUN} WHERE {where} ORDER BY started_at DESC, id DESC LIMIT ?",
            (*given.values(), -1 if wanted.limit is None else wanted.limit),
        )
        return tuple(self._run_of(row) for row in rows)

    def builds(self) -> Mapping[str, str]:
        """The build that was seen last at each place, an address or a binary."""
        rows = self._database.rows(
            "SELECT place, build FROM run WHERE place NOT NULL AND build NOT NULL ORDER BY started_at, id"
        )
        return {row["place"]: row["build"] for row in rows}

    def begin_sweep(self, plan: Mapping[str, Any], *, at: float) -> int:
        """Keep that this program began a sweep; returns its number."""
        with self._database.transaction() as db:
            made = db.execute(
                "INSERT INTO sweep (started_at, state, plan, owner) VALUES (?, 'running', ?, ?) RETURNING id",
                (at, _canonical(plan), self._text(SweepOwner, this_program())),
            )
            return _number(made)

    def take_sweep(self, sweep: int) -> SweepOwner | None:
        """Keep that this program goes on with a sweep; where another one runs it, that one, and nothing changes."""
        with self._database.transaction() as db:
            row = db.execute("SELECT * FROM sweep WHERE id = ?", (sweep,)).fetchone()
            if row is not None and (owner := self._owner_of(row)) is not None:
                return owner
            changed = db.execute(
                "UPDATE sweep SET state = 'running', ended_at = NULL, owner = ? WHERE id = ?",
                (self._text(SweepOwner, this_program()), sweep),
            )
            self._require(changed, "sweep", sweep)
        return None

    def put_cell(
        self, sweep: int, key: str, result: Mapping[str, Any], *, at: float, run: int | None = None
    ) -> bool:
        """Keep a finished cell; False, with the first result kept, where the sweep has that cell already.

        run: number of the run that it comes from; one that was pruned meanwhile is none.
        """
        with self._database.transaction() as db:
            self._require(db.execute("UPDATE sweep SET state = state WHERE id = ?", (sweep,)), "sweep", sweep)
            made = db.execute(
                "INSERT INTO cell (sweep, key, done_at, result, run)"
                " VALUES (?, ?, ?, ?, (SELECT id FROM run WHERE id = ?)) ON CONFLICT (sweep, key) DO NOTHING",
                (sweep, key, at, _canonical(result), run),
            )
            return made.rowcount == 1

    def end_sweep(self, sweep: int, state: SweepState, *, at: float) -> None:
        """Keep how a sweep ended."""
        with self._database.transaction() as db:
            changed = db.execute(
                "UPDATE sweep SET state = ?, ended_at = ?, owner = NULL WHERE id = ?", (state, at, sweep)
            )
            self._require(changed, "sweep", sweep)

    def unfinished_sweep(self, plan: Mapping[str, Any]) -> Sweep | None:
        """The newest sweep with this very plan that is not done and that no other program runs, with its cells."""
        rows = self._database.rows(
            "SELECT * FROM sweep WHERE state != 'done' AND plan = ? ORDER BY id DESC", (_canonical(plan),)
        )
        free = next((row for row in rows if self._owner_of(row) is None), None)
        return None if free is None else self._sweep_of(free)

    def sweep(self, sweep: int) -> Sweep:
        """One sweep by its number, with its cells."""
        return self._sweep_of(self._sweep_row(sweep))

    def owner_of(self, sweep: int) -> SweepOwner | None:
        """The other program on this host that runs a sweep now; one that was killed runs nothing."""
        return self._owner_of(self._sweep_row(sweep))

    def sweeps(self) -> tuple[Sweep, ...]:
        """Every sweep with its cells, the newest first."""
        return tuple(
            self._sweep_of(row) for row in self._database.rows("SELECT * FROM sweep ORDER BY id DESC")
        )

    def prune(self, *, at: float, keep: int | None = None, before: float | None = None) -> tuple[int, int]:
        """Remove all but the newest `keep` runs and sweeps, and what started before that time (since 1970).

        at: now. What has not ended and began less than a day before is spared, since it may still go on, and so
        is a sweep that another program runs. Returns how many runs and sweeps went. The space is given back.
        """
        if not self._database.exists():
            return 0, 0
        gone = []
        with self._database.transaction() as db:
            begun = db.execute("SELECT * FROM sweep WHERE state = 'running'").fetchall()
            owned = [int(row["id"]) for row in begun if self._owner_of(row) is not None]
            held: dict[str, list[int]] = {"run": [], "sweep": owned}
            for table in ("run", "sweep"):
                removed = db.execute(
                    f"DELETE FROM {table} WHERE (started_at < :before OR id NOT IN"  # noqa: S608  from above
                    f" (SELECT id FROM {table} ORDER BY started_at DESC, id DESC LIMIT :keep))"
                    " AND (ended_at NOT NULL OR started_at <= :stale)"
                    " AND id NOT IN (SELECT value FROM json_each(:held))",
                    {
                        "before": before,
                        "keep": -1 if keep is None else keep,
                        "stale": at - _MAY_GO_ON,
                        "held": json.dumps(held[table]),
                    },
                )
                gone.append(removed.rowcount)
        return gone[0], gone[1]

    def _run_of(self, row: sqlite3.Row) -> Run:
        names = ("id", "source", "started_at", "ended_at", "failure", "sweep")
        run: Run = self._value(Run, row, names, ("conditions", "summary"))
        return run

    def _sweep_row(self, sweep: int) -> sqlite3.Row:
        rows = self._database.rows("SELECT * FROM sweep WHERE id = ?", (sweep,))
        if not rows:
            raise StoreError(f"no sweep has the number {sweep}; spectui sweep says a sweep's number")
        return rows[0]

    def _owner_of(self, row: sqlite3.Row) -> SweepOwner | None:
        if row["state"] != "running" or row["owner"] is None:
            return None
        try:
            owner: SweepOwner = _adapters()[SweepOwner].validate_json(row["owner"])
        except ValueError as error:
            what = f"who runs sweep {row['id']} cannot be understood"
            raise StoreError(self._database.damaged(what)) from error
        return owner if runs_beside(owner) else None

    def _sweep_of(self, row: sqlite3.Row) -> Sweep:
        cells = self._database.rows("SELECT * FROM cell WHERE sweep = ? ORDER BY id", (row["id"],))
        found = [self._value(SweepCell, cell, ("key", "done_at", "run"), ("result",)) for cell in cells]
        names = ("id", "state", "started_at", "ended_at")
        sweep: Sweep = self._value(Sweep, row, names, ("plan",), cells=found)
        return sweep

    def _value(
        self, kind: type[Any], row: sqlite3.Row, plain: Sequence[str], texts: Sequence[str], **more: Any
    ) -> Any:
        try:
            data = {name: row[name] for name in plain} | {name: json.loads(row[name]) for name in texts}
            return _adapters()[kind].validate_python(data | more)
        except (ValueError, TypeError, RecursionError) as error:
            what = f"{kind.__name__} {row['id']} cannot be understood"
            raise StoreError(self._database.damaged(what)) from error

    def _text(self, kind: type[Any], value: Any) -> str:
        """The value as JSON that reads back as the same value."""
        try:
            text: str = _adapters()[kind].dump_json(value).decode()
            _adapters()[kind].validate_json(text)
        except ValueError as error:
            reason = one_line(str(error).splitlines()[0], 100)
            raise RecordError(f"{self._database.path}: this result cannot be kept: {reason}") from error
        return text

    def _require(self, changed: sqlite3.Cursor, what: str, number: int) -> None:
        if changed.rowcount != 1:
            raise RecordError(f"{self._database.path}: holds no {what} {number} any more; it was pruned")


def _number(made: sqlite3.Cursor) -> int:
    return int(made.fetchall()[0]["id"])


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


@cache
def _adapters() -> Mapping[type, TypeAdapter[Any]]:
    from pydantic import TypeAdapter  # noqa: PLC0415  not needed for the first frame

    return {kind: TypeAdapter(kind) for kind in _KEPT}
