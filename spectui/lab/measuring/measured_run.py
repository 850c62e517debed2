"""A limited number of requests into one segment: what headless measuring and baselines share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from spectui.core.bet.baseline import Baseline
from spectui.core.bet.curves import reading_of
from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import Segment, drafting_since
from spectui.core.profile import TuningProfile
from spectui.core.views.run_list import RunSource
from spectui.lab.measuring.recorder import Recorder, RunRecord, summary_of
from spectui.lab.measuring.traffic import RequestResult, Traffic
from spectui.lab.servers.server import Server
from spectui.lab.workloads.workloads import Prompt
from spectui.store.records import RunSummary


class Collector:
    """Observes traffic and keeps the counted requests in `segment`.

    on_request is told how many of them ended, on_answer gets each that is complete.
    """

    def __init__(
        self,
        profile: TuningProfile,
        *,
        on_token: Callable[[int, float], None] | None = None,
        on_begin: Callable[[float], None] | None = None,
        on_request: Callable[[int], None] | None = None,
        on_answer: Callable[[RequestResult], None] | None = None,
        fixed_length: bool | None = None,
        rereads: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.segment = Segment(profile, fixed_length=fixed_length, rereads=rereads)
        self.longest_draft = 0
        """Longest draft seen in any answer, in tokens."""
        self.cut_amid = False
        """Whether drafts were seen to vary in length, as p_min makes them."""
        self._profile = profile
        self._on_token = on_token
        self._on_begin = on_begin
        self._on_request = on_request
        self._on_answer = on_answer
        self._clock = clock

    async def send(
        self,
        server: Server,
        prompts: Iterator[Prompt],
        *,
        requests: int,
        warm_up: bool = True,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Send until so many counted requests have ended, or enough, after a warm-up if asked for.

        Raises SpectuiError; what was measured until then is kept.
        """
        profile = self._profile if warm_up else self._profile.with_traffic(warmup=0)
        traffic = Traffic(
            server.client, prompts, profile, self, cache_prompt=server.cache_prompt, clock=self._clock
        )
        if not server.length_known:
            # A guess that is too short would split passes that arrived as one.
            traffic.draft_length = None
        await traffic.run(requests=requests, enough=enough)

    def warmed_up(self) -> None:
        """Nothing to do: only counted requests enter the segment."""

    def decoding_begins(self, at: float) -> None:
        """Hand it on, so that a live reading leaves the wait for a prompt out."""
        if self._on_begin is not None:
            self._on_begin(at)

    def tokens_arrived(self, count: int, at: float, text: str) -> None:
        """Hand the live reading on."""
        del text
        if self._on_token is not None:
            self._on_token(count, at)

    def request_ended(self, result: RequestResult) -> None:
        """Counted requests enter the segment, those that were dropped with what they had."""
        drafts = [p.drafted for p in result.passes.passes if p.apart]
        self.longest_draft = max([self.longest_draft, *drafts])
        self.cut_amid = self.cut_amid or result.passes.cut_amid(self.longest_draft)
        if not result.counted:
            return
        self.segment.add(result.passes)
        self.segment.add_busy(stream_seconds=result.stream_seconds, busy_seconds=result.busy_seconds)
        if not result.passes.completed:
            return
        if self._on_answer is not None:
            self._on_answer(result)
        if self._on_request is not None:
            self._on_request(self.segment.requests)


class MeasuredRun:
    """A run of `profile` on a server that is ready.

    baseline: what the bet is measured against, None where that is not known. on_request: told how many requests
    ended.
    """

    def __init__(
        self,
        server: Server,
        profile: TuningProfile,
        *,
        baseline: Baseline | None,
        on_request: Callable[[int], None],
        fixed_length: bool | None = None,
        on_answer: Callable[[RequestResult], None] | None = None,
    ) -> None:
        self._server = server
        self._profile = profile
        self._baseline = baseline
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

    @property
    def number(self) -> int | None:
        """In the results store; None where it is not kept."""
        return None if self._record is None else self._record.number

    async def send(
        self, prompts: Iterator[Prompt], *, requests: int, recorder: Recorder, source: RunSource
    ) -> None:
        """Send until so many requests have ended, and keep the run meanwhile. Raises SpectuiError."""
        async with recorder.recorded(self._server, self._profile, self._summary, source=source) as record:
            self._record = record
            await self._collector.send(self._server, prompts, requests=requests)

    def bet(self) -> BetReading:
        """The bet as far as it was measured."""
        drafting = drafting_since(self._before, self._server.drafting)
        return reading_of(self.segment, self._baseline, drafting=drafting)

    def _summary(self) -> RunSummary:
        return summary_of(self.bet(), self.segment.speed())

    def _counted(self, requests: int) -> None:
        self._on_request(requests)
        if self._record is not None:
            self._record.update()
