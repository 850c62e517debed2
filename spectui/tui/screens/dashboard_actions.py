"""What each key of the main screen does: a dialog where something has to be asked, then one command.

`dashboard.py` says where things are, this says what happens. The keys that change a setting are in
`setting_actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from spectui.core.profile import OFF
from spectui.core.views.snapshot import ServerState, Snapshot, TrafficState
from spectui.tui.messages import Severity
from spectui.tui.screens.attach import AttachScreen
from spectui.tui.screens.baseline import BaselineScreen, GivenBaseline
from spectui.tui.screens.command import CommandScreen
from spectui.tui.screens.confirm import ConfirmScreen
from spectui.tui.screens.profiles import LoadScreen, SaveScreen
from spectui.tui.screens.setting_actions import SettingActions
from spectui.tui.text import shown, speed

_FOREIGN: Final = (
    "spectui did not start this server and never restarts it. Start it yourself with the staged settings:"
)
_DOWN: Final = frozenset({ServerState.NONE, ServerState.FAILED, ServerState.GONE})


class ActionScreen(SettingActions):
    """The actions of the main screen."""

    @property
    def _foreign(self) -> bool:
        return self._staged.attached or self.snapshot.server.state is ServerState.ATTACHED

    def possible(self, snapshot: Snapshot) -> frozenset[str]:
        """Those of the conditional actions that would do something now."""
        settings, server = snapshot.settings, snapshot.server
        startable = server.state in _DOWN and (server.owned or settings.staged.server.model is not None)
        holds = {
            "restart": bool(settings.changes)
            or startable
            or settings.staged.attached
            or snapshot.traffic is TrafficState.BASELINE,
            "undo": settings.can_undo,
            "apply_best": snapshot.verdict.change is not None,
        }
        return frozenset(action for action, here in holds.items() if here)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim a key in the footer while it would do nothing; a number without a session is no key at all."""
        if action == "session":
            return parameters[0] in {mark.number for mark in self.snapshot.strip.marks}
        if action in {"restart", "undo", "apply_best"} and action not in self.possible(self.snapshot):
            return None
        return super().check_action(action, parameters)

    def _with_device(self, command: Callable[[], None]) -> None:
        """Give a command that takes the device; asks first where that ends a sweep or an A/B run."""
        borrower = self.snapshot.lent_to
        if not borrower:
            command()
            return
        question = f"{borrower[0].upper()}{borrower[1:]} has the device, and would end where it is."
        self.app.push_screen(
            ConfirmScreen(f"end {borrower}", question, yes="end it"),
            lambda yes: command() if yes else None,
        )

    # Server.

    def action_restart(self) -> None:
        """Restart with what is staged; a foreign server gets the command line instead."""
        self._with_device(self._restart)

    def _restart(self) -> None:
        if self._foreign:
            settings = self.snapshot.settings
            note = _FOREIGN if settings.command else f"{_FOREIGN}\n{shown(settings.problem)}"
            self.app.push_screen(CommandScreen("restart", settings.command, note=note))
        elif self.snapshot.settings.problem:
            self._say(self.snapshot.settings.problem, "error")
        else:
            self._controller.front.restart()

    def action_undo(self) -> None:
        """Drop what is staged; without that back to what ran before, and asks first where a server runs well."""
        if self.snapshot.settings.changes:
            self._controller.front.undo()
        else:
            self._with_device(self._undo)

    def _undo(self) -> None:
        if self.snapshot.server.state is not ServerState.RUNNING:
            self._controller.front.undo()
            return
        if not self.snapshot.settings.can_undo:
            self.app.notify("nothing to go back to: these settings are the first that ran")
            return
        question = "Nothing is staged, so the server restarts with the settings that ran before these."
        self.app.push_screen(
            ConfirmScreen("back to the settings before", question, yes="restart"),
            lambda yes: self._controller.front.undo() if yes else None,
        )

    def action_apply_best(self) -> None:
        """What the verdict recommends; on a foreign server it is only staged, by the controller."""
        self._with_device(self._controller.front.apply_best)

    def action_command(self) -> None:
        """The staged command line, whole."""
        settings = self.snapshot.settings
        notes = [settings.problem] if settings.problem else []
        if settings.environment:
            passed = "passed on" if settings.staged.server.inherit_llama_env else "not passed on"
            notes.append(f"in the environment and {passed}: {', '.join(settings.environment)}")
        note = "\n".join(shown(text) for text in notes)
        self.app.push_screen(CommandScreen("command line", settings.command, note=note))

    # Measuring.

    def action_traffic(self) -> None:
        """Start or stop the test traffic."""
        self._controller.front.toggle_traffic()

    def action_baseline(self) -> None:
        """Measure the baseline; ask first where that restarts a server or repeats a measurement."""
        self._with_device(self._baseline)

    def _baseline(self) -> None:
        known = self.snapshot.bet.baseline
        if self._foreign:
            self.app.push_screen(BaselineScreen(), self._baseline_given)
            return
        running = self.snapshot.settings.running
        restarts = running is not None and running.speculation.mode != OFF
        if not restarts and known is None:
            self._controller.front.measure_baseline(force=False)
            return
        parts = []
        if known is not None:
            source = shown(self.snapshot.bet.baseline_source) or "known"
            parts.append(f"The baseline is {source}: {speed(known.value)} tokens/s. Measure it again?")
        if restarts:
            parts.append(
                "This restarts the server without speculation, sends the same prompts, and restarts it "
                "with the settings that run now. Requests of others in flight are lost."
            )
        self.app.push_screen(
            ConfirmScreen("measure the baseline", "\n\n".join(parts), yes="measure"),
            lambda yes: self._controller.front.measure_baseline(force=known is not None) if yes else None,
        )

    def action_probe(self) -> None:
        """Probe verification; asks first, since our own server must restart without speculation for it."""
        self._with_device(self._probe)

    def _probe(self) -> None:
        if self._foreign:
            self._controller.front.probe()
            return
        self.app.push_screen(
            ConfirmScreen(
                "probe verification",
                "The server restarts without speculation, its plain speed is measured and verification probed; "
                "then it restarts as it is.",
                yes="probe",
            ),
            lambda yes: self._controller.front.probe() if yes else None,
        )

    def _baseline_given(self, given: GivenBaseline | None) -> None:
        if given is not None:
            self._controller.front.give_baseline(tokens_per_second=given.tokens_per_second, url=given.url)

    def action_ab(self) -> None:
        """Open the A/B screen; nothing is started by that."""
        from spectui.tui.screens.ab import AbScreen  # noqa: PLC0415  not needed for the first frame

        self._controller.front.ab.open()
        self.app.push_screen(AbScreen(self._controller))

    def action_sweep(self) -> None:
        """Open the sweep screen; nothing is started by that."""
        from spectui.tui.screens.sweep import SweepScreen  # noqa: PLC0415  not needed for the first frame

        self.app.push_screen(SweepScreen(self._controller))

    def action_history(self) -> None:
        """Look at what was measured."""
        from spectui.tui.screens.history import HistoryScreen  # noqa: PLC0415  not needed for the first frame

        self.app.push_screen(HistoryScreen(self._controller))

    # Sessions.

    def action_session(self, number: int) -> None:
        """Bring a session to the front."""
        self._controller.switch(number)

    def action_new_session(self) -> None:
        """Start a profile in a session of its own."""
        screen = LoadScreen(
            self._controller,
            current=None,
            title="profile of a further session",
            hint="enter starts it beside this one, esc closes",
        )
        self.app.push_screen(screen, self._new_session)

    def _new_session(self, name: str | None) -> None:
        if name is not None:
            self._run(self._controller.open_session(name), "new session")

    def action_attach_session(self) -> None:
        """Attach to a server in a session of its own."""
        self.app.push_screen(AttachScreen(), self._attach_session)

    def _attach_session(self, url: str | None) -> None:
        if url is not None:
            self._run(self._controller.attach_session(url), "attach")

    def action_close_session(self) -> None:
        """Close the session in front; asks first where that ends a server of ours, a sweep or an A/B run."""
        server, several = self.snapshot.server, bool(self.snapshot.strip.marks)
        if several and self.snapshot.lent_to:
            self._with_device(lambda: self._close_session(yes=True))
            return
        if not several or not server.owned or server.state in _DOWN:
            self._close_session(yes=True)
            return
        question = "Its server ends, and so do its traffic and what is staged. The other sessions go on."
        self.app.push_screen(
            ConfirmScreen("close this session", question, yes="close"),
            lambda yes: self._close_session(yes=bool(yes)),
        )

    def _close_session(self, *, yes: bool) -> None:
        if yes:
            self._run(self._controller.close_session(), "close session")

    # Profiles.

    def action_save(self) -> None:
        """Save what is staged."""
        name = self.snapshot.settings.profile_name
        self.app.push_screen(SaveScreen(self._controller, name=name), self._save)

    def _save(self, name: str | None) -> None:
        if name is not None:
            self._run(self._save_and_say(name), "save profile")

    async def _save_and_say(self, name: str) -> None:
        self._say(f"saved: {await self._controller.front.save_profile(name)}")

    def action_load(self) -> None:
        """Load a profile and start it."""
        name = self.snapshot.settings.profile_name
        self.app.push_screen(LoadScreen(self._controller, current=name), self._load)

    def _load(self, name: str | None) -> None:
        if name is not None:
            self._with_device(
                lambda: self._run(self._controller.front.load_profile(name), "load profile", exclusive=True)
            )

    def _run(self, work: Coroutine[Any, Any, None], name: str, *, exclusive: bool = False) -> None:
        """exclusive: a newer one of that name takes the place of one that has not begun to change anything."""
        self.app.run_worker(work, name=name, group=name, exclusive=exclusive, exit_on_error=False)

    def _say(self, text: str, severity: Severity = "information") -> None:
        self.notify(shown(text), severity=severity, markup=False)
