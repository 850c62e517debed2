from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from spectui.core.profile import ServerSettings, SpeculationSettings, TrafficSettings, TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmView
from spectui.errors import LaunchError
from spectui.lab.servers.launcher import Launcher
from spectui.lab.views.ab_watch import AbWatch
from tests.scripted_server import Failure, Script, ScriptedServer


def profile_of(url: str, k: int, **traffic: Any) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(url=url, model="/models/scripted.gguf"),
        speculation=SpeculationSettings(mode="draft-simple" if k else "off", draft_length=max(1, k)),
        traffic=TrafficSettings(**{"max_tokens": 24, "warmup": 1, **traffic}),
    )


def view_of(a: TuningProfile, b: TuningProfile, planned: int = 16) -> AbView:
    return AbView(a=ArmView(profile=a, name="running"), b=ArmView(profile=b, name="staged"), planned=planned)


class Watched:
    """A ab, and every view that it showed."""

    def __init__(self, view: AbView, on_view: Callable[[AbView], object] = lambda _view: None) -> None:
        self.views: list[AbView] = []
        self._on_view = on_view
        self.ab = AbWatch(view, launcher=Launcher(), on_view=self._take)

    def _take(self, view: AbView) -> None:
        self.views.append(view)
        self._on_view(view)

    @property
    def last(self) -> AbView:
        return self.views[-1]


async def test_a_run_is_shown_from_its_start_to_its_sentence() -> None:
    async with ScriptedServer(Script(k=0, pass_ms=50.0)) as one, ScriptedServer(Script(k=4)) as other:
        watched = Watched(view_of(profile_of(one.url, 0), profile_of(other.url, 4)))
        await watched.ab.run()
    views = watched.views
    states = [view.state for view in views]
    assert states[0] is AbState.STARTING
    assert states[-1] is AbState.ENDED
    turns = [view.turn for view in views if view.turn]
    assert [t for i, t in enumerate(turns) if not i or t != turns[i - 1]][:5] == ["a", "b", "a", "b", "a"]
    pairs = [view.pairs for view in views]
    assert pairs == sorted(pairs)
    assert set(pairs) >= {0, 2, 4}
    on_the_way = next(view for view in views if view.pairs == 4)
    assert on_the_way.ratio is not None
    assert (on_the_way.faster, on_the_way.sentence) == (None, "")
    assert on_the_way.a is not None
    assert on_the_way.a.bet.tokens_per_second == pytest.approx(20.0)
    last = watched.last
    assert last.faster == "b"
    assert last.sentence.startswith("B is ")
    assert last.sentence.endswith(f"on code, {last.pairs} prompts")
    assert last.ratio is not None
    assert last.ratio.low is not None
    assert 1 < last.ratio.low < last.ratio.value
    assert len(last.ratios) == last.pairs
    assert min(last.ratios) <= last.ratio.value <= max(last.ratios)
    assert last.turn is None
    assert last.b is not None
    assert last.b.bet.speedup_actual is not None
    assert last.b.bet.baseline_source == "arm a"
    assert last.outputs is not None
    assert last.outputs.compared == last.pairs


async def test_arms_that_are_the_same_stay_undecided_with_identical_outputs() -> None:
    async with ScriptedServer(Script(k=0)) as one, ScriptedServer(Script(k=0)) as other:
        watched = Watched(view_of(profile_of(one.url, 0), profile_of(other.url, 0), planned=8))
        await watched.ab.run()
    assert watched.last.state is AbState.ENDED
    assert watched.last.faster is None
    assert watched.last.sentence.startswith("indistinguishable on code")
    assert watched.last.outputs is not None
    assert watched.last.outputs.different == 0
    assert watched.last.outputs.first is None


async def test_more_prompts_than_were_asked_for_are_shown_as_planned() -> None:
    async with ScriptedServer(Script(k=0, slots=4)) as one, ScriptedServer(Script(k=0, slots=4)) as other:
        a, b = (profile_of(server.url, 0, concurrency=4) for server in (one, other))
        watched = Watched(view_of(a, b, planned=8))
        await watched.ab.run()
    assert any("at most 16 prompts in place of 8" in view.note for view in watched.views)
    assert {view.planned for view in watched.views if view.pairs} == {16}
    assert watched.last.pairs == 16


async def test_outputs_are_not_compared_above_temperature_0() -> None:
    async with ScriptedServer(Script(k=0)) as one, ScriptedServer(Script(k=0)) as other:
        a, b = (profile_of(s.url, 0).with_sampling(temperature=0.5) for s in (one, other))
        watched = Watched(view_of(a, b, planned=8))
        await watched.ab.run()
    assert watched.last.outputs is None


async def test_a_run_that_is_stopped_keeps_what_it_had_and_decides_nothing() -> None:
    reached = asyncio.Event()

    def watch(view: AbView) -> None:
        if view.pairs >= 2:
            reached.set()

    async with ScriptedServer(Script(k=0, pass_ms=50.0)) as one, ScriptedServer(Script(k=0)) as other:
        watched = Watched(view_of(profile_of(one.url, 0), profile_of(other.url, 0), planned=5000), watch)
        task = asyncio.create_task(watched.ab.run())
        await reached.wait()
        watched.ab.stopping()
        task.cancel()
        await asyncio.wait({task})
        await one.until(lambda s: s.streams == 0)
        await other.until(lambda s: s.streams == 0)
    assert task.cancelled()
    assert [view.state for view in watched.views][-2:] == [AbState.STOPPING, AbState.STOPPED]
    assert watched.last.pairs >= 2
    assert watched.last.ratio is not None
    assert (watched.last.faster, watched.last.sentence) == (None, "")


async def test_a_server_that_is_lost_on_the_way_is_named() -> None:
    async with ScriptedServer(Script(k=0)) as one, ScriptedServer(Script(k=0, pass_ms=30.0)) as other:

        def watch(view: AbView) -> None:
            if view.pairs >= 4:
                other.script.failure = Failure.CUT

        watched = Watched(view_of(profile_of(one.url, 0), profile_of(other.url, 0), planned=100), watch)
        await watched.ab.run()
    assert watched.last.state is AbState.FAILED
    assert other.url in watched.last.problem
    assert watched.last.pairs == 4
    assert watched.last.sentence.startswith("undecided on code")


async def test_an_arm_that_cannot_be_reached_fails_with_its_reason() -> None:
    nowhere = "http://127.0.0.1:1"
    async with ScriptedServer(Script(k=0)) as one:
        watched = Watched(view_of(profile_of(one.url, 0), profile_of(nowhere, 0)))
        await watched.ab.run()
        assert all(method != "POST" for method, _ in one.asked())
    assert watched.last.state is AbState.FAILED
    assert nowhere in watched.last.problem
    assert watched.last.ratio is None


async def test_an_arm_that_cannot_start_is_found_out_beforehand(server_binary: object) -> None:
    missing = TuningProfile(server=ServerSettings(binary=str(server_binary), model="/nowhere/model.gguf"))
    watched = Watched(view_of(profile_of("http://127.0.0.1:1", 0), missing))
    with pytest.raises(LaunchError, match=r"model\.gguf"):
        await watched.ab.check()
    assert watched.views == []


def test_a_run_takes_two_arms() -> None:
    with pytest.raises(ValueError, match="two arms"):
        AbWatch(AbView(), launcher=Launcher(), on_view=lambda _view: None)
