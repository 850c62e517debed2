from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.llama.process.output import LINE_CHARS, OutputLines, RotatingLog


def lines_of(*chunks: bytes) -> tuple[str, ...]:
    output = OutputLines()
    for chunk in chunks:
        output.feed(chunk)
    output.end()
    return output.tail(10_000)


def test_lines_are_clean_and_complete() -> None:
    assert lines_of(b"one\r\ntw", b"o\n\x1b[32mgr\xc3\xbc", b"n\x1b[0m\n10%\r50%\r100%\nlast") == (
        "one",
        "two",
        "grün",
        "100%",
        "last",
    )


def test_each_line_is_reported_when_it_is_whole() -> None:
    seen: list[str] = []
    output = OutputLines(seen.append)
    output.feed(b"a\nb")
    assert seen == ["a"]
    output.feed(b"c\n")
    assert seen == ["a", "bc"]
    output.end()
    assert seen == ["a", "bc"]


def test_an_endless_line_is_cut() -> None:
    output = OutputLines()
    for _ in range(50):
        output.feed(b"x" * 100_000)
    output.feed(b"\nnext\n")
    long, following = output.tail(5)
    assert len(long) == LINE_CHARS
    assert following == "next"


def test_the_ring_keeps_the_last_lines() -> None:
    output = OutputLines(ring=3)
    output.feed(b"1\n2\n3\n4\n5\n")
    assert output.tail(2) == ("4", "5")
    assert output.tail(99) == ("3", "4", "5")
    assert output.tail(0) == ()


@given(st.binary(max_size=200), st.integers(0, 200))
def test_a_cut_changes_nothing(data: bytes, cut: int) -> None:
    assert lines_of(data[:cut], data[cut:]) == lines_of(data)


def test_the_log_is_bounded_to_two_files(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "server.log"
    log = RotatingLog(path, limit=100)
    output = OutputLines(log=log)
    for number in range(60):
        output.feed(f"line {number:03}\n".encode())
    output.end()

    assert sorted(p.name for p in path.parent.iterdir()) == ["server.log", "server.log.1"]
    kept = log.older.read_text() + path.read_text()
    assert kept.endswith("line 058\nline 059\n")
    assert all(p.stat().st_size <= 100 for p in path.parent.iterdir())
    assert log.trouble is None


def test_the_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("before\n")
    output = OutputLines(log=RotatingLog(path))
    output.feed(b"after\n")
    assert path.read_text() == "before\nafter\n"
    output.end()
    output.end()


def test_a_full_disk_ends_the_log_and_nothing_else() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    log = RotatingLog(full)
    output = OutputLines(log=log)
    output.feed(b"one\n")
    output.feed(b"two\n")
    output.end()
    assert output.tail(5) == ("one", "two")
    assert log.trouble is not None
