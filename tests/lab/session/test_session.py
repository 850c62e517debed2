from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.core.verdict.verdict import Change, Outcome
from spectui.core.views.snapshot import ServerState, Snapshot, TrafficState
from spectui.errors import UsageError
from spectui.lab.session.preview import PreviewKeeper
from spectui.lab.session.session import Session
from spectui.lab.views.snapshot_reader import SnapshotReader
from spectui.store.paths import Folders
from tests.scripted_server import Failure, Script, ScriptedServer

READS = {("GET", "/health"), ("GET", "/props"), ("GET", "/slots")}


@dataclass
class Watched:
    """A session on a scripted server, with what a dashboard would read from it."""

    session: Session
    reader: SnapshotReader

    async def when(self, condition: Callable[[Snapshot], bool], seconds: float = 10.0) -> Snapshot:
        """The first snapshot that fulfils `condition`; the last one read says what was there instead."""
        shown = self.reader.read()
        try:
            async with asyncio.timeout(seconds):
                while not condition(shown):
                    await asyncio.sleep(0)
                    shown = self.reader.read()
        except TimeoutError:
            pytest.fail(f"never came; the last was {shown}")
        return shown

    async def finding(self, code: str) -> Snapshot:
        """The snapshot in which the verdict leads with `code`."""
        return await self.when(lambda s: [f.code for f in s.verdict.findings[:1]] == [code])


def profile_of(url: str) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4),
        traffic=TrafficSettings(workload="code", max_tokens=60, warmup=1),
        baseline=BaselineSettings(tokens_per_second=34.0),
    )


@asynccontextmanager
async def attached(
    url: str, tmp_path: Path, *, api_key: str | None = None, profile: TuningProfile | None = None
) -> AsyncIterator[Watched]:
    folders = Folders(
        config=tmp_path / "config",
        cache=tmp_path / "cache",
        data=tmp_path / "data",
        state=tmp_path / "state",
        log=tmp_path / "log",
    )
    session = Session(profile or profile_of(url), folders=folders, environ={}, api_key=api_key)
    reader = SnapshotReader(session, PreviewKeeper(session.launcher))
    session.open(traffic=False)
    try:
        yield Watched(session, reader)
    finally:
        await reader.aclose()
        await session.aclose()


async def test_attaching_reads_the_state_and_nothing_else(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        shown = await watched.when(lambda s: s.server.state is ServerState.ATTACHED)
        await watched.session.settled()
        assert shown.server.build == "b10434"
        assert shown.server.speculating is True
        assert shown.traffic is TrafficState.OFF
        assert shown.bet.requests == 0
        assert set(server.asked()) <= READS
        assert ("GET", "/props") in server.asked()


async def test_its_command_line_has_its_own_port(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        port = server.url.rpartition(":")[2]
        shown = await watched.when(lambda s: bool(s.settings.command))
        assert f"--port {port}" in shown.settings.command


async def test_of_what_was_never_reached_nothing_is_said(tmp_path: Path) -> None:
    async with attached("http://127.0.0.1:1", tmp_path) as watched:
        shown = await watched.when(lambda s: s.verdict.outcome is Outcome.BROKEN)
        assert (shown.settings.running, shown.settings.problem) == (None, "")


async def test_whoever_has_the_device_is_named(tmp_path: Path) -> None:
    async with attached("http://127.0.0.1:1", tmp_path) as watched:
        await watched.session.settled()
        watched.session.failures.clear()
        watched.session.device.lent_to = "the sweep"
        shown = await watched.when(lambda s: s.lent_to == "the sweep")
        assert shown.verdict.headline == "the sweep has the device; this server comes back after it"


async def test_traffic_begins_when_it_is_asked_for_and_ends_again(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        watched.session.toggle_traffic()
        shown = await watched.when(lambda s: s.bet.requests >= 3)
        assert shown.traffic is TrafficState.ON
        assert {path for method, path in server.asked() if method == "POST"} == {"/completion"}
        assert ("GET", "/metrics") not in server.asked()
        watched.session.toggle_traffic()
        await watched.session.settled()
        await server.until(lambda s: s.streams == 0)
        await watched.when(lambda s: s.traffic is TrafficState.OFF)


async def test_what_is_counted_is_what_the_server_counts(tmp_path: Path) -> None:
    script = Script(k=4, alpha=0.6, pass_ms=50.0)
    async with ScriptedServer(script) as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        watched.session.toggle_traffic()
        shown = await watched.when(lambda s: s.bet.requests >= 40)
        bet = shown.bet
        assert bet.alpha is not None
        assert bet.alpha.value == pytest.approx(0.6, abs=0.05)
        assert bet.tokens_per_pass is not None
        assert bet.tokens_per_pass.value == pytest.approx(script.tokens_per_pass, rel=0.08)
        assert bet.pass_ms == pytest.approx(50.0)
        assert bet.tokens_per_second == pytest.approx(bet.tokens_per_pass.value / 0.05)


@pytest.mark.parametrize("failure", [Failure.DIE, Failure.CUT])
async def test_a_server_that_is_lost_in_mid_stream_is_a_finding(tmp_path: Path, failure: Failure) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        watched.session.toggle_traffic()
        await watched.when(lambda s: s.bet.requests >= 2)
        server.script.failure = failure
        shown = await watched.finding("server-unreachable")
        assert shown.verdict.outcome is Outcome.BROKEN
        assert "\n" not in shown.verdict.findings[0].message
        assert shown.traffic is TrafficState.OFF
        assert shown.bet.requests >= 2


async def test_traffic_can_be_started_again_after_a_lost_stream(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        server.script.failure = Failure.CUT
        watched.session.toggle_traffic()
        await watched.finding("server-unreachable")
        server.script.failure = Failure.NONE
        watched.session.toggle_traffic()
        shown = await watched.when(lambda s: s.bet.requests >= 1)
        assert "server-unreachable" not in {f.code for f in shown.verdict.findings}


async def test_an_error_in_the_stream_is_shown_in_the_servers_words(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        server.script.failure = Failure.ERROR
        watched.session.toggle_traffic()
        shown = await watched.finding("server-error")
        assert "Compute error." in shown.verdict.findings[0].message


async def test_a_stream_that_hangs_can_be_ended(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        server.script.failure = Failure.HANG
        watched.session.toggle_traffic()
        await server.until(lambda s: s.streams == 1)
        async with asyncio.timeout(5):
            watched.session.toggle_traffic()
            await watched.session.settled()
            await watched.when(lambda s: s.traffic is TrafficState.OFF)


async def test_a_wrong_key_is_a_finding_and_stops_at_the_first_answer(tmp_path: Path) -> None:
    script = Script(failure=Failure.UNAUTHORIZED)
    async with ScriptedServer(script) as server, attached(server.url, tmp_path, api_key="wrong") as watched:
        shown = await watched.finding("unauthorized")
        assert shown.verdict.outcome is Outcome.BROKEN
        assert "wrong" not in str(shown.verdict)
        assert server.asked() == [("GET", "/health"), ("GET", "/props")]


async def test_the_traffic_key_looks_again_each_time(tmp_path: Path) -> None:
    script = Script(failure=Failure.UNAUTHORIZED)
    async with ScriptedServer(script) as server, attached(server.url, tmp_path) as watched:
        await watched.session.settled()
        for attempts in (2, 3):
            watched.session.toggle_traffic()
            await watched.session.settled()
            assert server.asked().count(("GET", "/props")) == attempts
        script.failure = Failure.NONE
        watched.session.toggle_traffic()
        shown = await watched.when(lambda s: s.bet.requests >= 1)
        assert (shown.server.state, shown.traffic) == (ServerState.ATTACHED, TrafficState.ON)


async def test_nothing_at_the_address_is_a_finding(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        url = server.url
    async with attached(url, tmp_path) as watched:
        shown = await watched.finding("server-unreachable")
        assert url in shown.verdict.findings[0].message
        assert shown.server.state is ServerState.FAILED


async def test_a_server_that_is_still_loading_is_waited_for(tmp_path: Path) -> None:
    async with ScriptedServer(Script(failure=Failure.LOADING)) as server, attached(server.url, tmp_path) as w:
        shown = await w.when(lambda s: s.server.state is ServerState.LOADING and "loads" in s.server.note)
        assert shown.verdict.outcome is not Outcome.BROKEN
        server.script.failure = Failure.NONE
        await w.when(lambda s: s.server.state is ServerState.ATTACHED)
        assert set(server.asked()) <= READS


async def test_an_undo_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as w:
        await w.session.settled()
        first = w.session.settings.staged
        w.session.stage(lambda p: p.with_speculation(draft_length=2))
        w.session.undo()
        assert (w.session.settings.staged, w.session.settings.can_undo) == (first, False)
        other = first.with_speculation(draft_length=2)
        w.session.stage(lambda _p: other)
        w.session.server.staging.started(other)
        before = w.session.settings
        assert before.can_undo
        with pytest.raises(UsageError, match="did not start this server"):
            w.session.undo()
        assert w.session.settings == before
        assert not w.session.server.starting


async def test_advice_for_a_foreign_server_is_staged_and_not_started(tmp_path: Path) -> None:
    async with ScriptedServer() as server, attached(server.url, tmp_path) as w:
        await w.session.settled()
        with pytest.raises(UsageError, match="did not start this server"):
            w.session.apply(Change(draft_length=9))
        await w.session.settled()
        assert w.session.settings.staged.speculation.draft_length == 9
        assert w.session.settings.changes == ("speculation.draft_length",)
        assert w.reader.read().server.state is ServerState.ATTACHED


async def test_settings_of_a_foreign_server_are_found_out(tmp_path: Path) -> None:
    """Nothing is said but the address: the mode comes from /slots, the draft length from the answers."""
    async with ScriptedServer(Script(k=5, alpha=0.7)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            traffic=TrafficSettings(workload="code", max_tokens=60, warmup=1),
            baseline=BaselineSettings(tokens_per_second=34.0),
        )
        async with attached(server.url, tmp_path, profile=profile) as w:
            shown = await w.when(lambda s: s.server.state is ServerState.ATTACHED)
            assert shown.settings.staged.speculation.mode == "draft-simple"
            await w.session.settled()
            w.session.toggle_traffic()
            shown = await w.when(lambda s: s.bet.requests >= 2)
            assert shown.settings.staged.speculation.draft_length == 5
            assert len(shown.bet.survival) == 5
            assert shown.bet.speedup_actual is not None
            assert shown.curve.predicted
            passes = shown.bet.passes
            w.session.toggle_traffic()
            paused = await w.when(lambda s: s.traffic is TrafficState.OFF)
            assert paused.bet.passes >= passes


async def test_what_a_server_told_of_itself_holds_for_its_life_only(tmp_path: Path) -> None:
    """The same address answers with another draft length later: nothing of the first is trusted."""
    async with ScriptedServer(Script(k=2, alpha=0.7)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            traffic=TrafficSettings(workload="code", max_tokens=60, warmup=1),
        )
        async with attached(server.url, tmp_path, profile=profile) as w:
            await w.session.settled()
            w.session.toggle_traffic()
            await w.when(lambda s: s.bet.requests >= 2 and s.settings.staged.speculation.draft_length == 2)
            server.script.failure = Failure.CUT
            await w.when(lambda s: s.server.state is ServerState.GONE)
            server.script.failure, server.script.k = Failure.NONE, 6
            w.session.toggle_traffic()
            await w.session.settled()
            again = await w.when(
                lambda s: s.settings.staged.speculation.draft_length == 6 and s.bet.requests >= 2
            )
            assert again.bet.tokens_per_pass is not None
            assert len(again.bet.survival) == 6


async def test_a_server_is_never_asked_the_same_twice(tmp_path: Path) -> None:
    async with ScriptedServer(Script(rate=400.0)) as server, attached(server.url, tmp_path) as w:
        await w.session.settled()
        w.session.toggle_traffic()
        await w.when(lambda s: s.bet.requests >= 2)
        for temperature, depth in ((0.8, 0), (0.0, 0), (0.0, 300)):
            w.session.apply_now(partial(_sampled, temperature, depth))
            await w.session.settled()
            await w.when(lambda s: s.bet.requests >= 2)
        prompts = [r.body["prompt"] for r in server.requests if r.method == "POST"]
    assert 4 * 3 <= len(prompts) <= 30
    # A padded prompt ends with the one that was padded.
    assert not [p for i, p in enumerate(prompts) for before in prompts[:i] if p.endswith(before)]


async def test_the_speed_of_a_second_server_counts_under_its_own_conditions_only(tmp_path: Path) -> None:
    async with ScriptedServer(Script(k=4)) as server, ScriptedServer(Script(k=0)) as second:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4),
            traffic=TrafficSettings(workload="code", max_tokens=60, warmup=1),
            baseline=BaselineSettings(url=second.url),
        )
        async with attached(server.url, tmp_path, profile=profile) as w:
            await w.session.settled()
            w.session.toggle_traffic()
            w.session.measure_baseline(force=False)
            await w.session.settled()
            await w.when(lambda s: s.bet.speedup_actual is not None and s.bet.requests >= 2)
            w.session.apply_now(lambda p: p.with_traffic(workload="prose"))
            other = await w.when(lambda s: s.bet.speedup_actual is None and s.bet.requests >= 2)
            stale = next(f for f in other.verdict.findings if f.code == "baseline-stale")
            assert "other conditions" in stale.message
            w.session.apply_now(lambda p: p.with_traffic(workload="code"))
            back = await w.when(lambda s: s.bet.speedup_actual is not None)
            assert all(f.code != "baseline-stale" for f in back.verdict.findings)


def _sampled(temperature: float, depth: int, profile: TuningProfile) -> TuningProfile:
    return profile.with_sampling(temperature=temperature).with_traffic(depth=depth)
