"""What a session knows of its plain speed, and what it is told went wrong."""

from __future__ import annotations

from pathlib import Path

from spectui.core.profile import BaselineSettings, ServerSettings, TrafficSettings, TuningProfile
from spectui.lab.servers.launcher import Launcher, LaunchPlan
from spectui.lab.session.neighbours import Neighbours
from spectui.lab.session.session import Session
from spectui.lab.session.session_baseline import SessionBaseline
from spectui.store.baselines import BaselineStore
from spectui.store.paths import Folders
from tests.scripted_server import Script, ScriptedServer
from tests.unlaunched import Started, plan_for

OURS = TuningProfile(traffic=TrafficSettings(max_tokens=20, warmup=0))


class Planned(Launcher):
    """Plans the same server whatever it is asked for."""

    async def plan(self, profile: TuningProfile) -> LaunchPlan:
        return plan_for(profile)


async def test_what_was_measured_counts_although_the_cache_cannot_keep_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    launcher, problems = Planned(environ={}), list[str]()
    plain = SessionBaseline(
        launcher=launcher,
        store=BaselineStore(tmp_path / "file" / "baselines.json"),
        api_key=None,
        on_token=lambda _count, _at: None,
        on_begin=lambda _at: None,
        on_note=lambda _note: None,
        on_problem=problems.append,
        neighbours=Neighbours(),
    )
    speculating = OURS.with_speculation(mode="ngram-simple")
    assert await plain.recall(speculating) is None
    async with ScriptedServer(Script(k=0, pass_ms=20.0)) as server:
        started = Started(OURS.with_server(url=server.url), api_key=None)
        try:
            found = await plain.measure(await launcher.plan(OURS), started, None)  # type: ignore[arg-type]
        finally:
            await started.stop()
    assert found.source == "measured"
    assert await plain.recall(speculating) == found
    assert await plain.recall(speculating.with_sampling(temperature=1.0)) is None
    probed, kept = problems
    assert probed.startswith("verification could not be probed: ")
    assert "the baseline cannot be remembered: " in kept


async def test_what_went_wrong_beside_a_baseline_is_a_notice() -> None:
    notices: list[str] = []
    async with ScriptedServer(Script(k=4)) as server, ScriptedServer(Script(k=0)) as second:
        profile = TuningProfile(
            server=ServerSettings(url=server.url),
            traffic=OURS.traffic,
            baseline=BaselineSettings(url=second.url),
        )
        session = Session(profile, folders=Folders.default(), environ={}, on_notice=notices.append)
        try:
            session.open(traffic=False)
            await session.settled()
            session.measure_baseline(force=False)
            await session.settled()
            assert session.server.readings.baseline is not None
            assert session.server.note == ""
            assert [notice.partition(": ")[0] for notice in notices] == ["verification could not be probed"]
        finally:
            await session.aclose()
