"""The sweep's own parts that need no server: the meter of server seconds, and what is checked before it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.estimates import Estimate
from spectui.core.bet.segment import Segment, SpeedEstimate
from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.errors import UsageError
from spectui.lab.experiments.sweep import Meter, Sweeper
from spectui.lab.experiments.sweep_order import expected_pace, first_prompt_of_cell, order_for
from spectui.lab.experiments.sweep_record import SweepOrder, plan_of
from spectui.lab.measuring import baseline
from spectui.lab.reports.export import changed_since, export, kept_sweep, write
from spectui.lab.servers.launcher import Launcher
from spectui.store.baselines import BaselineKey, BaselineStore, FileIdentity
from spectui.store.results import ResultStore

AXES: dict[str, Any] = {
    "workloads": ("code",),
    "ks": (1, 4),
    "p_mins": (0.0,),
    "lookups": (4,),
    "lengths": (8,),
}


class Clock:
    """Seconds that pass only when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_meter_counts_only_while_a_server_exists_and_nothing_twice() -> None:
    clock = Clock()
    meter = Meter(clock)
    clock.now = 5.0
    assert meter.take() == 0
    meter.begin()
    clock.now = 8.0
    assert meter.take() == 3
    clock.now = 9.5
    meter.end()
    clock.now = 20.0
    meter.begin()
    clock.now = 21.0
    assert meter.take() == 2.5
    meter.end()
    meter.end()
    assert meter.take() == 0


@pytest.mark.parametrize("slots", [1, 8])
async def test_no_temperature_answers_the_prompts_of_another(server_binary: Path, slots: int) -> None:
    profile = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"))
    order = await order_for(profile, Launcher(), temperatures=(0.0, 0.8, 1.0), requests=6, **AXES)
    traffic = TrafficSettings(concurrency=slots, warmup=max(1, slots))
    first = [first_prompt_of_cell(order, condition, traffic) for condition in order.grid.conditions]
    # Of the streams all but one are in the middle of an answer when the last that counts has ended.
    sent = traffic.warmup + max(6, 2 * slots) + slots - 1
    assert first == [0, sent, 2 * sent]


async def test_a_profile_without_a_draft_sweeps_ngrams(server_binary: Path) -> None:
    profile = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"))
    order = await order_for(profile, Launcher(), requests=8, **AXES)
    assert order.grid.modes == ("ngram-simple",)
    assert order.grid.temperatures == (0.0,)
    assert order.files == (FileIdentity.of(server_binary),)


async def test_a_profile_with_a_draft_sweeps_both(server_binary: Path) -> None:
    profile = TuningProfile(
        server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"),
        speculation=SpeculationSettings(mode="off", draft_model="/m/d.gguf"),
    )
    order = await order_for(profile, Launcher(), requests=8, **AXES)
    assert order.grid.modes == ("draft-simple", "ngram-simple")
    assert order.grid.drafts == ("/m/d.gguf",)
    other = await order_for(profile, Launcher(), drafts=("/m/e.gguf", "/m/e.gguf"), requests=8, **AXES)
    assert other.grid.drafts == ("/m/e.gguf",)


async def test_settings_that_every_cell_replaces_make_no_other_sweep(server_binary: Path) -> None:
    profile = TuningProfile(
        server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="/m/d.gguf", draft_length=2),
    )

    async def plan(profile: TuningProfile) -> object:
        modes = ("draft-simple", "ngram-simple")
        return plan_of(await order_for(profile, Launcher(), modes=modes, requests=8, **AXES))

    tuned = profile.with_speculation(
        mode="ngram-simple", draft_length=16, p_min=0.5, ngram_lookup=2, ngram_length=8
    ).with_traffic(workload="prose", warmup=0)
    assert await plan(tuned) == await plan(replace(tuned, description="faster")) == await plan(profile)
    for other in (
        profile.with_speculation(draft_model="/m/e.gguf"),
        profile.with_speculation(ngram_min_hits=2),
        profile.with_traffic(max_tokens=9),
        profile.with_traffic(concurrency=2),
        profile.with_sampling(seed=2),
    ):
        assert await plan(other) != await plan(profile)


async def test_a_sweep_of_another_build_or_file_is_not_gone_on_with(
    server_binary: Path, tmp_path: Path
) -> None:
    model = tmp_path / "t.gguf"
    model.write_text("weights")
    profile = TuningProfile(server=ServerSettings(binary=str(server_binary), model=str(model)))
    order = await order_for(profile, Launcher(), requests=8, **AXES)
    assert order.build
    store = ResultStore(tmp_path / "results.sqlite3")

    async def resumed(order: SweepOrder) -> str:
        number = store.begin_sweep(plan_of(order), at=1.0)
        sweeper = Sweeper(
            kept_sweep(store, number).order,
            launcher=Launcher(),
            results=store,
            baselines=BaselineStore(tmp_path / "b.json"),
            progress=lambda _line: None,
        )
        with pytest.raises(UsageError, match="old cells are not mixed with new ones") as refused:
            await sweeper.run(number=number)
        assert store.sweep(number).cells == ()
        return str(refused.value)

    assert plan_of(replace(order, build="b2")) != plan_of(order)
    assert str(server_binary) in await resumed(replace(order, build="b2"))
    binary, *others = order.files
    other_binary = (replace(binary, size=1), *others)
    assert str(server_binary) in await resumed(replace(order, files=other_binary))
    model.write_text("other weights")
    assert str(model) in await resumed(order)
    found = kept_sweep(store, 3)
    assert changed_since("csv", profile=profile, found=found) == str(model)
    assert changed_since("shell", profile=profile, found=found) is None


async def test_what_cannot_be_swept_is_said(server_binary: Path) -> None:
    profile = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/m/t.gguf"))
    with pytest.raises(UsageError, match="draft-simple needs a draft model"):
        await order_for(profile, Launcher(), modes=("draft-simple",), requests=8, **AXES)
    with pytest.raises(UsageError, match="restarts its server"):
        await order_for(profile.with_server(url="http://h:1"), Launcher(), requests=8, **AXES)


def test_the_pace_comes_from_a_baseline_of_this_model(tmp_path: Path) -> None:
    model = tmp_path / "t.gguf"
    model.write_text("weights")
    profile = TuningProfile(server=ServerSettings(model=str(model)))
    store = BaselineStore(tmp_path / "baselines.json")
    assert not expected_pace(profile, store).measured
    identity = FileIdentity.of(model)
    key = BaselineKey(
        build="b10434",
        binary=identity,
        model=identity,
        argv=(),
        workload="code",
        prompts_hash="0",
        temperature=0.0,
        seed=1,
        concurrency=1,
        depth=0,
        max_tokens=200,
        ignore_eos=False,
        machine="here",
    )
    speed = SpeedEstimate(per_stream=Estimate(value=34.0), streams=1.0, relative_error=None)
    baseline.remember(store, key, Baseline(speed, "measured"), Segment(profile))
    pace = expected_pace(profile, store)
    assert (pace.measured, pace.speed) == (True, 34.0)
    assert not expected_pace(profile.with_traffic(concurrency=4), store).measured


@pytest.mark.parametrize("kind", ["shell", "preset", "llama-swap"])
async def test_no_secret_is_exported(kind: str, server_binary: Path) -> None:
    settings = ServerSettings(
        binary=str(server_binary),
        model="/m/t.gguf",
        extra_args=("--api-key", "hunter2", "--no-mmap", "--hf-token=hunter2"),
        api_key_env="MY_KEY",
    )
    launcher = Launcher(environ={"MY_KEY": "hunter2", "PATH": ""})
    text = await export(kind, profile=TuningProfile(server=settings), found=None, launcher=launcher)
    assert "/m/t.gguf" in text
    assert "no-mmap" in text
    assert "hunter2" not in text
    assert "api-key" not in text


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write(str(tmp_path / "missing" / "run.sh"), "exec true\n", executable=True)
    with pytest.raises(UsageError, match="cannot be written"):
        write(str(tmp_path), "exec true\n", executable=True)
