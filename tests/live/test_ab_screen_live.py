"""The A/B screen on the real b10434 server: the dashboard's server steps aside and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectui.core.views.ab import AbState
from spectui.core.views.snapshot import ServerState
from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.tui.screens.ab import AbScreen
from spectui.tui.screens.dashboard import DashboardScreen
from tests.driving import dashboard, servers
from tests.harness import pair_profile

# Minutes of traffic on real servers.
pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def profile_file(demo_pair: DemoPair, server_binary: Path, tmp_path: Path) -> Path:
    profile = pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary, draft_length=2)
    path = tmp_path / "pair.toml"
    save(profile.with_traffic(max_tokens=12, warmup=1, workload="code"), path, Folders.default())
    plain = profile.without_speculation()
    save(plain, "plain", Folders.default())
    return path


async def test_staged_against_running_stopped_and_picked(profile_file: Path) -> None:
    async with dashboard(profile_file) as driven:
        app = driven.app
        await driven.until(lambda: driven.snapshot.server.state is ServerState.RUNNING, "a running server")
        first = driven.snapshot.server.pid
        await driven.press("right_square_bracket", "right_square_bracket")
        await driven.until(lambda: bool(driven.snapshot.settings.changes), "a staged change")
        await driven.press("a")
        assert isinstance(app.screen, AbScreen)
        await driven.until(lambda: app.ab.b is not None, "both arms")
        assert app.ab.a is not None
        assert app.ab.b is not None
        assert (app.ab.a.name, app.ab.b.name) == ("running", "staged")
        assert app.ab.b.profile.speculation.draft_length == 4
        assert [p.pid for p in servers()] == [first]

        await driven.press("space")
        await driven.until(lambda: app.ab.pairs >= 2, "the first pairs", 120)
        assert app.ab.state is AbState.RUNNING
        assert first not in [p.pid for p in servers()]
        assert len(servers()) == 2
        assert "stopped for this" in driven.text("AbHeader")
        assert app.ab.ratio is not None
        assert app.ab.a.bet.passes > 0 if app.ab.a else False
        assert app.ab.outputs is not None

        await driven.press("space")
        await driven.until(lambda: app.ab.state is AbState.STOPPED, "the end of the run")
        await driven.until(
            lambda: driven.snapshot.server.state is ServerState.RUNNING and len(servers()) == 1,
            "the dashboard's server again",
        )
        assert driven.snapshot.settings.running is not None
        assert driven.snapshot.settings.running.speculation.draft_length == 2

        await driven.press("l")
        await driven.until(lambda: app.screen.query("OptionList").first().has_focus, "the profiles")
        await driven.press("enter")
        await driven.until(lambda: app.ab.b is not None and app.ab.b.name == "plain", "the other arm")
        await driven.press("2", "enter")
        await driven.until(lambda: isinstance(app.screen, DashboardScreen), "the dashboard")
        await driven.until(
            lambda: driven.snapshot.settings.staged.speculation.mode == "off", "the applied arm"
        )
        assert driven.snapshot.settings.changes == ("speculation.mode",)
        await driven.press("q")
        await driven.until(lambda: not app.is_running, "the end of the app", 20)
    assert servers() == []


async def test_to_its_end_and_quit_on_the_way(profile_file: Path) -> None:
    async with dashboard(profile_file) as driven:
        app = driven.app
        await driven.until(lambda: driven.snapshot.server.state is ServerState.RUNNING, "a running server")
        await driven.press("space", "n", "home", "enter")
        await driven.until(lambda: bool(driven.snapshot.settings.changes), "a staged change")
        await driven.press("a")
        await driven.until(lambda: app.ab.b is not None, "both arms")
        await driven.press("space")
        await driven.until(lambda: app.ab.state is AbState.ENDED, "the end of the run", 240)
        assert app.ab.pairs >= 8
        assert app.ab.sentence
        assert app.ab.ratio is not None
        assert app.ab.ratio.low is not None
        assert app.ab.outputs is not None
        assert app.ab.outputs.compared >= app.ab.pairs
        assert app.ab.a is not None
        assert app.ab.a.bet.speedup_actual is not None
        assert app.ab.sentence in driven.text("#result").replace("\u00a0", " ")
        await driven.until(lambda: driven.snapshot.server.state is ServerState.RUNNING, "the server again")

        await driven.press("space")
        await driven.until(lambda: app.ab.state is AbState.RUNNING, "a second run")
        await driven.press("escape", "q")
        await driven.until(lambda: not app.is_running, "the end of the app", 20)
    assert servers() == []
