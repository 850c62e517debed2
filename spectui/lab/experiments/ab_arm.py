"""One arm of an A/B run: a configuration whose server is started once or many times, and all that it answered.

The experiment decides whose turn it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.curves import reading_of
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import DraftTiming, SpeedEstimate, drafting_since
from spectui.core.profile import OFF, ServerSettings, TuningProfile
from spectui.errors import SpectuiError
from spectui.lab.experiments.measure import Measurement, ended_by
from spectui.lab.measuring.attached_settings import known_settings
from spectui.lab.measuring.measured_run import Collector
from spectui.lab.measuring.recorder import Recorder, RunRecord, summary_of
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.launcher import Launcher
from spectui.lab.servers.open import Progress, open_server
from spectui.lab.servers.server import LaunchedServer, Server
from spectui.lab.workloads.workloads import Prompt, Workload
from spectui.store.records import RunSummary


class Arm:
    """One side of the comparison; owns at most one server at a time."""

    def __init__(
        self,
        profile: TuningProfile,
        *,
        launcher: Launcher,
        api_key: str | None = None,
        progress: Progress = lambda _line: None,
        recorder: Recorder | None = None,
    ) -> None:
        self.profile = profile
        self._recorder = recorder or Recorder()
        self._records: dict[str, RunRecord] = {}
        self.measurement = Measurement()
        self._launcher = launcher
        self._api_key = api_key
        self._progress = progress
        self._server: Server | None = None
        self._open = False
        self._known: TuningProfile | None = None
        self._fixed_length: bool | None = None
        self._collectors: dict[str, Collector] = {}
        self._turn: dict[str, RequestResult] = {}
        """Complete answers of the last turn, by the prompt's id."""
        self._against: dict[str, Baseline | None] = {}
        """What a workload's bet was measured against, once that is known."""
        self._drafting: dict[str, DraftTiming] = {}
        self._before: DraftTiming | None = None

    @property
    def owned(self) -> bool:
        """Whether the server is ours, so that it may be ended and started again."""
        return not self.profile.attached

    @property
    def begun(self) -> bool:
        """Whether its server was ready once."""
        return self._known is not None

    @property
    def settings(self) -> TuningProfile:
        """What is measured: the profile, with what an attached server told of itself."""
        return self._known or self.profile

    @property
    def greedy(self) -> bool:
        """Whether its answers are decided by the prompts alone."""
        return self.profile.sampling.temperature == 0

    async def open(self, workload: Workload) -> None:
        """Start or attach, and learn on the first time what is measured. Raises SpectuiError."""
        self._server = await open_server(
            self.profile, self._launcher, api_key=self._api_key, progress=self._progress
        )
        self._open, self._before = True, None
        if self._known is None:
            self.measurement.build = self._server.build
            if isinstance(self._server, LaunchedServer):
                self.measurement.argv = self._server.plan.argv
            self._known, self._fixed_length = await known_settings(self._server, workload, self._progress)

    async def close(self, workload: str | None = None) -> None:
        """Leave the server, and end it if it is ours; what it logged counts for `workload`."""
        if self._server is None or not self._open:
            return
        self._open = False
        await self._server.stop()
        if workload is not None:
            self._account(workload, self._server)

    async def warm_up(self, workload: Workload, prompts: Sequence[Prompt]) -> None:
        """Send the warm-up, which is not counted; with it the server begins on this workload."""
        server, collector = self._ready(workload)
        self._before = server.drafting
        server.profile = self._settings(workload)
        await self._sent(server, collector, prompts, requests=0, warm_up=True)

    async def turn(self, workload: Workload, prompts: Sequence[Prompt]) -> dict[str, RequestResult]:
        """Send these prompts and return their complete answers by the prompt's id. Raises SpectuiError."""
        server, collector = self._ready(workload)
        self._turn = {}
        await self._sent(server, collector, prompts, requests=len(prompts), warm_up=False)
        return self._turn

    def speed(self, workload: str) -> SpeedEstimate | None:
        """Decode speed of all answers so far."""
        collector = self._collectors.get(workload)
        return collector.segment.speed() if collector else None

    def bet(self, workload: str, baseline: Baseline | None) -> BetReading | None:
        """The bet on a workload as far as it was measured; None before its first turn.

        Nothing is probed between the turns of an arm.
        """
        collector = self._collectors.get(workload)
        if collector is None:
            return None
        drafting = self._drafted(workload, self._server if self._open else None)
        return reading_of(collector.segment, baseline, drafting=drafting)

    def conclude(self, workload: str, baseline: Baseline | None, *, failure: str | None = None) -> None:
        """Take what a workload yielded into the measurement, and keep it; failure: what ended it early."""
        bet = self.bet(workload, baseline)
        if bet is None:
            return
        if self._open and self._server is not None:
            self._account(workload, self._server)
        self.measurement.bets[workload] = bet
        self.measurement.judge(workload, self._collectors[workload].segment, self._server)
        self._against[workload] = baseline
        self._records.pop(workload).end(failure=failure)

    def is_baseline_of(self, other: Arm) -> bool:
        """Whether this arm is what the other's bet is measured against: the same server without speculation."""
        mine, theirs = self.settings, other.settings
        same = _comparable(mine.server) == _comparable(theirs.server) and mine.sampling == theirs.sampling
        built = self.measurement.build == other.measurement.build
        return mine.speculation.mode == OFF and mine.server.model is not None and same and built

    def failed(self, error: SpectuiError) -> None:
        """Note that this arm's server ended the run."""
        ended_by(error, self.measurement, self.settings, self._server)

    def _ready(self, workload: Workload) -> tuple[Server, Collector]:
        if self._server is None or not self._open:
            raise RuntimeError("an arm takes its turn while its server is open")
        if workload.name not in self._collectors:
            self._begin(workload, self._server)
        return self._server, self._collectors[workload.name]

    def _begin(self, workload: Workload, server: Server) -> None:
        """Begin a workload with its record; both last over all starts of the server."""
        name, settings = workload.name, self._settings(workload)

        def summary() -> RunSummary:
            bet = self.bet(name, self._against.get(name))
            return summary_of(bet or BetReading(), self.speed(name))

        record = self._records[name] = self._recorder.begin(server, settings, summary, source="ab")
        self._collectors[name] = Collector(
            settings,
            on_answer=lambda answer: self._turn.update({answer.prompt.id: answer}),
            fixed_length=self._fixed_length,
            rereads=server.rereads,
            on_request=lambda _count: record.update(),
        )

    def _settings(self, workload: Workload) -> TuningProfile:
        return self.settings.with_traffic(workload=workload.name)

    async def _sent(
        self, server: Server, collector: Collector, prompts: Sequence[Prompt], *, requests: int, warm_up: bool
    ) -> None:
        try:
            await collector.send(server, iter(prompts), requests=requests, warm_up=warm_up)
        except SpectuiError as error:
            explained = await server.explain(error)
            self.failed(explained)
            raise explained from error

    def _account(self, workload: str, server: Server) -> None:
        """Take what was drafted since the server began on this workload."""
        now = self._drafted(workload, server)
        self._before = server.drafting
        if now is not None:
            self._drafting[workload] = now

    def _drafted(self, workload: str, server: Server | None) -> DraftTiming | None:
        """All that was drafted for a workload, with what the server did since it began on it."""
        known = self._drafting.get(workload)
        now = None if server is None else drafting_since(self._before, server.drafting)
        if now is None or known is None:
            return now or known
        return replace(now, draft_ms=now.draft_ms + known.draft_ms, drafted=now.drafted + known.drafted)


def _comparable(server: ServerSettings) -> ServerSettings:
    """The settings that make a server's speed; where it listens does not."""
    return replace(server, port=None, url=None, api_key_env=None)
