"""One cell of a sweep on a server that is ready: what it is asked, and what its answers tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from spectui.core.bet.curves import curve_of
from spectui.core.bet.estimates import Estimate
from spectui.core.profile import NGRAM_SIMPLE
from spectui.core.sweep.grid import PLAIN, WARMUP, Cell
from spectui.core.sweep.planner import Task
from spectui.errors import ServerError
from spectui.lab.experiments.sweep_order import first_prompt_of_cell
from spectui.lab.experiments.sweep_record import Found, Measured
from spectui.lab.measuring.baseline import TOO_SHORT, BaselineMeasurer
from spectui.lab.measuring.measured_run import MeasuredRun
from spectui.lab.measuring.ngram_replay import rows_of, sizes_for
from spectui.lab.measuring.probe import ProbeResult, probe_points
from spectui.lab.measuring.recorder import Recorder
from spectui.lab.measuring.traffic import RequestResult
from spectui.lab.servers.server import LaunchedServer
from spectui.lab.workloads.workloads import PromptSequence, load_workload
from spectui.store.baselines import BaselineStore


class CellRunner:
    """Runs the cells of one setting on its server, and reads of `found` what is known by then.

    measurer: for the server without speculation; None for another.
    """

    def __init__(
        self, server: LaunchedServer, found: Found, recorder: Recorder, measurer: BaselineMeasurer | None
    ) -> None:
        self._server = server
        self._found = found
        self._recorder = recorder
        self._measurer = measurer
        self._run: MeasuredRun | None = None

    @property
    def number(self) -> int | None:
        """Of the last run in the results store; None where it is not kept."""
        return None if self._run is None else self._run.number

    async def run(self, task: Task) -> Measured:
        """Send a cell's prompts. Raises SpectuiError, also where a baseline has no answer that is long enough."""
        self._run = None
        condition = task.cell.condition
        profile = self._server.plan.profile.with_sampling(temperature=condition.temperature)
        slots = profile.traffic.concurrency
        profile = profile.with_traffic(workload=condition.workload, warmup=max(WARMUP, slots))
        workload = load_workload(profile.traffic)
        start = first_prompt_of_cell(self._found.order, condition, profile.traffic)
        earlier, known = self._found.baseline(condition), self._found.against(condition)
        done = earlier.requests if earlier is not None and self._measurer is not None else 0
        # Slots that wait for company say nothing about a full house.
        requests = max(task.requests - done, 2 * slots if slots > 1 else 1)
        answers: list[RequestResult] = []
        run = self._run = MeasuredRun(
            self._server,
            profile,
            baseline=known if self._measurer is None else None,
            on_request=lambda _count: None,
            on_answer=answers.append if self._measurer is not None else None,
        )
        prompts = PromptSequence.under(profile, workload, start=start)
        await run.send(prompts, requests=requests, recorder=self._recorder, source="sweep")
        if self._measurer is None:
            return replace(self._told(run, task.cell), requests=requests)
        baseline = await self._measurer.finish(profile, workload, run.segment, answers, earlier=known)
        now, drift = run.segment.speed(), None
        if known is not None and now is not None:
            drift = now.aggregate.value / known.speed.aggregate.value
        return Measured(
            requests=task.requests,
            drift=drift,
            speed=baseline.speed,
            first_token_ms=run.bet().time_to_first_token_ms,
            v=baseline.v,
            v_error=baseline.v_error,
            replayed=baseline.replayed,
        )

    def _told(self, run: MeasuredRun, cell: Cell) -> Measured:
        """What a cell yielded, with what it predicts for other lengths."""
        known, bet, segment = self._found.against(cell.condition), run.bet(), run.segment
        speed = segment.speed()
        if speed is None:
            return Measured(requests=segment.requests, failure=TOO_SHORT)
        rng = Random(1)  # noqa: S311  reproducible, no secret
        curve = curve_of(segment, bet, known.v if known else {}, rng, self._found.order.grid.ks)
        return Measured(
            requests=segment.requests,
            speed=speed,
            first_token_ms=bet.time_to_first_token_ms,
            baseline=bet.baseline.value if bet.baseline else None,
            tokens_per_pass=bet.tokens_per_pass.value if bet.tokens_per_pass else None,
            drafted_per_pass=bet.drafted_per_pass,
            acceptance_ratio=bet.acceptance_ratio,
            speedup_predicted=bet.speedup_predicted,
            predicted={p.draft_length: Estimate(value=p.speedup, low=p.low, high=p.high) for p in curve},
        )


async def cells_on(
    server: LaunchedServer,
    found: Found,
    *,
    recorder: Recorder,
    store: BaselineStore,
    say: Callable[[str], None],
) -> CellRunner:
    """What runs cells on this server; one without speculation is probed before.

    A resumed sweep may know already what verification costs. Raises SpectuiError for a server that does not
    speculate as it should, or does as it should not.
    """
    profile, grid = server.plan.profile, found.order.grid
    if profile.speculation.mode != PLAIN.mode:
        if server.speculating is False:
            raise ServerError(next((f.text for f in server.failures), "the server does not speculate"))
        return CellRunner(server, found, recorder, None)
    wanted = [
        (s.ngram_lookup, s.ngram_length)
        for s in grid.settings
        if s.mode == NGRAM_SIMPLE and s.ngram_lookup and s.ngram_length
    ]
    sizes = sizes_for(server, profile.traffic, wanted)
    longest = max(grid.ks) if grid.fixed else 1
    tokens = {*probe_points(profile.with_speculation(draft_length=longest)), longest + 1, *rows_of(sizes)}
    known = (m for m in found.cells.values() if m.replayed or (m.v and max(m.v) >= max(tokens)))
    probed = next((ProbeResult(v=dict(m.v), error=dict(m.v_error)) for m in known), None)
    measurer = BaselineMeasurer(
        server=server,
        tokens=tokens,
        sizes=sizes,
        plan=server.plan,
        store=store,
        probed=probed,
        note=say,
        on_problem=say,
    )
    await measurer.probe()
    return CellRunner(server, found, recorder, measurer)
