"""A controller that records what it is asked, and snapshots of the situations a user meets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual.message import Message

from spectui.core.ab.divergence import Divergence
from spectui.core.bet.estimates import BetReading, Cost, Costs, CurvePoint, Estimate, PositionRow, Source
from spectui.core.profile import (
    SamplingSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
    restart_changes,
)
from spectui.core.sweep.grid import PLAIN, Cell, Grid
from spectui.core.sweep.prediction import CellResult
from spectui.core.sweep.recommendation import Recommendation
from spectui.core.verdict.verdict import Change, Finding, Group, Outcome, Verdict
from spectui.core.views.ab import AbState, AbView, ArmName, ArmView, OutputsView
from spectui.core.views.heatmap import heat_map
from spectui.core.views.run_list import Difference, Number, RunDetails, RunList, RunRow
from spectui.core.views.snapshot import (
    CurveView,
    DraftOption,
    HistoryMark,
    HistoryPoint,
    HistoryView,
    MachineView,
    ServerState,
    ServerView,
    SessionMark,
    SettingsView,
    SharedDevice,
    Snapshot,
    StripView,
    TrafficState,
)
from spectui.core.views.sweep import ConditionMap, KeptSweep, SweepChoice, SweepPlan, SweepStage, SweepView
from spectui.errors import ProfileError, SpectuiError
from spectui.tui.control.interface import ProfileOption
from spectui.tui.messages import AbReady, SnapshotReady, SweepReady

MODES = (
    "off",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "ngram-simple",
    "ngram-map-k",
    "ngram-mod",
)
COMMAND = (
    "llama-server -m /models/deep-16bit.gguf --port 38411 -np 1 -c 4096 --spec-type draft-simple "
    "-md /models/27-blocks.gguf --spec-draft-n-max 4 --metrics --slots -lv 4"
)
PROFILE = TuningProfile(
    description="the demo pair",
    server=ServerSettings(model="/models/deep-16bit.gguf", context=4096),
    speculation=SpeculationSettings(
        mode="draft-simple", draft_model="/models/27-blocks.gguf", draft_length=16, p_min=0.0
    ),
    sampling=SamplingSettings(temperature=0.0),
    traffic=TrafficSettings(workload="code"),
)
DRAFTS = (
    DraftOption(
        path="/models/27-blocks.gguf",
        name="27-blocks.gguf",
        size_bytes=91_400_000,
        quantisation="Q4_1",
        blocks=27,
        architecture="llama",
        compatible=True,
    ),
    DraftOption(
        path="/models/24-blocks.gguf",
        name="24-blocks.gguf",
        size_bytes=84_200_000,
        quantisation="Q4_1",
        blocks=24,
        architecture="llama",
        compatible=None,
    ),
    DraftOption(
        path="/models/qwen-0.5b.gguf",
        name="qwen-0.5b.gguf",
        size_bytes=531_000_000,
        quantisation="Q8_0",
        blocks=24,
        architecture="qwen2",
        compatible=False,
        reason="token 0 differs: <|endoftext|> against !",
    ),
)
PROFILES = (
    ProfileOption(name="demo", description="the demo pair, length 2"),
    ProfileOption(name="qwen-32b", description="Qwen 32B with a 0.5B draft on one GPU"),
    ProfileOption(name="broken", problem="speculation.draft_length: 0 is below 1"),
)
LOG = (
    "srv    load_model: loading model '/models/deep-16bit.gguf'",
    "llama_model_loader: loaded meta data with 35 key-value pairs and 1622 tensors",
    "load_tensors:   CPU_Mapped model buffer size =  1302.44 MiB",
    "common_speculative_init: draft context created, n_max = 16",
    "main: server is listening on http://127.0.0.1:38411",
)


def textbook(alpha: float, c: float) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(draft_length=k, speedup=sum(alpha**i for i in range(k + 1)) / (1 + k * c))
        for k in range(1, 65)
    )


def history(speeds: tuple[tuple[float, float, str], ...], baseline: float | None) -> HistoryView:
    """Stretches of (seconds, tokens per second, label)."""
    points, marks, t = [], [], 0.0
    for seconds, mean, label in speeds:
        if label:
            marks.append(HistoryMark(t=t, label=label))
        for step in range(int(seconds * 4)):
            wave = math.sin(step * 0.9) * 0.04 + math.sin(step * 0.23) * 0.05
            if mean:
                points.append(HistoryPoint(t=t + step / 4, tokens_per_second=mean * (1 + wave)))
        t += seconds + 3.0
    return HistoryView(points=tuple(points), marks=tuple(marks), baseline=baseline)


def survival(*shares: float) -> tuple[PositionRow, ...]:
    return tuple(PositionRow(position=index + 1, survival=share) for index, share in enumerate(shares))


def losing() -> Snapshot:
    """16 drafted tokens on prose: half the plain speed."""
    return Snapshot(
        tick=1,
        t=130.0,
        server=ServerView(
            state=ServerState.RUNNING,
            owned=True,
            url="http://127.0.0.1:38411",
            build="b10434",
            pid=4711,
            target="deep-16bit",
            target_place="CPU",
            draft="27-blocks",
            draft_place="CPU",
            speculating=True,
            slots=1,
            context=4096,
            padded=True,
        ),
        settings=SettingsView(
            running=PROFILE, staged=PROFILE, command=COMMAND, modes=MODES, profile_name="demo"
        ),
        traffic=TrafficState.ON,
        bet=BetReading(
            requests=14,
            passes=1204,
            tokens=1770,
            drafted=19264,
            accepted=566,
            tokens_per_second=18.0,
            live_tokens_per_second=18.04,
            time_to_first_token_ms=212.0,
            alpha=Estimate(value=0.32, low=0.29, high=0.35),
            acceptance_ratio=0.03,
            tokens_per_pass=Estimate(value=1.47, low=1.43, high=1.51),
            drafted_per_pass=16.0,
            pass_ms=81.7,
            draft_ms=3.5,
            c=0.12,
            costs=Costs(
                v={
                    n: Cost(value=v, source=Source.PROBED)
                    for n, v in ((1, 1.0), (2, 1.02), (3, 1.03), (5, 1.08), (9, 1.2), (17, 1.45))
                }
            ),
            pass_cost=2.77,
            baseline=Estimate(value=34.0, low=33.6, high=34.4),
            baseline_source="measured",
            speedup_actual=Estimate(value=0.53, low=0.51, high=0.55),
            speedup_textbook=0.50,
            survival=survival(
                *(0.32, 0.10, 0.03, 0.011, 0.004, 0.002, 0.001, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            ),
        ),
        history=history(((30, 34.0, "off"), (30, 40.1, "length 1"), (50, 18.0, "length 16")), 34.0),
        curve=CurveView(
            revision=1,
            textbook=textbook(0.32, 0.12),
            predicted=tuple(
                CurvePoint(draft_length=p.draft_length, speedup=p.speedup * 0.96)
                for p in textbook(0.32, 0.12)
            ),
            measured=(CurvePoint(draft_length=1, speedup=1.17), CurvePoint(draft_length=16, speedup=0.53)),
            now=16,
            best=CurvePoint(draft_length=1, speedup=1.18),
        ),
        verdict=Verdict(
            outcome=Outcome.LOSING,
            headline="LOSING 0.53x: 16 drafted tokens buy 0.47. Best here: length 1, 1.18x.",
            findings=(
                Finding(
                    code="draft-too-long",
                    group=Group.THE_BET,
                    message="Only 0.47 of 16 drafted tokens are kept per pass.",
                    advice="Draft 1 token: 1.18x is predicted.",
                    change=Change(draft_length=1),
                ),
                Finding(
                    code="acceptance-low",
                    group=Group.THE_BET,
                    message="The draft agrees with the target in 32 % of the places.",
                    advice="Try a larger draft, or n-gram drafting where the text repeats itself.",
                ),
                Finding(
                    code="default-changed",
                    group=Group.TO_KNOW,
                    message="The default of --spec-draft-n-max is 3 in this build, 16 before.",
                ),
            ),
        ),
        machine=MachineView(gpu_used_gib=18.2, gpu_total_gib=24.0, gpu_percent=61.0),
        output=(
            "def merge(left, right):\n    out = []\n    while left and right:\n"
            "        out.append(left.pop(0) if left[0] <= right[0] else right.pop(0))\n"
            "    return out + left + right\n"
        ),
        log_tail=LOG,
    )


def winning() -> Snapshot:
    """4 drafted tokens on code: nearly twice the plain speed; no GPU."""
    base = losing()
    profile = PROFILE.with_speculation(draft_length=4)
    return replace(
        base,
        settings=replace(base.settings, running=profile, staged=profile),
        bet=replace(
            base.bet,
            tokens_per_second=64.9,
            live_tokens_per_second=64.9,
            alpha=Estimate(value=0.71, low=0.69, high=0.73),
            acceptance_ratio=0.51,
            tokens_per_pass=Estimate(value=3.04, low=2.97, high=3.11),
            drafted_per_pass=4.0,
            pass_cost=1.59,
            pass_ms=46.8,
            speedup_actual=Estimate(value=1.91, low=1.86, high=1.96),
            speedup_textbook=1.91,
            survival=survival(0.72, 0.55, 0.41, 0.31),
        ),
        history=history(((30, 34.0, "off"), (70, 64.9, "length 4")), 34.0),
        curve=CurveView(
            revision=2,
            textbook=textbook(0.71, 0.12),
            measured=(CurvePoint(draft_length=4, speedup=1.91),),
            now=4,
            best=CurvePoint(draft_length=4, speedup=1.91),
        ),
        verdict=Verdict(
            outcome=Outcome.WINNING,
            headline="WINNING 1.91x: each pass brings 3.0 tokens for the price of 1.6 plain steps.",
            findings=(
                Finding(
                    code="winning",
                    group=Group.THE_BET,
                    message="Nothing that can be predicted from here is better.",
                ),
            ),
        ),
        machine=MachineView(cpu_percent=98.0, memory_used_gib=2.4, memory_total_gib=15.6),
    )


def staged() -> Snapshot:
    """The losing run with a change that waits for r."""
    return with_staged(losing(), PROFILE.with_speculation(draft_length=4))


def with_staged(snapshot: Snapshot, profile: TuningProfile) -> Snapshot:
    running = snapshot.settings.running
    return replace(
        snapshot,
        settings=replace(
            snapshot.settings,
            staged=profile,
            changes=restart_changes(running, profile) if running else (),
            can_undo=running is not None and running != profile,
        ),
    )


def loading() -> Snapshot:
    base = losing()
    return replace(
        base,
        server=replace(
            base.server,
            state=ServerState.LOADING,
            progress=0.61,
            note="reading tensors",
            speculating=None,
            draft=None,
            slots=None,
        ),
        traffic=TrafficState.OFF,
        bet=BetReading(),
        history=HistoryView(),
        curve=CurveView(),
        verdict=Verdict(),
        output="",
    )


def failed() -> Snapshot:
    base = with_staged(losing(), PROFILE.with_speculation(draft_model="/models/qwen-0.5b.gguf"))
    finding = Finding(
        code="vocab-mismatch",
        group=Group.CANNOT_START,
        message="The draft qwen-0.5b does not fit the target: their vocabularies differ at token 0.",
        advice="choose a draft with the target's tokenizer",
    )
    return replace(
        base,
        server=replace(base.server, state=ServerState.FAILED, note="ended with status 1", speculating=None),
        traffic=TrafficState.OFF,
        bet=BetReading(),
        verdict=Verdict(outcome=Outcome.BROKEN, headline=finding.message, findings=(finding,)),
        log_tail=(
            *LOG[:3],
            "common_speculative_are_compatible: draft model bos tokens must match target model",
            "srv    load_model: the draft model '/models/qwen-0.5b.gguf' is not compatible with the target",
            "main: exiting due to model loading error",
        ),
    )


def attached() -> Snapshot:
    """A server of somebody else, before anything was asked of it."""
    profile = TuningProfile(server=ServerSettings(url="http://10.0.0.5:8080"))
    base = losing()
    return Snapshot(
        tick=1,
        server=replace(
            base.server, state=ServerState.ATTACHED, owned=False, url="http://10.0.0.5:8080", pid=None
        ),
        settings=SettingsView(running=profile, staged=profile, command=COMMAND, modes=MODES),
        machine=base.machine,
    )


def several(front: int = 2) -> Snapshot:
    """Two servers of ours that share the CPU and both send, and one of somebody else."""
    marks = (
        SessionMark(
            number=1,
            label="qwen-32b",
            state=ServerState.RUNNING,
            owned=True,
            tokens_per_second=64.9,
            outcome=Outcome.WINNING,
            sending=True,
            devices=("the CPU",),
        ),
        SessionMark(
            number=2,
            label="demo",
            state=ServerState.RUNNING,
            owned=True,
            tokens_per_second=18.0,
            outcome=Outcome.LOSING,
            sending=True,
            devices=("the CPU",),
        ),
        SessionMark(number=3, label="10.0.0.5:8080", state=ServerState.ATTACHED),
    )
    strip = StripView(
        marks=tuple(replace(mark, front=mark.number == front) for mark in marks),
        shared=(SharedDevice(device="the CPU", numbers=(1, 2), disturbed=True),),
    )
    return replace(losing(), strip=strip)


def silent() -> Snapshot:
    """A draft is loaded and nothing speculates."""
    base = losing()
    finding = Finding(
        code="speculation-off",
        group=Group.NOT_SPECULATING,
        message="The draft is loaded, and nothing speculates: this build wants --spec-type as well.",
        advice="Restart with the mode draft-simple; spectui gives the type.",
        change=Change(mode="draft-simple"),
    )
    return replace(
        base,
        server=replace(base.server, speculating=False),
        bet=replace(
            base.bet,
            alpha=None,
            acceptance_ratio=None,
            tokens_per_pass=Estimate(value=1.0),
            drafted_per_pass=None,
            drafted=0,
            c=None,
            draft_ms=None,
            survival=(),
            speedup_actual=None,
            speedup_textbook=None,
        ),
        curve=CurveView(),
        verdict=Verdict(
            outcome=Outcome.OFF,
            headline="Nothing speculates: plain speed with a draft in memory.",
            findings=(finding,),
        ),
    )


def ab(state: AbState = AbState.READY) -> AbView:
    """Length 16 against 4 on prose, at the beginning, on the way, or decided."""
    a, b = losing(), winning()
    other = PROFILE.with_speculation(draft_length=4).with_server(threads=4)
    view = AbView(
        a=ArmView(profile=PROFILE, name="running"), b=ArmView(profile=other, name="staged"), state=state
    )
    if state in {AbState.READY, AbState.STARTING}:
        return view
    seen = replace(
        view,
        a=ArmView(profile=PROFILE, name="running", bet=a.bet),
        b=ArmView(profile=other, name="staged", bet=b.bet),
        pairs=12,
        ratio=Estimate(value=3.61, low=3.42, high=3.81),
        ratios=tuple(3.61 + 0.6 * math.sin(i * 1.7) for i in range(12)),
        outputs=OutputsView(compared=12, different=0),
    )
    if state is not AbState.ENDED:
        return replace(
            seen, turn="b" if state is AbState.RUNNING else None, note="code: 12 of at most 24 prompts"
        )
    return replace(
        seen,
        pairs=24,
        ratios=tuple(3.61 + 0.6 * math.sin(i * 1.7) for i in range(24)),
        faster="b",
        sentence="B is 3.61x faster than A (3.42 to 3.81) on code, 24 prompts",
        remarks=("the machine drifted, second half against first: A -6%, B -5%",),
        outputs=OutputsView(
            compared=24,
            different=2,
            prompt="code-17",
            first=Divergence(57, "    return left + right", "    return [*left, *right]"),
        ),
    )


class FakeAb:
    """The A/B screen's part; `show` sends a view."""

    def __init__(self, controller: FakeController) -> None:
        self._controller = controller
        self.view = ab()

    def show(self, view: AbView) -> None:
        self.view = view
        if self._controller.sink is not None:
            self._controller.sink(AbReady(view))

    def open(self) -> None:
        self._controller.calls.append(("ab",))
        self.show(self.view)

    async def choose(self, name: str) -> None:
        self._controller.calls.append(("choose", name))

    async def start(self) -> None:
        self._controller.calls.append(("start_ab",))
        if self._controller.fail:
            raise self._controller.fail

    def stop(self) -> None:
        self._controller.calls.append(("stop_ab",))

    async def apply(self, arm: ArmName) -> str:
        self._controller.calls.append(("apply_arm", arm))
        if self._controller.fail:
            raise self._controller.fail
        return f"{arm.upper()} is staged: r restarts with it"


SWEEP_GRID = Grid(
    workloads=("code", "prose", "json"),
    temperatures=(0.0,),
    modes=("draft-simple", "ngram-simple"),
    ks=(1, 2, 3, 4, 6, 8, 12, 16),
    p_mins=(0.0, 0.5),
    drafts=("/models/27-blocks.gguf",),
)
CURVE = {1: 1.12, 2: 1.24, 3: 1.29, 4: 1.31, 6: 1.2, 8: 1.04, 12: 0.81, 16: 0.62}
"""Speedup of the drafts by length, on code."""


def sweep_maps(*, begun: bool) -> tuple[ConditionMap, ...]:
    """Code with one run at k = 4 and two n-gram settings; of the others only the plain speed of prose."""
    code, prose, json = SWEEP_GRID.conditions
    row, family = SWEEP_GRID.fixed[0], SWEEP_GRID.free[1]
    known: dict[Cell, CellResult] = {}
    failed: set[Cell] = set()
    if begun:
        four = next(setting for setting in row if setting.k == 4)
        others = {k: Estimate(value=v, low=v - 0.1, high=v + 0.1) for k, v in CURVE.items()}
        known[Cell(code, four)] = CellResult(
            requests=10, speedup=Estimate(value=1.31, low=1.24, high=1.38), predicted=others
        )
        slow, fast, bad = family.settings[5], family.settings[6], Cell(code, family.settings[7])
        known[Cell(code, slow)] = CellResult(requests=2, speedup=Estimate(value=0.88))
        known[Cell(code, fast)] = CellResult(requests=2, speedup=Estimate(value=2.24))
        failed.add(bad)
    now = Cell(code, SWEEP_GRID.free[0].settings[3]) if begun else None
    blocks = [heat_map(c, SWEEP_GRID, known, failed=failed, now=now) for c in (code, prose, json)]
    best = Recommendation(row[3], Estimate(value=1.31, low=1.24, high=1.38)) if begun else None
    said = "code: use draft-simple 27-blocks.gguf k 4: 1.31x (1.24 to 1.38)" if begun else ""
    off = Recommendation(PLAIN) if begun else None
    return (
        ConditionMap(name="code", plain=34.0 if begun else None, blocks=blocks[0], best=best, said=said),
        ConditionMap(
            name="prose",
            plain=33.2 if begun else None,
            blocks=blocks[1],
            best=off,
            said="prose: speculation off, nothing wins by 5 %, not sure: the machine drifted by -20%",
        ),
        ConditionMap(name="json", blocks=blocks[2], said="json: nothing is known yet"),
    )


def sweep(stage: SweepStage = SweepStage.READY) -> SweepView:
    """Three workloads over drafts and n-grams, at the beginning, on the way, or done."""
    begun = stage not in {SweepStage.READY, SweepStage.STARTING}
    maps = sweep_maps(begun=begun)
    if stage is SweepStage.DONE or not begun:
        calm = tuple(
            replace(
                block,
                rows=tuple(
                    replace(row, cells=tuple(replace(cell, now=False) for cell in row.cells))
                    for row in block.rows
                ),
            )
            for block in maps[0].blocks
        )
        maps = (replace(maps[0], blocks=calm), *maps[1:])
    return SweepView(
        stage=stage,
        choice=SweepChoice(
            workloads=SWEEP_GRID.workloads, modes=SWEEP_GRID.modes, ks=SWEEP_GRID.ks, p_mins=(0.0, 0.5)
        ),
        workloads=("code", "prose", "json", "rewrite", "chat", "summarise"),
        modes=MODES[1:],
        model="/models/deep-16bit.gguf",
        plan=SweepPlan(
            cells=96, starts=(13, 34), seconds=(720.0, 2520.0), tokens=200, speed=34.0, measured=True
        ),
        number=3 if begun else None,
        maps=maps,
        done=4 if begun else 0,
        left=(540.0, 2040.0) if begun and stage is not SweepStage.DONE else None,
        note="measuring code, draft-simple 27-blocks.gguf k 4 p_min 0.5"
        if stage in {SweepStage.RUNNING, SweepStage.PAUSING, SweepStage.PAUSED}
        else "",
        problem="the server ended with status 1: out of memory" if stage is SweepStage.FAILED else "",
    )


KEPT = (
    KeptSweep(
        number=4, started="2026-11-30 10:00", state="running", problem="it was kept by another version"
    ),
    KeptSweep(
        number=3,
        started="2026-11-29 10:00",
        state="stopped",
        model="/models/deep-16bit.gguf",
        workloads=("code", "prose"),
        known=4,
        cells=24,
    ),
    KeptSweep(
        number=1,
        started="2026-11-28 10:00",
        state="done",
        model="/models/deep-16bit.gguf",
        workloads=("json",),
        known=24,
        cells=24,
    ),
)


class FakeSweep:
    """The sweep screen's part; `show` sends a view."""

    def __init__(self, controller: FakeController) -> None:
        self._controller = controller
        self.view = sweep()

    def show(self, view: SweepView) -> None:
        self.view = view
        if self._controller.sink is not None:
            self._controller.sink(SweepReady(view))

    async def open(self) -> None:
        self._controller.calls.append(("sweep",))
        self.show(self.view)

    async def choose(self, choice: SweepChoice) -> None:
        self._controller.calls.append(("choose_sweep", choice))

    async def kept(self) -> tuple[KeptSweep, ...]:
        return KEPT

    async def pick(self, number: int | None) -> None:
        self._controller.calls.append(("pick_sweep", number))

    async def start(self) -> None:
        self._controller.calls.append(("start_sweep",))
        if self._controller.fail:
            raise self._controller.fail

    def pause(self) -> None:
        self._controller.calls.append(("pause_sweep",))

    def go_on(self) -> None:
        self._controller.calls.append(("go_on_sweep",))

    def stop(self) -> None:
        self._controller.calls.append(("stop_sweep",))

    async def apply(self, index: int) -> str:
        self._controller.calls.append(("apply_sweep", index))
        if self._controller.fail:
            raise self._controller.fail
        return "restarting with draft-simple k 4"


def kept_runs(number: int = 6) -> RunList:
    """Runs of three workloads, every third of them stale, the oldest one unfinished."""
    rows = tuple(
        RunRow(
            id=run,
            started=f"2026-11-{run % 28 + 1:02d} 10:30",
            workload=("code", "prose", "json")[run % 3],
            mode="draft-simple" if run % 2 else "off",
            k=4 if run % 2 else None,
            p_min=0.0 if run % 2 else None,
            tokens_per_second=None if run == 1 else 30.0 + run,
            speedup=None if run == 1 else (30.0 + run) / 34.0,
            alpha=0.71 if run % 2 and run > 1 else None,
            requests=10,
            source="dashboard" if run % 2 else "measure",
            build="b10434",
            model="deep-16bit.gguf",
            draft="27-blocks.gguf" if run % 2 else "",
            remark="unfinished" if run == 1 else "stale" if run % 3 == 0 else "",
        )
        for run in range(number, 0, -1)
    )
    return RunList(rows=rows)


class FakeRuns:
    """The history screen's part."""

    def __init__(self, controller: FakeController) -> None:
        self._controller = controller
        self.list = kept_runs()

    async def runs(self, limit: int) -> RunList:
        self._controller.calls.append(("runs", limit))
        if self._controller.fail:
            raise self._controller.fail
        return self.list

    async def details(self, a: int, b: int) -> RunDetails:
        self._controller.calls.append(("details", a, b))
        one, other = (next(row for row in self.list.rows if row.id == run) for run in (a, b))
        return RunDetails(
            a=one,
            b=other,
            numbers=(
                Number(name="tokens/s", a=one.tokens_per_second, b=other.tokens_per_second),
                Number(name="alpha", a=None, b=0.71),
                Number(name="requests", a=10, b=10),
            ),
            differences=(
                Difference(name="profile.speculation.draft_length", a="4", b="16"),
                Difference(name="profile.traffic.workload", a=one.workload, b=other.workload),
            ),
            sentence=f"run {b} has 1.10x the speed of run {a} (1.02 to 1.19)",
        )


class FakeController:
    """Keeps calls as (name, arguments); `stage` and the immediate settings come back as a snapshot."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or losing()
        self.calls: list[tuple[Any, ...]] = []
        self.sink: Callable[[Message], object] | None = None
        self.draft_options = DRAFTS
        self.profiles: tuple[ProfileOption, ...] = PROFILES
        self.fail: SpectuiError | None = None
        self.ab = FakeAb(self)
        self.sweep = FakeSweep(self)
        self.runs = FakeRuns(self)

    @property
    def front(self) -> FakeController:
        """The only session is in front."""
        return self

    @property
    def staged(self) -> TuningProfile:
        return self.snapshot.settings.staged

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = replace(snapshot, tick=self.snapshot.tick + 1)
        if self.sink is not None:
            self.sink(SnapshotReady(self.snapshot))

    def start(self, sink: Callable[[Message], object]) -> None:
        self.sink = sink
        self.show(self.snapshot)

    async def shutdown(self) -> None:
        self.calls.append(("shutdown",))

    def stage(self, change: Callable[[TuningProfile], TuningProfile]) -> None:
        self.calls.append(("stage",))
        self.show(with_staged(self.snapshot, change(self.staged)))

    def set_temperature(self, temperature: float) -> None:
        self.calls.append(("set_temperature", temperature))
        self.show(with_staged(self.snapshot, self.staged.with_sampling(temperature=temperature)))

    def set_workload(self, workload: str) -> None:
        self.calls.append(("set_workload", workload))

    def set_concurrency(self, concurrency: int) -> None:
        self.calls.append(("set_concurrency", concurrency))

    def toggle_traffic(self) -> None:
        self.calls.append(("toggle_traffic",))

    def probe(self) -> None:
        self.calls.append(("probe",))

    def measure_baseline(self, *, force: bool) -> None:
        self.calls.append(("measure_baseline", force))

    def give_baseline(self, *, tokens_per_second: float | None = None, url: str | None = None) -> None:
        self.calls.append(("give_baseline", tokens_per_second, url))

    def restart(self) -> None:
        self.calls.append(("restart",))

    def undo(self) -> None:
        self.calls.append(("undo",))

    def apply_best(self) -> None:
        self.calls.append(("apply_best",))

    def rescan_drafts(self) -> None:
        self.calls.append(("rescan_drafts",))

    async def drafts(self) -> tuple[DraftOption, ...]:
        return self.draft_options

    async def list_profiles(self) -> tuple[ProfileOption, ...]:
        return self.profiles

    async def save_profile(self, name: str) -> str:
        self.calls.append(("save_profile", name))
        if self.fail:
            raise self.fail
        return f"/profiles/{name}.toml"

    async def load_profile(self, name: str) -> None:
        self.calls.append(("load_profile", name))
        if name == "missing":
            raise ProfileError("no profile is called missing: l lists them")

    async def attach(self, url: str) -> None:
        self.calls.append(("attach", url))
        if self.fail:
            raise self.fail

    async def open_demo(self) -> None:
        self.calls.append(("open_demo",))

    def switch(self, number: int) -> None:
        self.calls.append(("switch", number))

    async def open_session(self, name: str) -> None:
        self.calls.append(("open_session", name))
        if self.fail:
            raise self.fail

    async def attach_session(self, url: str) -> None:
        self.calls.append(("attach_session", url))

    async def close_session(self) -> None:
        self.calls.append(("close_session",))
        if self.fail:
            raise self.fail
