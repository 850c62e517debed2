"""The sweep screen on the real b10434 server: begun here, gone on with by the command line, and applied here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spectui.core.views.snapshot import ServerState
from spectui.core.views.sweep import SweepStage, SweepView
from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.tui.app import SpectuiApp
from spectui.tui.screens.dashboard import DashboardScreen
from spectui.tui.screens.picker import PickerScreen
from tests.driving import dashboard, servers
from tests.harness import pair_profile
from tests.sweep_runs import kept, kept_keys, swept

# Minutes of traffic on real servers.
pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def profile_file(demo_pair: DemoPair, server_binary: Path, tmp_path: Path) -> Path:
    profile = pair_profile(demo_pair.target, demo_pair.drafts[0], server_binary, draft_length=2)
    path = tmp_path / "pair.toml"
    save(profile.with_traffic(max_tokens=8, warmup=1, workload="code"), path, Folders.default())
    return path


def view(app: SpectuiApp) -> SweepView:
    return app.sweep or SweepView()


async def test_begun_here_gone_on_with_elsewhere_and_applied_here(profile_file: Path) -> None:
    async with dashboard(profile_file) as driven:
        app = driven.app
        await driven.until(lambda: driven.snapshot.server.state is ServerState.RUNNING, "a running server")
        first = driven.snapshot.server.pid
        await driven.press("S")
        await driven.until(lambda: view(app).startable, "a plan")
        # Of the modes only the first, of the lengths only 4.
        await driven.press("n", *["down"] * view(app).modes.index("ngram-simple"), "space", "enter")
        await driven.until(lambda: view(app).startable and len(view(app).choice.modes) == 1, "one mode")  # type: ignore[union-attr]
        marks = ["space", "down", "space", "down", "space", "down", "down", "down", "space", "down", "down"]
        await driven.press("k", *marks, "space", "down", "space", "down", "space", "enter")
        await driven.until(lambda: view(app).startable and view(app).choice.ks == (4,), "one length")  # type: ignore[union-attr]
        assert [p.pid for p in servers()] == [first]

        await driven.press("space")
        await driven.until(lambda: bool(view(app).maps and view(app).maps[0].plain), "the plain speed", 120)
        assert first not in [p.pid for p in servers()]
        assert "stopped for this" in driven.text("SweepHeader")
        await driven.press("s")
        await driven.until(lambda: view(app).stage is SweepStage.STOPPED, "the end of the sweep")
        number = view(app).number
        assert kept()[0].id == number
        assert kept()[0].state == "stopped"
        await driven.until(
            lambda: driven.snapshot.server.state is ServerState.RUNNING and len(servers()) == 1,
            "the dashboard's server again",
        )

        data, err = await asyncio.to_thread(swept, "--resume", number)
        assert "1 cell known" in err
        assert data["finished"]
        await driven.press("o")
        await driven.until(lambda: isinstance(app.screen, PickerScreen), "the kept sweeps")
        await driven.press("home", "down", "enter")
        await driven.until(lambda: view(app).stage is SweepStage.DONE, "the finished sweep")
        assert view(app).number == number
        assert view(app).maps[0].top is not None
        assert kept_keys(kept()[0]).count("code T=0 off requests=10") == 1
        await driven.until(lambda: f"export {number} " in driven.text("#result"), "the export")

        best = view(app).maps[0].best
        assert best is not None
        await driven.press("enter")
        await driven.until(lambda: isinstance(app.screen, DashboardScreen), "the dashboard")
        await driven.until(
            lambda: (
                driven.snapshot.server.state is ServerState.RUNNING
                and driven.snapshot.settings.running is not None
                and driven.snapshot.settings.running.speculation.mode == best.setting.mode
            ),
            "what is recommended",
        )
        await driven.press("q")
        await driven.until(lambda: not app.is_running, "the end of the app", 20)
    assert servers() == []
