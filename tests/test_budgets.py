from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import LONG, SHORT
from tests.benchmarks.budgets import KEPT_IN, Budget, kept, missed, table

FAST = Budget(name="first frame", figure=0.35, limit=0.4, unit="s")
SLOW = Budget(name="first frame", figure=0.45, limit=0.4, unit="s")
FOUND = Budget(name="found", figure=90, limit=90, unit="%", at_least=True)


def test_the_table_of_all_budgets_runs_every_benchmark() -> None:
    scripts = Path(__file__).parent.joinpath("benchmarks").glob("bench_*.py")
    measuring = {path.stem.removeprefix("bench_") for path in scripts if "missed(" in path.read_text("utf-8")}
    assert measuring == {*SHORT, *LONG}


@pytest.mark.parametrize("figure", [0.41, math.inf, math.nan])
def test_what_is_over_its_limit_or_no_number_is_missed(figure: float) -> None:
    assert missed(FAST, Budget(name="x", figure=figure, limit=0.4))
    assert missed(Budget(name="x", figure=-figure, limit=0.4, at_least=True))


def test_a_limit_that_is_reached_is_met(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEPT_IN, str(tmp_path / "kept"))
    assert not missed(FAST, FOUND)
    assert missed(SLOW)
    assert capsys.readouterr().out.splitlines() == [
        "first frame: 0.35 s; target at most 0.4 s: met",
        "found: 90 %; target at least 90 %: met",
        "first frame: 0.45 s; target at most 0.4 s: MISSED",
    ]
    assert table(kept(tmp_path / "kept")).splitlines() == [
        "budget       figure  target",
        "first frame  0.35 s  at most 0.4 s  met",
        "found          90 %  at least 90 %  met",
        "first frame  0.45 s  at most 0.4 s  MISSED",
    ]
