"""Files that are damaged, old, new, busy or of others; programs that are killed, and several at once."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pydantic import TypeAdapter

from spectui.core.profile import TuningProfile
from spectui.errors import StoreBusy, StoreError
from spectui.store.records import RunConditions, RunFilter, RunSummary
from spectui.store.results import STEPS, ResultStore
from tests.store import result_writer

WRITER = Path(result_writer.__file__)
NEXT = (*STEPS, ("ALTER TABLE run ADD COLUMN note TEXT", "UPDATE run SET note = 'made of ' || workload"))
"""A schema that does not exist yet, one step ahead."""
NOW = len(STEPS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite3"


def keep(store: ResultStore, requests: int = 0) -> int:
    run = store.begin_run(RunConditions(profile=TuningProfile()), at=1.0)
    store.update_run(run, RunSummary(requests=requests))
    return run


def writer(file: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(file), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed_after(process: subprocess.Popen[str], lines: int) -> list[list[str]]:
    """Everything it said before SIGKILL reached it, at the earliest after so many lines."""
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.readlines()
        assert process.stderr.read() == ""
    return [line.split() for line in said if line.endswith("\n")]


def asked(file: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def test_a_killed_program_loses_nothing_that_it_said(file: Path) -> None:
    chosen = random.Random(7)
    known: dict[int, int] = {}
    for _ in range(8):
        for what, run, *more in killed_after(writer(file, "runs", 100_000), chosen.randrange(1, 40)):
            known[int(run)] = int(more[0]) if what == "update" else known.get(int(run), 0)
        found = {run.id: run.summary.requests for run in ResultStore(file).runs()}
        ahead = {run: requests for run, requests in found.items() if requests != known.get(run)}
        # What was in flight may have arrived without having been said, and nothing else.
        assert len(ahead) <= 1
        assert all(requests == known.get(run, -1) + 1 for run, requests in ahead.items())
        assert set(known) <= set(found)
        assert asked(file, "PRAGMA integrity_check") == [("ok",)]
        known = found


def test_a_killed_sweep_resumes_with_every_cell_and_none_twice(file: Path) -> None:
    chosen, cells = random.Random(3), 200
    said: list[str] = []
    for _ in range(6):
        said += [key for _, key in killed_after(writer(file, "sweep", cells), chosen.randrange(1, 25))]
        found = ResultStore(file).unfinished_sweep({"cells": cells})
        assert found is not None
        assert set(said) <= {cell.key for cell in found.cells}
    out, err = writer(file, "sweep", cells).communicate()
    assert err == ""
    said += [line.split()[1] for line in out.splitlines()]
    assert len(said) == len(set(said))
    (sweep,) = ResultStore(file).sweeps()
    assert sweep.state == "done"
    assert [cell.key for cell in sweep.cells] == [str(n) for n in range(cells)]
    assert [cell.result for cell in sweep.cells] == [{"speed": float(n)} for n in range(cells)]


def test_programs_side_by_side_lose_no_write(file: Path) -> None:
    processes = [writer(file, "runs", 20) for _ in range(3)]
    for process in processes:
        _, err = process.communicate()
        assert (process.returncode, err) == (0, "")
    runs = ResultStore(file).runs()
    assert [run.id for run in runs] == list(range(60, 0, -1))
    assert {(run.summary.requests, run.ended_at) for run in runs} == {(result_writer.UPDATES, 2.0)}


def test_a_program_that_never_ends_its_change_is_said(file: Path) -> None:
    keep(ResultStore(file))
    before = file.read_bytes()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for ask in (keep, ResultStore.runs):
            with pytest.raises(StoreBusy, match="another program keeps it busy; try again"):
                ask(ResultStore(file, patience=0.01))
        other.execute("ROLLBACK")
    assert file.read_bytes() == before
    assert keep(ResultStore(file, patience=0.01)) == 2


def test_a_newer_file_is_refused_and_left_alone(file: Path) -> None:
    keep(ResultStore(file, steps=NEXT))
    before = file.read_bytes()
    refusal = rf"newer spectui \(schema {NOW + 1}, this one reads {NOW}\); update spectui"
    for ask in (keep, ResultStore.runs, lambda s: s.prune(at=9.0, keep=0)):
        with pytest.raises(StoreError, match=refusal):
            ask(ResultStore(file))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("look", [True, False])
def test_an_older_file_is_brought_up_to_date_beside_a_copy(file: Path, look: bool) -> None:
    old = ResultStore(file)
    keep(old, 5)
    before = asked(file, "SELECT * FROM run")
    new = ResultStore(file, steps=NEXT)
    if look:
        assert [run.summary.requests for run in new.runs()] == [5]
    else:
        assert keep(new) == 2
    assert asked(file, "PRAGMA user_version") == [(NOW + 1,)]
    assert asked(file, "SELECT note FROM run")[0] == ("made of code",)
    copy = file.with_name(f"results.sqlite3.schema{NOW}")
    assert asked(copy, "PRAGMA user_version") == [(NOW,)]
    assert asked(copy, "SELECT * FROM run") == before
    assert [run.summary.requests for run in ResultStore(copy).runs()] == [5]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, copy.name]


def test_a_step_that_fails_changes_nothing(file: Path) -> None:
    keep(ResultStore(file), 5)
    before = file.read_bytes()
    broken = (*STEPS, ("ALTER TABLE run ADD COLUMN note TEXT", "UPDATE nowhere SET note = 1"))
    with pytest.raises(StoreError, match="no such table"):
        ResultStore(file, steps=broken).runs()
    assert file.read_bytes() == before
    assert [run.summary.requests for run in ResultStore(file).runs()] == [5]


def test_runs_of_the_first_schema_came_from_measure(file: Path) -> None:
    conditions = TypeAdapter(RunConditions).dump_json(RunConditions(profile=TuningProfile())).decode()
    with closing(sqlite3.connect(file)) as db:
        for statement in STEPS[0]:
            db.execute(statement)
        db.execute(
            "INSERT INTO run (started_at, workload, mode, conditions, summary) VALUES (1, 'code', 'off', ?, '{}')",
            (conditions,),
        )
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {0x53706543}")
        db.commit()
    store = ResultStore(file)
    store.begin_run(RunConditions(profile=TuningProfile()), at=2.0, source="dashboard")
    assert [run.source for run in store.runs()] == ["dashboard", "measure"]
    assert [run.id for run in store.runs(RunFilter(source="dashboard"))] == [2]
    copy = file.with_name("results.sqlite3.schema1")
    assert asked(copy, "PRAGMA user_version") == [(1,)]
    assert asked(copy, "SELECT id, workload FROM run") == [(1, "code")]


def test_a_sweep_of_the_second_schema_is_free_and_what_failed_in_it_can_be_tried_again(file: Path) -> None:
    old = ResultStore(file, steps=STEPS[:2])
    keep(old)
    results = {
        "a requests=8": '{"failure": "out of memory", "requests": 8}',
        "b requests=8": '{"failure": null, "requests": 8}',
    }
    with closing(sqlite3.connect(file)) as db:
        db.execute("INSERT INTO sweep (started_at, state, plan) VALUES (1, 'running', '{}')")
        for key, result in results.items():
            db.execute("INSERT INTO cell (sweep, key, done_at, result) VALUES (1, ?, 1, ?)", (key, result))
        db.commit()
    store = ResultStore(file)
    found = store.unfinished_sweep({})
    assert found is not None
    assert [cell.key for cell in found.cells] == ["a requests=8 failed", "b requests=8"]
    assert store.put_cell(1, "a requests=8", {"failure": None, "requests": 8}, at=2.0)
    assert store.take_sweep(1) is None
    copy = file.with_name("results.sqlite3.schema2")
    assert asked(copy, "SELECT key FROM cell") == [("a requests=8",), ("b requests=8",)]


def test_cells_of_the_third_schema_come_from_no_known_run(file: Path) -> None:
    conditions = TypeAdapter(RunConditions).dump_json(RunConditions(profile=TuningProfile())).decode()
    old = ResultStore(file, steps=STEPS[:3])
    sweep = old.begin_sweep({"k": 4}, at=1.0)
    with closing(sqlite3.connect(file)) as db:
        db.execute(
            "INSERT INTO run (started_at, workload, mode, conditions, summary, source)"
            " VALUES (2, 'code', 'off', ?, '{}', 'sweep')",
            (conditions,),
        )
        db.execute("INSERT INTO cell (sweep, key, done_at, result) VALUES (?, 'a', 3, '{}')", (sweep,))
        db.commit()
    store = ResultStore(file)
    assert [cell.run for cell in store.sweep(sweep).cells] == [None]
    assert [(run.source, run.sweep) for run in store.runs()] == [("sweep", None)]
    assert store.put_cell(sweep, "b", {}, at=4.0, run=1)
    assert [(cell.key, cell.run) for cell in store.sweep(sweep).cells] == [("a", None), ("b", 1)]
    assert [run.sweep for run in store.runs()] == [sweep]
    copy = file.with_name("results.sqlite3.schema3")
    assert asked(copy, "SELECT key FROM cell") == [("a",)]


def test_the_released_schema_is_not_edited() -> None:
    """A file of version 1 exists on users' disks: another layout is another step."""
    assert NOW == 4
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in STEPS[0]:
            db.execute(statement)
        found = {
            table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            for table in ("run", "sweep", "cell")
        }
    assert found == {
        "run": [
            *(
                "id",
                "started_at",
                "ended_at",
                "failure",
                "workload",
                "mode",
                "model",
                "draft",
                "build",
                "place",
            ),
            *("conditions", "summary"),
        ],
        "sweep": ["id", "started_at", "ended_at", "state", "plan"],
        "cell": ["id", "sweep", "key", "done_at", "result"],
    }


def damaged_in_the_middle(file: Path) -> bytes:
    store = ResultStore(file)
    for _ in range(30):
        keep(store)
    content = bytearray(file.read_bytes())
    content[8192:20480] = b"\xa5" * 12288
    return bytes(content)


def cut_short(file: Path) -> bytes:
    return damaged_in_the_middle(file)[:9000]


@pytest.mark.parametrize(
    "content",
    [lambda _: b"SQLite", lambda _: b"no database at all\n" * 500, damaged_in_the_middle, cut_short],
    ids=["short", "text", "middle", "cut"],
)
def test_a_damaged_file_is_refused_and_left_alone(file: Path, content: object) -> None:
    bad: bytes = content(file)  # type: ignore[operator]
    file.write_bytes(bad)
    for ask in (keep, ResultStore.runs):
        with pytest.raises(StoreError, match=r"is damaged .*; put a copy in its place, or move it") as said:
            ask(ResultStore(file))
        assert "\n" not in str(said.value)
        assert str(file) in str(said.value)
    assert file.read_bytes() == bad
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE run SET conditions = '{'",
        "UPDATE run SET conditions = '{}'",
        "UPDATE run SET summary = '[]'",
        """UPDATE run SET summary = '{"requests": -1}'""",
        """UPDATE run SET summary = '{"speed": 1}'""",
        "UPDATE run SET summary = x'ff00'",
        "UPDATE run SET summary = CAST(x'ff' AS TEXT)",
        "UPDATE run SET started_at = 'yesterday'",
        "DROP TABLE run",
    ],
)
def test_a_row_that_cannot_be_understood_is_said(file: Path, sql: str) -> None:
    keep(ResultStore(file))
    with closing(sqlite3.connect(file)) as db:
        db.execute(sql)
        db.commit()
    with pytest.raises(StoreError, match="is damaged") as said:
        ResultStore(file).runs()
    assert "\n" not in str(said.value)
    assert len(str(said.value)) < 400


@pytest.mark.parametrize("sql", ["CREATE TABLE bookmarks (url)", "PRAGMA application_id = 7"])
def test_a_database_of_another_program_is_refused(file: Path, sql: str) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute(sql)
    before = file.read_bytes()
    for ask in (keep, ResultStore.runs):
        with pytest.raises(StoreError, match="is a database of another program; move it away"):
            ask(ResultStore(file))
    assert file.read_bytes() == before


def test_an_empty_file_is_a_beginning(file: Path) -> None:
    file.touch()
    assert ResultStore(file).runs() == ()
    assert keep(ResultStore(file)) == 1


def test_a_folder_in_place_of_the_file_is_said(file: Path) -> None:
    file.mkdir()
    for ask in (keep, ResultStore.runs):
        with pytest.raises(StoreError, match="unable to open database file"):
            ask(ResultStore(file))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    store = ResultStore(tmp_path / "data" / "results.sqlite3")
    for use in (store.runs, lambda: keep(store)):
        with pytest.raises(StoreError, match="the file cannot be read or written"):
            use()


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own is closed to others."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


READ_ONLY = """
import os, sys
from pathlib import Path
from spectui.core.profile import TuningProfile
from spectui.errors import StoreError
from spectui.store.records import RunConditions
from spectui.store.results import ResultStore
store = ResultStore(Path(sys.argv[1]))
store.runs()
if os.getuid() == 0:
    os.setuid(65534)
print(len(store.runs()))
try:
    store.begin_run(RunConditions(profile=TuningProfile()), at=1.0)
except StoreError as error:
    print(error)
"""
"""Root may write anywhere, so it becomes nobody, once everything is loaded that nobody may not read."""


def test_a_folder_for_reading_only_is_read_and_said(shared_folder: Path) -> None:
    file = shared_folder / "results.sqlite3"
    keep(ResultStore(file))
    file.chmod(0o444)
    shared_folder.chmod(0o555)
    before = file.read_bytes()
    command = [sys.executable, "-c", READ_ONLY, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shared_folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    count, refusal = done.stdout.splitlines()
    assert count == "1"
    assert "the file cannot be read or written (attempt to write a readonly database)" in refusal
    assert file.read_bytes() == before
