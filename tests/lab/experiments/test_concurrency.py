from __future__ import annotations

from pathlib import Path

import pytest

from spectui.core.bet.estimates import BetReading, Estimate
from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.errors import ServerGone, UsageError
from spectui.lab.experiments.concurrency import ConcurrencySweep, Level, Levels, with_slots
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.reports.concurrency import levels_table, levels_to_json
from spectui.lab.servers.launcher import Launcher
from spectui.store.results import ResultStore
from tests.scripted_server import Script, ScriptedServer


def level(at_once: int, speedup: float | None, spread: float = 0.02) -> Level:
    actual = None
    if speedup is not None:
        actual = Estimate(value=speedup, low=speedup - spread, high=speedup + spread)
    plain = Estimate(value=10.0 * at_once)
    return Level(
        at_once=at_once,
        bet=BetReading(
            baseline=plain,
            speedup_actual=actual,
            tokens_per_second=None if speedup is None else plain.value * speedup,
        ),
    )


def levels(*speedups: float | None, failure: ServerGone | None = None) -> Levels:
    rows = tuple(level(2**i, s) for i, s in enumerate(speedups))
    return Levels(workload="code", build="b10434", rows=rows, failure=failure)


@pytest.mark.parametrize(
    ("speedups", "turn"),
    [
        ((1.3, 1.2, 0.9, 0.7), (2, 4)),
        ((0.9, 0.8), None),
        ((1.3, 1.1), None),
        ((1.3, None, 0.8), (1, 4)),
        ((1.3, 1.01, 0.99, 0.8), (1, 8)),
        ((1.01, 0.99), None),
        ((), None),
    ],
)
def test_where_the_gain_turns(speedups: tuple[float | None, ...], turn: tuple[int, int] | None) -> None:
    assert levels(*speedups).inversion == turn


def test_the_sentence_calls_a_level_even_whose_interval_holds_one() -> None:
    said = levels(1.3, 1.01, 0.8).sentence
    assert said == (
        "1 at once: wins (1.30x), 2 at once: even (1.01x), 4 at once: loses (0.80x); "
        "the gain turns into a loss between 1 and 4 at once"
    )
    assert "unknown" in levels(None).sentence
    assert levels().sentence == "no level was measured"


def test_each_slot_keeps_its_context() -> None:
    profile = TuningProfile(server=ServerSettings(model="t.gguf", context=4096, parallel=2))
    wide = with_slots(profile, 8)
    assert (wide.server.parallel, wide.server.context) == (8, 16384)
    assert with_slots(profile.with_server(context=None), 8).server.context is None
    attached = TuningProfile(server=ServerSettings(url="http://127.0.0.1:1"))
    assert with_slots(attached, 8) is attached


def test_the_table_draws_both_speeds_on_one_scale() -> None:
    data = levels_to_json(levels(1.5, 0.5))
    assert data["inverts_between"] == [1, 2]
    assert [row["concurrency"] for row in data["rows"]] == [1, 2]
    table = levels_table(data)
    bars = [line for line in table.splitlines() if "####" in line or "...." in line]
    assert [line.count("#") for line in bars] == [0, 30, 0, 20]
    assert [line.count(".") for line in bars] == [21, 1, 41, 1]
    assert table.splitlines()[-1] == data["message"]


def test_unknown_is_null_and_drawn_as_nothing() -> None:
    data = levels_to_json(levels(None))
    assert data["rows"][0]["tokens_per_second"] is None
    assert data["rows"][0]["speedup_actual"] is None
    assert "    -" in levels_table(data)


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (TuningProfile(server=ServerSettings(model="t.gguf")), "does not speculate"),
        (
            TuningProfile(
                server=ServerSettings(url="http://127.0.0.1:1"),
                speculation=SpeculationSettings(mode="draft-simple"),
            ),
            "--baseline URL",
        ),
    ],
)
async def test_what_cannot_be_compared_is_said_before_anything_starts(
    profile: TuningProfile, said: str
) -> None:
    sweep = ConcurrencySweep(launcher=Launcher(environ={}), api_key=None, progress=lambda _line: None)
    with pytest.raises(UsageError, match=said):
        await sweep.run(profile, [1, 2], requests=1)


async def test_every_level_is_kept_on_both_sides(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.sqlite3")
    async with ScriptedServer(Script(slots=2)) as server, ScriptedServer(Script(k=0, slots=2)) as plain:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            speculation=SpeculationSettings(mode="draft-simple", draft_length=4),
            traffic=TrafficSettings(max_tokens=24),
            baseline=BaselineSettings(url=plain.url),
        )
        sweep = ConcurrencySweep(
            launcher=Launcher(environ={}),
            api_key=None,
            progress=lambda _line: None,
            recorder=Recorder(store),
        )
        found = await sweep.run(profile, [1, 2], requests=3)
    kept = {
        (r.conditions.profile.server.url, r.conditions.profile.traffic.concurrency): r for r in store.runs()
    }
    assert set(kept) == {(url, n) for url in (server.url, plain.url) for n in (1, 2)}
    assert {(r.source, r.failure) for r in kept.values()} == {("concurrency", None)}
    for row in found.rows:
        with_draft = kept[server.url, row.at_once].summary
        assert (with_draft.requests, with_draft.tokens) == (row.bet.requests, row.bet.tokens)
        assert with_draft.speedup_actual == row.bet.speedup_actual
        assert kept[plain.url, row.at_once].summary.tokens_per_second == row.bet.baseline


def prompts_of(server: ScriptedServer) -> list[str]:
    return [r.body["prompt"] for r in server.requests if isinstance(r.body.get("prompt"), str)]


@pytest.mark.parametrize("known", [True, False])
async def test_no_prompt_is_answered_twice_and_both_sides_answer_the_same(known: bool) -> None:
    async with (
        ScriptedServer(Script(slots=2, rate=400.0)) as server,
        ScriptedServer(Script(k=0, slots=2, rate=400.0)) as plain,
    ):
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            speculation=SpeculationSettings(mode="draft-simple", draft_length=4, draft_model="d.gguf")
            if known
            else SpeculationSettings(),
            traffic=TrafficSettings(max_tokens=24, workload="code"),
            baseline=BaselineSettings(url=plain.url),
        )
        sweep = ConcurrencySweep(launcher=Launcher(environ={}), api_key=None, progress=lambda _line: None)
        await sweep.run(profile, [1, 2], requests=3)
    bets, plains = prompts_of(server), prompts_of(plain)
    assert len(set(bets)) == len(bets)
    assert len(set(plains)) == len(plains)
    asked_first = 0 if known else 2
    # Warm-up and counted requests of both levels; the order of two that are sent at once is open.
    sent = (2 + 3) + (2 + 4)
    assert sorted(bets[asked_first : asked_first + sent]) == sorted(plains[:sent])
