"""The whole dashboard as a user drives it, on the real b10434 server and the small demo pair."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from textual.widgets import OptionList

from spectui.core.views.snapshot import ServerState, TrafficState
from spectui.lab.demo import DemoPair
from spectui.store.paths import Folders
from spectui.store.profiles import last_profile, save
from spectui.tui.screens.drafts import DraftScreen
from spectui.tui.screens.picker import PickerScreen
from tests.driving import dashboard, servers
from tests.harness import pair_profile

pytestmark = [pytest.mark.live, pytest.mark.timeout(150)]


@pytest.fixture
def models(quick_pair: DemoPair, mismatched_draft: Path, tmp_path: Path) -> Path:
    """A folder with the target, both drafts, and a draft of another vocabulary."""
    folder = tmp_path / "models"
    folder.mkdir()
    for path in (quick_pair.target, *quick_pair.drafts, mismatched_draft):
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def profile_file(quick_pair: DemoPair, models: Path, server_binary: Path, tmp_path: Path) -> Path:
    profile = pair_profile(models / quick_pair.target.name, models / quick_pair.drafts[0].name, server_binary)
    path = tmp_path / "pair.toml"
    save(profile.with_traffic(max_tokens=24, warmup=1, workload="code"), path, Folders.default())
    return path


async def test_the_dashboard_from_start_to_quit(profile_file: Path, quick_pair: DemoPair) -> None:
    assert servers() == []
    async with dashboard(profile_file) as driven:
        app = driven.app
        await driven.until(
            lambda: driven.snapshot.server.state is ServerState.RUNNING and driven.snapshot.bet.passes > 0,
            "a running server and passes",
        )
        first = driven.snapshot
        assert first.server.build is not None
        assert first.server.speculating is True
        assert first.settings.profile_name == str(profile_file)
        assert len(servers()) == 1
        assert servers()[0].pid == first.server.pid
        assert last_profile(Folders.default()) == str(profile_file)

        await driven.press("right_square_bracket")
        await driven.until(lambda: bool(driven.snapshot.settings.changes), "a staged change")
        assert driven.snapshot.settings.changes == ("speculation.draft_length",)
        await driven.until(lambda: "4 -> 5" in driven.text("#settings").replace("\u2192", "->"), "4 -> 5")
        await driven.until(
            lambda: "--spec-draft-n-max 5" in driven.snapshot.settings.command, "the new command line"
        )
        await driven.press("r")
        await driven.until(
            lambda: (
                [m.label for m in driven.snapshot.history.marks] == ["k=4", "k=5"]
                and driven.snapshot.bet.passes > 0
            ),
            "a restart with the new length",
        )
        second = driven.snapshot
        assert second.settings.running is not None
        assert second.settings.running.speculation.draft_length == 5
        assert second.settings.changes == ()
        assert second.server.pid != first.server.pid
        assert [p.pid for p in servers()] == [second.server.pid]

        await driven.until(lambda: driven.snapshot.bet.requests >= 4, "some requests")
        before = driven.snapshot.bet.passes
        await driven.press("w")
        assert isinstance(app.screen, PickerScreen)
        await driven.press("down", "down", "enter")
        await driven.until(
            lambda: 0 < driven.snapshot.bet.passes < before and driven.snapshot.traffic is TrafficState.ON,
            "traffic of the other workload",
        )
        assert driven.snapshot.settings.running is not None
        assert driven.snapshot.settings.running.traffic.workload == "json"
        assert driven.snapshot.server.pid == second.server.pid
        assert len(driven.snapshot.history.marks) == 2

        await driven.press("o")
        assert app.screen.query_one("#written").display
        await driven.until(lambda: bool(driven.text("#written").strip()), "what the model wrote")
        words = set(driven.text("#written").split())
        assert words & set(driven.snapshot.output.split())
        await driven.press("i")
        assert not app.screen.query_one("#written").display
        await driven.until(lambda: "slot" in driven.text("#log"), "the server's log")
        await driven.press("i")
        assert not app.screen.query_one("#log").display

        await driven.press("q")
        await driven.until(lambda: not app.is_running, "the end of the app", 20)
    assert servers() == []
    assert not psutil.pid_exists(second.server.pid or 0)


async def test_drafts_are_tested_and_the_wrong_one_names_its_token(
    profile_file: Path, quick_pair: DemoPair, mismatched_draft: Path
) -> None:
    async with dashboard(profile_file) as driven:
        app = driven.app
        await driven.until(lambda: driven.snapshot.server.state is ServerState.RUNNING, "a running server")
        await driven.press("d")
        assert isinstance(app.screen, DraftScreen)
        await driven.until(
            lambda: len(app.drafts) == 3 and all(d.compatible is not None for d in app.drafts),
            "tested drafts",
        )
        found = {draft.name: draft for draft in app.drafts}
        for path, blocks in zip(quick_pair.drafts, (4, 2), strict=True):
            assert found[path.name].compatible is True
            assert found[path.name].blocks == blocks
            assert found[path.name].size_bytes == path.stat().st_size
        wrong = found[mismatched_draft.name]
        assert wrong.compatible is False
        assert "1517" in wrong.reason
        assert "functiox" in wrong.reason

        await driven.until(
            lambda: (
                app.screen.query_one(OptionList).option_count == 3
                and any("1517" in str(o.prompt) for o in app.screen.query_one(OptionList).options)
            ),
            "the reason in the list",
        )
        rows = app.screen.query_one(OptionList).options
        assert [row.disabled for row in rows] == [d.compatible is False for d in app.drafts]

        other = next(i for i, d in enumerate(app.drafts) if d.name == quick_pair.drafts[1].name)
        app.screen.query_one(OptionList).highlighted = other
        await driven.press("enter")
        await driven.until(lambda: bool(driven.snapshot.settings.changes), "the other draft staged")
        assert driven.snapshot.settings.changes == ("speculation.draft_model",)
        staged = driven.snapshot.settings.staged.speculation.draft_model
        assert staged is not None
        assert Path(staged).name == quick_pair.drafts[1].name
        await driven.press("u")
        await driven.until(lambda: not driven.snapshot.settings.changes, "the change undone")
        await driven.press("q")
        await driven.until(lambda: not app.is_running, "the end of the app", 20)
    assert servers() == []
