"""What a session keeps of its traffic: a run for each segment, as its requests end, whatever the store does."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

import pytest

from spectui.core.profile import (
    BaselineSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.core.views.snapshot import ServerState
from spectui.lab.session.session import Session
from spectui.store.paths import Folders
from spectui.store.records import Run, RunConditions
from spectui.store.results import STEPS, ResultStore
from tests.scripted_server import Failure, Script, ScriptedServer


class Kept:
    """A session on a scripted server, and what its store holds."""

    def __init__(self, profile: TuningProfile) -> None:
        self.notices: list[str] = []
        folders = Folders.default()
        self.file = folders.results
        self.session = Session(profile, folders=folders, environ={}, on_notice=self.notices.append)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The newest first."""
        return ResultStore(self.file).runs()

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110  traffic and writing move in between
                    await asyncio.sleep(0)
        except TimeoutError:
            pytest.fail(f"never came; {self.notices} {self.session.failures.current}")

    async def traffic(self, requests: int) -> None:
        """Traffic until the segment has so many requests."""
        self.session.toggle_traffic()
        await self.until(lambda: self.session.server.readings.segment.requests >= requests)


def profile_of(url: str, draft_length: int = 4) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=url),
        speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=draft_length),
        traffic=TrafficSettings(workload="code", max_tokens=40, warmup=1),
        baseline=BaselineSettings(tokens_per_second=34.0),
    )


@asynccontextmanager
async def attached(profile: TuningProfile) -> AsyncIterator[Kept]:
    kept = Kept(profile)
    kept.session.open(traffic=False)
    await kept.session.settled()
    try:
        yield kept
    finally:
        await kept.session.aclose()


async def test_each_segment_is_a_run_with_its_own_settings_and_numbers() -> None:
    async with ScriptedServer(Script(rate=2000.0)) as server:
        async with attached(profile_of(server.url)) as kept:
            await kept.traffic(3)
            kept.session.toggle_traffic()
            await kept.session.settled()
            await kept.traffic(5)
            kept.session.apply_now(lambda p: p.with_sampling(temperature=0.7))
            await kept.session.settled()
            await kept.until(lambda: kept.session.server.readings.segment.requests >= 2)
        warm, cold = kept.runs
    assert [run.conditions.profile.sampling.temperature for run in (cold, warm)] == [0.0, 0.7]
    assert cold.summary.requests >= 5
    assert warm.summary.requests >= 2
    for run in (cold, warm):
        assert (run.source, run.failure, run.conditions.build) == ("dashboard", None, "b10434")
        assert run.ended_at is not None
        assert run.summary.tokens >= 39 * run.summary.requests
        assert run.summary.speedup_actual is not None
        assert run.summary.baseline_source == "given"
    assert kept.notices == []


async def test_a_run_is_kept_while_it_goes_on() -> None:
    async with ScriptedServer(Script(rate=1000.0)) as server, attached(profile_of(server.url)) as kept:
        await kept.traffic(4)
        # At most the request whose change is being written is missing.
        await kept.until(lambda: bool(kept.runs) and kept.runs[0].summary.requests >= 3)
        assert kept.runs[0].ended_at is None


async def test_a_session_without_an_answer_keeps_nothing() -> None:
    async with ScriptedServer(Script(failure=Failure.CUT, after=5)) as server:
        async with attached(profile_of(server.url)) as kept:
            kept.session.toggle_traffic()
            await kept.until(lambda: bool(kept.session.failures.current))
        assert not kept.file.exists()


async def test_a_lost_server_is_said_in_its_run() -> None:
    async with ScriptedServer(Script()) as server:
        async with attached(profile_of(server.url)) as kept:
            await kept.traffic(3)
            server.script.failure = Failure.CUT
            session = kept.session
            await kept.until(
                lambda: (
                    session.server.current is not None and session.server.current.state is ServerState.GONE
                )
            )
        (run,) = kept.runs
    assert run.failure is not None
    assert server.url in run.failure


async def test_a_draft_length_that_shows_late_leaves_one_run_with_it() -> None:
    """What was counted under a shorter length than the server's own goes."""
    async with ScriptedServer(Script(k=2)) as server:
        profile = TuningProfile(
            server=ServerSettings(url=server.url), traffic=TrafficSettings(max_tokens=40, warmup=0)
        )
        async with attached(profile) as kept:
            await kept.traffic(2)
            await kept.until(lambda: bool(kept.runs))
            server.script.k = 5
            running = kept.session.server.staging
            await kept.until(lambda: running.staged.speculation.draft_length == 5)
            await kept.until(lambda: kept.session.server.readings.segment.requests >= 2)
        (run,) = kept.runs
    assert run.conditions.profile.speculation.draft_length == 5
    assert len(run.summary.survival) == 5


@pytest.mark.parametrize("trouble", ["damaged", "newer", "locked", "unwritable"])
async def test_a_store_that_cannot_be_used_is_one_notice(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Folders.default().results
    file.parent.mkdir(parents=True)
    ResultStore(file, steps=(*STEPS, ()) if trouble == "newer" else STEPS).begin_run(
        RunConditions(profile=TuningProfile()), at=1.0
    )
    if trouble == "damaged":
        file.write_bytes(b"no database at all\n" * 100)
    if trouble == "unwritable":
        file.unlink()
        file.mkdir()
    monkeypatch.setattr("spectui.lab.session.session._PATIENCE", 0.01)
    with closing(sqlite3.connect(file if file.is_file() else ":memory:", isolation_level=None)) as other:
        if trouble == "locked":
            other.execute("BEGIN EXCLUSIVE")
        async with ScriptedServer(Script(rate=2000.0)) as server, attached(profile_of(server.url)) as kept:
            await kept.traffic(2)
            await kept.until(lambda: bool(kept.notices))
            kept.session.apply_now(lambda p: p.with_sampling(temperature=0.7))
            await kept.session.settled()
            await kept.until(lambda: kept.session.server.readings.segment.requests >= 3)
            assert kept.session.failures.current == ()
    (notice,) = kept.notices
    for_now = " for now" if trouble == "locked" else ""
    assert notice.startswith(f"results are not kept{for_now}: {file}")
