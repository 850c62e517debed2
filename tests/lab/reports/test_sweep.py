"""A kept sweep and back, its report, and its exports, without a server."""

from __future__ import annotations

import configparser
import csv
import io
import json
import math
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from spectui.core.bet.estimates import Estimate
from spectui.core.bet.ngram_replay import Replay
from spectui.core.bet.segment import SpeedEstimate
from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Pace, Setting
from spectui.errors import StoreError, UsageError
from spectui.lab.experiments.sweep_record import (
    Found,
    Measured,
    SweepOrder,
    found_of,
    plan_of,
    stored,
    stored_key,
)
from spectui.lab.reports import export
from spectui.lab.reports.sweep import plan_table, plan_to_json, sweep_table, sweep_to_json
from spectui.lab.views.sweep_watch import maps_of
from spectui.llama.binary.capabilities import Capabilities, Flag
from spectui.store.results import ResultStore

CODE, PROSE = Condition("code", 0.0), Condition("prose", 0.0)
GRID = Grid(
    workloads=("code", "prose"),
    temperatures=(0.0,),
    modes=("draft-simple", "ngram-simple"),
    ks=(1, 2, 4),
    drafts=("/m/d.gguf",),
    lookups=(4,),
    lengths=(8, 48),
)
ORDER = SweepOrder(
    profile=TuningProfile(
        server=ServerSettings(model="/m/t.gguf", extra_args=("--api-key", "hunter2", "--no-mmap")),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/d.gguf"),
    ),
    grid=GRID,
    requests=8,
)
FOUR = Setting(mode="draft-simple", draft="/m/d.gguf", k=4, p_min=0.0)
LOW = math.exp(-1.96 * math.hypot(0.02, 0.02, 0.015, 0.015))
"""Both runs have an error of 2 %, and both starts one of 1.5 %."""
LOOKUP = Setting(mode="ngram-simple", ngram_lookup=4, ngram_length=8)


def ran(value: float, *, requests: int = 8, **more: Any) -> Measured:
    speed = SpeedEstimate(per_stream=Estimate(value=20 * value), streams=1.0, relative_error=0.02)
    return Measured(requests=requests, server_seconds=3.0, speed=speed, baseline=20.0, **more)


def plain() -> Measured:
    return replace(ran(1.0), baseline=None, v={2: 1.1, 5: 1.5}, v_error={2: 0.01})


def a_sweep() -> Found:
    found = Found(order=ORDER, number=7, finished=True)
    guesses = {k: Estimate(value=v, low=v - 0.05, high=v + 0.05) for k, v in ((1, 1.3), (2, 1.15), (4, 1.2))}
    found.take(Cell(CODE, PLAIN), plain())
    found.take(Cell(CODE, FOUR), ran(1.2, predicted=guesses, speedup_predicted=1.22))
    found.take(Cell(CODE, LOOKUP), ran(2.4, requests=2))
    found.take(Cell(CODE, LOOKUP), ran(2.2))
    return found


REPLAYS = (Replay(4, 8, 1000, 300, 400.0, 1000, 0.1), Replay(4, 48, 1000, 250, 380.0, 1500, 0.1))


def replayed_sweep(*, drafted: float = 1000 / 300) -> Found:
    """One lookup was measured, at 450 steps for its 1000 rows; drafted: per pass of that run."""
    found = Found(order=ORDER, number=7, finished=True)
    found.take(Cell(CODE, PLAIN), replace(plain(), replayed=REPLAYS))
    found.take(Cell(CODE, LOOKUP), ran(1000 / 450, drafted_per_pass=drafted))
    return found


def test_lookups_are_predicted_by_one_that_ran() -> None:
    cells = {
        c["ngram_length"]: c for c in sweep_to_json(replayed_sweep())["cells"] if c["workload"] == "code"
    }
    # 0.05 steps per row beyond V.
    assert cells[48]["speedup_predicted"] == pytest.approx(1000 / (380 + 0.05 * 1500), rel=0.01)
    assert cells[48]["low"] < cells[48]["speedup_predicted"] < cells[48]["high"]
    assert not cells[48]["measured"]
    # The run itself was predicted without it.
    assert cells[8]["speedup_actual"] == pytest.approx(1000 / 450)
    assert cells[8]["speedup_predicted"] == pytest.approx(1000 / (400 + 0.075 * 1000))
    prose = [c for c in sweep_to_json(replayed_sweep())["cells"] if c["workload"] == "prose"]
    assert {c["speedup_predicted"] for c in prose} == {None}


def test_what_yields_one_token_a_pass_is_never_recommended() -> None:
    found = a_sweep()
    assert sweep_to_json(found)["recommendation"]["code"]["ngram_length"] == 8
    found.take(Cell(CODE, LOOKUP), ran(2.2, requests=9, tokens_per_pass=1.0))
    assert sweep_to_json(found)["recommendation"]["code"]["mode"] == "draft-simple"


def test_a_server_that_drafts_less_than_the_text_allows_tells_nothing_of_others() -> None:
    cells = sweep_to_json(replayed_sweep(drafted=2.0))["cells"]
    assert {c["speedup_predicted"] for c in cells if c["workload"] == "code"} == {None}


@pytest.mark.parametrize("begun", [a_sweep, replayed_sweep])
def test_a_sweep_is_kept_and_read_back(tmp_path: Path, begun: Callable[[], Found]) -> None:
    store = ResultStore(tmp_path / "results.sqlite")
    number = store.begin_sweep(plan_of(ORDER), at=1.0)
    found = begun()
    for cell, measured in found.cells.items():
        assert store.put_cell(number, stored_key(cell, measured, at=2.0), stored(measured), at=2.0)
    store.put_cell(number, "rest 3.0 requests=0", stored(Measured(requests=0, server_seconds=1.5)), at=3.0)
    known = store.unfinished_sweep(plan_of(ORDER))
    assert known is not None
    back = found_of(known)
    assert back.cells == found.cells
    assert back.outcomes == found.outcomes
    assert back.server_seconds == pytest.approx(3.0 * len(found.cells) + 1.5)
    assert back.order.grid == GRID
    store.end_sweep(number, "done", at=4.0)
    assert store.unfinished_sweep(plan_of(ORDER)) is None
    assert export.kept_sweep(store, number).finished
    newest = export.newest_sweep(store, ORDER.profile)
    assert newest is not None
    assert newest.number == number
    faster = ORDER.profile.with_speculation(mode="ngram-simple", draft_length=9, p_min=0.5)
    assert export.newest_sweep(store, faster) == newest
    assert export.newest_sweep(store, faster.with_speculation(draft_model="/m/e.gguf")) is None
    assert export.newest_sweep(store, TuningProfile()) is None
    with pytest.raises(StoreError, match="no sweep has the number 99"):
        export.kept_sweep(store, 99)


def test_no_secret_enters_a_plan() -> None:
    text = json.dumps(plan_of(ORDER))
    assert "hunter2" not in text
    assert "--no-mmap" in text


def test_a_sweep_of_another_version_is_one_line(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.sqlite")
    number = store.begin_sweep({"grid": "another"}, at=1.0)
    with pytest.raises(StoreError, match=f"sweep {number} cannot be understood"):
        export.kept_sweep(store, number)


def test_the_object_has_every_cell_and_unknown_is_null() -> None:
    data = sweep_to_json(a_sweep())
    assert len(data["cells"]) == 10
    by = {(c["workload"], c["mode"], c["k"], c["ngram_length"]): c for c in data["cells"]}
    four, two = by["code", "draft-simple", 4, None], by["code", "draft-simple", 2, None]
    assert (four["measured"], four["speedup_actual"], four["speedup_predicted"]) == (True, 1.2, 1.22)
    assert (four["tokens_per_second"], four["low"], four["high"]) == (
        24.0,
        pytest.approx(LOW * 1.2),
        pytest.approx(1.2 / LOW),
    )
    assert (two["measured"], two["speedup_actual"], two["tokens_per_second"]) == (False, None, None)
    assert two["speedup_predicted"] == 1.15
    assert two["low"] < 1.1
    assert two["high"] > 1.2
    lookup = by["code", "ngram-simple", None, 8]
    assert (lookup["speedup_actual"], lookup["requests"], lookup["k"], lookup["p_min"]) == (
        2.2,
        8,
        None,
        None,
    )
    unknown = by["prose", "draft-simple", 1, None]
    assert {unknown[n] for n in ("tokens_per_second", "speedup_actual", "speedup_predicted", "low")} == {None}
    assert data["recommendation"]["code"] == {
        "mode": "ngram-simple",
        "draft": None,
        "k": None,
        "p_min": None,
        "ngram_lookup": 4,
        "ngram_length": 8,
        "speedup": 2.2,
        "low": pytest.approx(2.2 * LOW),
        "high": pytest.approx(2.2 / LOW),
        "measured": True,
        "doubts": ["from 8 requests only"],
    }
    assert data["recommendation"]["prose"] is None
    assert data["server_seconds"] == 12.0


def test_a_second_baseline_moves_every_speedup_and_prediction() -> None:
    found = a_sweep()
    found.take(Cell(CODE, PLAIN), replace(ran(1.25, requests=16), baseline=None))
    by = {(c["workload"], c["mode"], c["k"], c["ngram_length"]): c for c in sweep_to_json(found)["cells"]}
    assert by["code", "draft-simple", 4, None]["speedup_actual"] == pytest.approx(1.2 / 1.25)
    assert by["code", "draft-simple", 4, None]["speedup_predicted"] == pytest.approx(1.22 / 1.25)
    assert by["code", "draft-simple", 2, None]["speedup_predicted"] == pytest.approx(1.15 / 1.25)


@pytest.mark.parametrize(("drift", "said"), [(1.5, True), (0.7, True), (1.05, False), (None, False)])
def test_a_machine_that_drifted_is_named(drift: float | None, said: bool) -> None:
    found = a_sweep()
    found.take(Cell(CODE, PLAIN), replace(plain(), requests=16, drift=drift))
    data = sweep_to_json(found)
    assert data["baselines"][0]["drift"] == drift
    assert ("the machine drifted: " in sweep_table(data)) == said
    doubt = "the machine drifted by "
    best = data["recommendation"]["code"]
    assert any(each.startswith(doubt) for each in best["doubts"]) == said
    assert (doubt in sweep_table(data)) == (doubt in maps_of(found)[0].said) == said


def test_a_doubtful_recommendation_is_no_order() -> None:
    order = replace(ORDER, requests=10)
    found = Found(order=order, number=7, finished=True)
    found.take(Cell(CODE, PLAIN), replace(plain(), requests=20))
    found.take(Cell(CODE, LOOKUP), ran(2.2, requests=10))
    gain = "2.20x (2.05 to 2.36)"
    assert f"code: use ngram-simple lookup 4 length 8: {gain}\n" in sweep_table(sweep_to_json(found))
    found.take(Cell(CODE, PLAIN), replace(plain(), requests=20, drift=0.77))
    said = f"code: ngram-simple lookup 4 length 8: {gain}, not sure: the machine drifted by -23%\n"
    assert said in sweep_table(sweep_to_json(found))
    found.cells[Cell(CODE, LOOKUP)] = ran(0.9, requests=10)
    off = sweep_table(sweep_to_json(found))
    assert "code: speculation off, nothing wins by 5 %, not sure: the machine drifted by -23%\n" in off


def test_the_last_line_says_what_is_kept_and_how_it_goes_on() -> None:
    found = a_sweep()

    def last() -> str:
        return sweep_table(sweep_to_json(found)).splitlines()[-1]

    assert last() == "sweep 7: servers ran for 12 s"
    found.finished = False
    assert last() == "sweep 7: servers ran for 12 s, unfinished: spectui sweep --resume 7 goes on"
    found.number = None
    assert last() == "this sweep was not kept: servers ran for 12 s, unfinished"


def test_the_heat_map_marks_what_was_measured() -> None:
    text = sweep_table(sweep_to_json(a_sweep()))
    assert "draft-simple d.gguf  (1.30)  (1.15)  1.20" in text
    assert "ngram-simple lookup 4  2.20      ." in text
    gain = "2.20x (2.05 to 2.36)"
    assert f"code: ngram-simple lookup 4 length 8: {gain}, not sure: from 8 requests only" in text
    assert "prose: nothing is known yet" in text


def test_several_temperatures_stand_apart() -> None:
    found = Found(order=replace(ORDER, grid=replace(GRID, temperatures=(0.0, 0.8))))
    found.take(Cell(Condition("code", 0.8), PLAIN), plain())
    names = sweep_to_json(found)["recommendation"]
    assert list(names) == ["code T=0", "code T=0.8", "prose T=0", "prose T=0.8"]
    assert names["code T=0.8"] is None


def test_off_is_recommended_only_once_something_was_tried() -> None:
    found = Found(order=ORDER)

    def recommended() -> Any:
        return sweep_to_json(found)["recommendation"]["code"]

    found.take(Cell(CODE, PLAIN), plain())
    assert recommended() is None
    found.take(Cell(PROSE, FOUR), ran(0.9))
    found.take(Cell(CODE, FOUR), Measured(requests=8, failure="out of memory"))
    assert recommended() is None
    found.take(Cell(CODE, LOOKUP), ran(0.9))
    assert recommended()["mode"] == "off"
    nothing_ran = Found(order=ORDER, finished=True, cells={Cell(CODE, PLAIN): plain()})
    assert sweep_to_json(nothing_ran)["recommendation"]["code"]["mode"] == "off"


def test_a_failure_takes_nothing_away_from_a_run_that_yielded_something() -> None:
    found, cell = a_sweep(), Cell(CODE, Setting(mode="ngram-simple", ngram_lookup=4, ngram_length=48))
    found.take(cell, ran(1.3, requests=2))
    found.take(cell, Measured(requests=8, failure="out of memory"))
    assert (found.speedup(cell), found.done) == (found.outcomes[cell].speedup, 3)
    assert (found.outcomes[cell].requests, found.outcomes[cell].tried) == (2, 8)
    assert found.failures == {cell.key: "out of memory"}
    shown = next(c for c in sweep_to_json(found)["cells"] if c["failure"])
    assert (shown["speedup_actual"], shown["requests"], shown["ngram_length"]) == (1.3, 2, 48)
    found.take(cell, ran(1.2))
    assert found.failures == {}
    assert found.cells[cell].requests == 8


def test_what_failed_before_it_yielded_something_is_kept_beside_it(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.sqlite")
    number, cell = store.begin_sweep(plan_of(ORDER), at=1.0), Cell(CODE, FOUR)
    for at, measured in (
        (2.0, Measured(requests=8, server_seconds=1.0, failure="out of memory")),
        (3.0, Measured(requests=8, server_seconds=1.0, failure="out of memory again")),
        (4.0, ran(1.2)),
    ):
        assert store.put_cell(number, stored_key(cell, measured, at=at), stored(measured), at=at)
    back = export.kept_sweep(store, number)
    assert (back.cells, back.failed, back.server_seconds) == ({cell: ran(1.2)}, {}, 5.0)


def test_many_cells_are_reckoned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Found] = []
    reckon = cast("property", Found.outcomes).fget
    assert reckon is not None

    def outcomes(found: Found) -> object:
        asked.append(found)
        return reckon(found)

    monkeypatch.setattr(Found, "outcomes", property(outcomes))
    sweep_to_json(a_sweep())
    assert len(asked) == 1
    maps_of(a_sweep())
    assert len(asked) == 2


def test_the_plan_counts_starts_and_minutes() -> None:
    data = plan_to_json(ORDER, Pace(tokens=100, speed=100.0, start=6.0, first_token=0.0))
    assert len(data["cells"]) == 10
    assert data["restarts"] == {"least": 2, "most": 7}
    assert data["minutes"]["most"] == pytest.approx((7 * 6 + 14 * (8 + 0.32)) / 60)
    assert "10 cells, 2 to 7 server starts" in plan_table(data)


CAPS = Capabilities(
    flags=(
        Flag(spellings=("-m", "--model"), hint="FNAME"),
        Flag(spellings=("--spec-type",), hint="TYPE"),
        Flag(spellings=("--no-mmap",)),
        Flag(spellings=("--port",), hint="PORT"),
        Flag(spellings=("--host",), hint="HOST"),
        Flag(spellings=("--two",), hint="A B"),
    )
)
SERVER = ("/opt/my bin/llama-server", "--host", "127.0.0.1", "--port", "8080")


def test_a_preset_reads_back_as_ini() -> None:
    line = (*SERVER, "-m", '/m/it\'s "my" é.gguf', "--spec-type=ngram-simple", "--no-mmap")
    text = export.preset({"code": line, "prose": (*SERVER, "-m", "/m/t.gguf")}, CAPS)
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text.replace("version = 1", ""))
    assert dict(parser["code"]) == {
        "m": '/m/it\'s "my" é.gguf',
        "spec-type": "ngram-simple",
        "no-mmap": "true",
    }
    assert parser.sections() == ["code", "prose"]


@pytest.mark.parametrize(
    "words", [("-m", "/m/a;b"), ("-m", "/m/a#b"), ("-m", "/m/a "), ("-m", "/a\nb"), ("--two", "1")]
)
def test_what_a_preset_cannot_hold_is_said(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        export.preset({"code": (*SERVER, *words)}, CAPS)


@pytest.mark.parametrize("path", ['/m/it\'s "my" $HOME `x` \\ file.gguf', "/m/a\nb", "/m/-x;rm"])
def test_a_script_hands_over_every_argument_as_it_is(path: str, tmp_path: Path) -> None:
    show = tmp_path / "show it"
    show.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    show.chmod(0o755)
    script = export.shell({"code": (str(show), "-m", path), "prose": (str(show), "plain")})
    file = tmp_path / "run.sh"
    export.write(str(file), script, executable=True)

    def given(*arguments: str) -> list[str]:
        done = subprocess.run([file, *arguments], capture_output=True, check=True)
        return done.stdout.decode().split("\0")[:-1]

    assert given() == given("code") == ["-m", path]
    assert given("prose") == ["plain"]
    assert subprocess.run([file, "poetry"], capture_output=True, check=False).returncode == 2


def test_a_script_takes_the_key_from_the_variable() -> None:
    script = export.shell({"code": SERVER}, key="MY_KEY")
    assert 'export LLAMA_API_KEY="$MY_KEY"' in script


def test_llama_swap_gets_its_own_port() -> None:
    text = export.llama_swap({'co"de': (*SERVER, "-m", "/m/it's.gguf")})
    name, command = text.splitlines()[2:]
    assert json.loads(name.strip().removesuffix(":")) == 'co"de'
    words = shlex.split(json.loads(command.strip().removeprefix("cmd: ")))
    assert words == ["/opt/my bin/llama-server", "-m", "/m/it's.gguf", "--port", "${PORT}"]
    with pytest.raises(UsageError, match="macro"):
        export.llama_swap({"code": ("/bin/llama-server", "-m", "/m/${x}")})


async def test_numbers_are_exported(tmp_path: Path) -> None:
    from spectui.lab.servers.launcher import Launcher

    found, launcher = a_sweep(), Launcher()
    text = await export.export("csv", profile=None, found=found, launcher=launcher)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 10
    assert [r["speedup_actual"] for r in rows if r["ngram_length"] == "8" and r["workload"] == "code"] == [
        "2.2"
    ]
    assert json.loads(
        await export.export("json", profile=None, found=found, launcher=launcher)
    ) == json.loads(json.dumps(sweep_to_json(found)))
    report = await export.export("markdown", profile=None, found=found, launcher=launcher)
    assert "- code: ngram-simple lookup 4 length 8: 2.20x" in report
    assert "## code, temperature 0" in report
    assert report.count("|") == 4
    with pytest.raises(UsageError, match="nothing was swept"):
        await export.export("csv", profile=ORDER.profile, found=None, launcher=launcher)


def test_recommended_profiles_carry_the_setting() -> None:
    profiles = export.recommended_profiles(a_sweep())
    assert list(profiles) == ["code"]
    speculation = profiles["code"].speculation
    assert (speculation.mode, speculation.ngram_lookup, speculation.ngram_length) == ("ngram-simple", 4, 8)
