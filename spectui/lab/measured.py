"""One run of a headless experiment: its requests, its bet against a baseline, and its record in the results.

Apart from the experiments, which decide what runs and in which order. An arm of an A/B run lasts over many server
lives and keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spectui.core.profile import TuningProfile
from spectui.core.runlist import RunSource
from spectui.core.segment import drafting_since
from spectui.core.snapshot import BetView
from spectui.lab.baseline import Plain
from spectui.lab.collect import Collector
from spectui.lab.judging import with_costs
from spectui.lab.recording import Recorder, RunRecord, summary_of
from spectui.lab.server import Server
from spectui.lab.traffic import RequestResult
from spectui.lab.workloads import Prompt
from spectui.store.records import RunSummary


class MeasuredRun:
    """A run of `profile` on a server that is ready.

    plain: what the bet is measured against, None where that is not known. on_request: told how many requests ended.
    """

    def __init__(
        self,
        server: Server,
        profile: TuningProfile,
        *,
        plain: Plain | None,
        on_request: Callable[[int], None],
        fixed_length: bool | None = None,
        on_answer: Callable[[RequestResult], None] | None = None,
    ) -> None:
        self._server = server
        self._profile = profile
        self._plain = plain
        self._on_request = on_request
        self._before = server.drafting
        self._record: RunRecord | None = None
        self._collector = Collector(
            profile,
            fixed_length=fixed_length,
            rereads=server.rereads,
            on_request=self._counted,
            on_answer=on_answer,
        )
        self.segment = self._collector.segment

    async def send(
        self, prompts: Iterator[Prompt], *, requests: int, recorder: Recorder, source: RunSource
    ) -> None:
        """Send until so many requests have ended, and keep the run meanwhile. Raises SpectuiError."""
        async with recorder.recorded(self._server, self._profile, self._summary, source=source) as record:
            self._record = record
            await self._collector.send(self._server, prompts, requests=requests)

    def bet(self) -> BetView:
        """The bet as far as it was measured."""
        plain = self._plain
        bet = self.segment.bet(
            baseline=plain.speed if plain else None,
            baseline_source=plain.source if plain else "",
            drafting=drafting_since(self._before, self._server.drafting),
        )
        return with_costs(bet, plain.v, plain.v_error) if plain else with_costs(bet, {})

    def _summary(self) -> RunSummary:
        return summary_of(self.bet(), self.segment.speed())

    def _counted(self, requests: int) -> None:
        self._on_request(requests)
        if self._record is not None:
            self._record.update()
