"""A session on the real b10434 server: launch, traffic, restart, undo, baseline, crash, attach."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from spectui.core.profile import TuningProfile
from spectui.core.verdict.verdict import Change, Outcome
from spectui.core.views.snapshot import ServerState, Snapshot, TrafficState
from spectui.errors import UsageError
from spectui.lab.demo import DemoPair
from spectui.lab.reports.history import is_stale
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.session.preview import PreviewKeeper
from spectui.lab.session.session import Session
from spectui.lab.views.snapshot_reader import SnapshotReader
from spectui.store.baselines import FileIdentity
from spectui.store.paths import Folders
from spectui.store.results import ResultStore
from tests.harness import launched, pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


class Watched:
    """A session with its reader; `until` waits for a snapshot that fits."""

    def __init__(self, profile: TuningProfile) -> None:
        self.session = Session(profile, folders=Folders.default())
        self.reader = SnapshotReader(self.session, PreviewKeeper(self.session.launcher))

    async def until(self, fits: Callable[[Snapshot], bool], seconds: float = 90) -> Snapshot:
        async with asyncio.timeout(seconds):
            while True:
                snapshot = self.reader.read()
                if fits(snapshot):
                    return snapshot
                await asyncio.sleep(0.02)

    def process(self) -> psutil.Process:
        server = self.session.server.current
        assert isinstance(server, LaunchedServer)
        assert server.process is not None
        return psutil.Process(server.process.pid)


@pytest.fixture
async def opened(
    quick_pair: DemoPair, server_binary: Path
) -> AsyncIterator[Callable[[TuningProfile], Watched]]:
    made: list[Watched] = []

    def make(profile: TuningProfile) -> Watched:
        made.append(Watched(profile))
        return made[-1]

    yield make
    for watched in made:
        await watched.reader.aclose()
        await watched.session.aclose()


@pytest.fixture
def profile(quick_pair: DemoPair, server_binary: Path) -> TuningProfile:
    return pair_profile(quick_pair.target, quick_pair.drafts[0], server_binary).with_traffic(
        max_tokens=24, warmup=1
    )


async def test_traffic_flows_restarts_keep_history_and_undo_goes_back(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=True)
    first = await w.until(lambda s: s.bet.requests >= 2)
    assert first.server.state is ServerState.RUNNING
    assert first.server.owned
    assert first.server.speculating is True
    assert first.server.target_place == "CPU"
    assert first.traffic is TrafficState.ON
    assert first.bet.alpha is not None
    assert first.bet.acceptance_ratio is not None
    assert first.bet.tokens_per_pass is not None
    assert 1 <= first.bet.tokens_per_pass.value <= 5
    assert first.bet.survival
    assert first.bet.draft_ms is not None
    assert first.verdict.outcome is Outcome.UNKNOWN
    assert first.verdict.findings[0].code == "baseline-missing"
    before = w.process()

    w.session.stage(lambda p: p.with_speculation(draft_length=1))
    staged = await w.until(lambda s: "--spec-draft-n-max 1" in s.settings.command)
    assert staged.settings.changes == ("speculation.draft_length",)
    w.session.restart()
    second = await w.until(
        lambda s: s.bet.requests >= 1 and [m.label for m in s.history.marks] == ["k=4", "k=1"]
    )
    assert not before.is_running()
    assert len(second.bet.survival) == 1
    assert second.settings.changes == ()

    w.session.undo()
    third = await w.until(lambda s: [m.label for m in s.history.marks][2:] == ["k=4"] and s.bet.passes > 0)
    assert third.settings.running is not None
    assert third.settings.running.speculation.draft_length == 4


async def test_the_baseline_is_measured_once_and_then_remembered(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile.with_traffic(max_tokens=64))
    w.session.open(traffic=True)
    await w.until(lambda s: s.bet.passes > 0)
    w.session.measure_baseline(force=False)
    await w.until(lambda s: s.traffic is TrafficState.BASELINE)
    judged = await w.until(lambda s: s.bet.speedup_actual is not None and s.bet.requests >= 1, 180)
    assert judged.bet.baseline_source == "measured"
    assert judged.bet.c is not None
    assert judged.bet.speedup_textbook is not None
    assert judged.bet.pass_cost is not None
    assert judged.curve.predicted
    again = opened(profile.with_traffic(max_tokens=64))
    again.session.open(traffic=True)
    known = await again.until(lambda s: s.bet.baseline is not None)
    assert known.bet.baseline_source == "remembered"


async def test_lookups_are_predicted_with_the_baseline_and_remembered(
    opened: Callable[[TuningProfile], Watched], demo_pair: DemoPair, server_binary: Path
) -> None:
    profile = pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary)
    profile = profile.with_traffic(max_tokens=32, warmup=0, workload="rewrite")
    w = opened(profile)
    w.session.open(traffic=True, baseline_first=True)
    judged = await w.until(lambda s: s.bet.speedup_actual is not None and s.bet.requests >= 1, 180)
    assert judged.curve.lookup is not None
    assert w.session.server.readings.baseline is not None
    assert len(w.session.server.readings.baseline.replayed) == 16
    again = opened(profile)
    again.session.open(traffic=False)
    await again.until(lambda s: s.bet.baseline is not None)
    assert again.session.server.readings.baseline is not None
    assert again.session.server.readings.baseline.replayed == w.session.server.readings.baseline.replayed


async def test_a_draft_that_fails_to_load_shows_the_reason_and_undo_repairs(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"hello, this is no model" * 100)
    w = opened(profile)
    w.session.open(traffic=True)
    await w.until(lambda s: s.bet.passes > 0)
    w.session.stage(lambda p: p.with_speculation(draft_model=str(broken)))
    w.session.restart()
    failed = await w.until(lambda s: s.server.state is ServerState.FAILED)
    assert failed.verdict.outcome is Outcome.BROKEN
    assert failed.log_tail
    assert failed.verdict.findings[0].code in {"model-corrupt", "server-crashed"}
    assert failed.settings.can_undo
    w.session.undo()
    back = await w.until(lambda s: s.server.state is ServerState.RUNNING and s.bet.passes > 0)
    assert back.verdict.outcome is not Outcome.BROKEN
    assert back.settings.running is not None
    assert back.settings.running.speculation.draft_model == profile.speculation.draft_model


async def test_settings_that_cannot_be_planned_leave_the_server_running(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=False)
    await w.until(lambda s: s.server.state is ServerState.RUNNING)
    before = w.process()
    w.session.stage(lambda p: p.with_speculation(draft_model="/nowhere/draft.gguf"))
    w.session.restart()
    failed = await w.until(lambda s: bool(s.verdict.findings))
    assert failed.verdict.findings[0].code == "draft-model-missing"
    assert before.is_running()
    assert failed.server.state is ServerState.RUNNING


async def test_a_vocabulary_that_differs_is_named_though_the_server_runs(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile, mismatched_draft: Path
) -> None:
    w = opened(profile.with_speculation(draft_model=str(mismatched_draft)))
    w.session.open(traffic=True)
    shown = await w.until(lambda s: s.server.state is ServerState.RUNNING and s.bet.passes > 0)
    codes = [f.code for f in shown.verdict.findings]
    assert codes[0] == "vocab-mismatch"
    assert "speculation-off" in codes
    assert shown.server.speculating is False


async def test_a_killed_server_is_a_finding_and_r_starts_it_again(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=True)
    await w.until(lambda s: s.bet.passes > 0)
    os.kill(w.process().pid, signal.SIGKILL)
    gone = await w.until(lambda s: s.verdict.outcome is Outcome.BROKEN)
    assert gone.verdict.findings[0].code == "server-crashed"
    assert "SIGKILL" in gone.verdict.headline
    assert gone.log_tail
    w.session.restart()
    await w.until(lambda s: s.server.state is ServerState.RUNNING and s.bet.passes > 0)


async def test_advice_is_applied_with_one_call(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=True)
    await w.until(lambda s: s.bet.passes > 0)
    w.session.apply(Change(draft_length=2))
    changed = await w.until(lambda s: [m.label for m in s.history.marks] == ["k=4", "k=2"])
    assert changed.settings.running is not None
    assert changed.settings.running.speculation.draft_length == 2


async def test_temperature_and_workload_apply_without_a_restart(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=True)
    await w.until(lambda s: s.bet.requests >= 1)
    before = w.process()
    w.session.apply_now(lambda p: p.with_sampling(temperature=0.8))
    w.session.apply_now(lambda p: p.with_traffic(workload="json"))
    fresh = await w.until(lambda s: s.bet.requests == 0 and s.bet.passes > 0)
    assert before.is_running()
    assert fresh.settings.running is not None
    assert fresh.settings.running.traffic.workload == "json"
    assert fresh.settings.running.sampling.temperature == 0.8


async def test_an_attached_server_is_measured_and_never_stopped(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    async with launched(profile) as server:
        assert server.process is not None
        url = server.client.base_url
        attached = TuningProfile(
            server=replace(TuningProfile().server, url=url),
            speculation=profile.speculation,
            traffic=profile.traffic,
        )
        w = opened(attached)
        w.session.open(traffic=False)
        seen = await w.until(lambda s: s.server.state is ServerState.ATTACHED)
        assert seen.server.speculating is True
        assert seen.bet.passes == 0
        with pytest.raises(UsageError, match="will not restart"):
            w.session.restart()
        w.session.toggle_traffic()
        await w.until(lambda s: s.bet.requests >= 1)
        await w.session.aclose()
        assert server.process.returncode is None


async def test_an_idle_server_without_a_draft_is_probed_by_itself(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile.without_speculation())
    w.session.open(traffic=False)
    probed = await w.until(lambda s: any(n > 1 for n in s.bet.costs.v))
    assert probed.bet.costs.v[1].value == 1.0
    assert probed.traffic is TrafficState.OFF
    assert probed.bet.requests == 0


async def test_traffic_does_not_wait_for_a_probe(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile.without_speculation())
    w.session.open(traffic=False)
    await w.until(lambda s: "probing" in s.traffic_note)
    w.session.toggle_traffic()
    flowing = await w.until(lambda s: s.bet.passes > 0)
    assert not any(n > 1 for n in flowing.bet.costs.v)


async def test_a_server_with_a_draft_is_not_probed_by_itself(
    opened: Callable[[TuningProfile], Watched], profile: TuningProfile
) -> None:
    w = opened(profile)
    w.session.open(traffic=False)
    await w.until(lambda s: s.server.state is ServerState.RUNNING)
    await w.session.settled()
    assert not w.reader.read().bet.costs.v
    assert w.session.server.note == ""


async def test_what_was_measured_is_kept_with_all_that_it_was_measured_under(
    opened: Callable[[TuningProfile], Watched],
    profile: TuningProfile,
    quick_pair: DemoPair,
    server_binary: Path,
) -> None:
    watched = opened(profile)
    watched.session.open(traffic=True)
    await watched.until(lambda s: s.bet.requests >= 2)
    watched.session.stage(lambda p: p.with_speculation(draft_length=2))
    watched.session.restart()
    await watched.until(
        lambda s: s.settings.running is not None and not s.settings.changes and s.bet.requests >= 1
    )
    os.kill(watched.process().pid, signal.SIGKILL)
    await watched.until(lambda s: s.server.state is ServerState.GONE)
    await watched.session.aclose()
    second, first = ResultStore.default(Folders.default()).runs()
    assert [r.conditions.profile.speculation.draft_length for r in (first, second)] == [4, 2]
    assert (first.failure, first.summary.requests >= 2, second.summary.requests >= 1) == (None, True, True)
    assert second.failure is not None
    assert "SIGKILL" in second.failure
    for run in (first, second):
        conditions = run.conditions
        assert run.source == "dashboard"
        assert conditions.build is not None
        assert conditions.binary == FileIdentity.of(server_binary)
        assert conditions.model == FileIdentity.of(quick_pair.target)
        assert conditions.draft == FileIdentity.of(quick_pair.drafts[0])
        assert conditions.machine is not None
        assert "--spec-draft-n-max" in conditions.argv
        assert run.summary.drafted > 0
        assert is_stale(run, {}) is False
