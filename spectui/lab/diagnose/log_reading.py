"""A server's log as one reading: what it says of the build, the settings, each finished request and each pass.

Joins the events of `llama.log.parser`, which knows the lines of every era, into counts; no judgement here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from spectui.core.bet.intervals import RatioSums
from spectui.core.bet.passes import RequestPasses, TargetPass
from spectui.core.verdict.findings import Failure
from spectui.errors import UsageError
from spectui.lab.diagnose.user_files import require_regular
from spectui.llama.log.events import (
    GENERIC_FAILURE,
    Acceptance,
    BuildInfo,
    Event,
    Generated,
    LogFailure,
    PassTrace,
    PromptRead,
    SpeculationInit,
    SpeculationOff,
    Statistics,
)
from spectui.llama.log.parser import LogParser

_NO_TYPE: Final = "no implementations specified"
"""What a server without any draft says too: no type was asked for."""


@dataclass(slots=True)
class _Request:
    """One finished request; its acceptance line comes after its times."""

    tokens: int
    ms: float
    prompt_tokens: int | None
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class LogReading:
    """What a log says. Unknown is None; filled line by line."""

    build: int | None = None
    mode: str | None = None
    draft_length: int | None = None
    p_min: float | None = None
    off: str | None = None
    """Why the server does not speculate though something was asked for."""
    draft_idle: bool = False
    """Whether a draft model was loaded and no type was given."""
    plain: bool = False
    """Whether the server was started without any speculation."""
    drafted: int | None = None
    accepted: int | None = None
    predicted: int | None = None
    """Generated tokens of all finished requests, first tokens included."""
    requests: int = 0
    repeated: int = 0
    """Requests that look like an earlier one, or whose prompt lay in the cache as a whole."""
    passes: tuple[RequestPasses, ...] = ()
    shares: tuple[float, ...] = ()
    """Share of drafts that were kept at each position, where one implementation drafted."""
    draft_ms: float | None = None
    """Draft milliseconds per drafted token."""
    speeds: tuple[RatioSums, ...] = ()
    """Per request: tokens after the first over seconds."""
    restored_share: float | None = None
    failures: tuple[Failure, ...] = ()
    """One per code, general ones only where nothing else was said."""
    processes: int = 1
    """Servers that wrote the log, one after the other; all else is about one of them."""


def read_log(path: str) -> LogReading:
    """Read a log: the last server in it that answered, or else the last one.

    A file that several servers wrote one after the other, as the dashboard's own, says nothing as a whole. Raises
    UsageError, one line, for a file that cannot be read or tells nothing.
    """
    process, answered, processes = _Process(), None, 1
    try:
        with require_regular(path).open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                event = process.parser.feed(line.rstrip("\n"))
                # A server says its build once, at its start.
                if isinstance(event, BuildInfo) and process.collector.build is not None:
                    answered = process if process.collector.requests else answered
                    process, processes = _Process(), processes + 1
                if event is not None:
                    process.collector.take(event)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if answered is not None and not process.collector.requests and not process.collector.failures:
        process = answered
    if not process.collector.spoke:
        raise UsageError(f"{path} says nothing about speculation: give the output of llama-server itself")
    reading = process.collector.reading(draft_loaded=process.parser.draft_loaded)
    reading.processes = processes
    return reading


@dataclass(slots=True)
class _Collector:
    spoke: bool = False
    build: int | None = None
    inits: list[SpeculationInit] = field(default_factory=list)
    off: SpeculationOff | None = None
    statistics: dict[str, Statistics] = field(default_factory=dict)
    prompt_tokens: int | None = None
    requests: list[_Request] = field(default_factory=list)
    loose: list[Acceptance] = field(default_factory=list)
    """Acceptance lines of requests whose times the log does not have."""
    open_passes: list[PassTrace] = field(default_factory=list)
    closed: list[tuple[list[PassTrace], _Request | None]] = field(default_factory=list)
    failures: dict[str, LogFailure] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take the next event."""
        self.spoke = True
        match event:
            case BuildInfo():
                self.build = event.build
            case SpeculationInit():
                self.inits.append(event)
            case SpeculationOff():
                self.off = self.off or event
            case Statistics():
                self.statistics[event.implementation] = event
            case PromptRead():
                self.prompt_tokens = event.tokens
            case Generated():
                self._finish(event)
            case Acceptance():
                self._count(event)
            case PassTrace():
                self.open_passes.append(event)
            case LogFailure():
                self.failures.setdefault(event.code, event)
            case _:
                pass

    def _finish(self, event: Generated) -> None:
        request = _Request(event.tokens, event.ms, self.prompt_tokens)
        self.requests.append(request)
        self.prompt_tokens = None
        if self.open_passes:
            self.closed.append((self.open_passes, request))
            self.open_passes = []

    def _count(self, event: Acceptance) -> None:
        last = self.requests[-1] if self.requests else None
        if last is None or last.drafted:
            self.loose.append(event)
        else:
            last.drafted, last.accepted = event.drafted, event.accepted

    def reading(self, *, draft_loaded: bool) -> LogReading:
        """Everything together."""
        drafted = sum(r.drafted for r in self.requests) + sum(a.drafted for a in self.loose)
        accepted = sum(r.accepted for r in self.requests) + sum(a.accepted for a in self.loose)
        traces = [*self.closed, (self.open_passes, None)] if self.open_passes else self.closed
        marked = [t.restored for steps, _ in traces for t in steps]
        drafting = bool(drafted or marked or self.statistics or self.inits)
        counted = bool(drafted or self.loose or self.statistics)
        result = LogReading(
            build=self.build,
            drafted=drafted if counted else None,
            accepted=accepted if counted else None,
            predicted=sum(r.tokens for r in self.requests) if self.requests and not self.loose else None,
            requests=len(self.requests) + len(self.loose),
            repeated=_repeated(self.requests),
            passes=tuple(_passes(steps, request) for steps, request in traces),
            speeds=tuple(_speed(r) for r in self.requests if r.tokens > 1 and r.ms > 0),
            restored_share=sum(marked) / len(marked) if marked else None,
            failures=self._failures(),
        )
        self._settings(result)
        self._whether_off(result, draft_loaded=draft_loaded, drafting=drafting)
        return result

    def _settings(self, result: LogReading) -> None:
        first = next((i for i in self.inits if i.n_max is not None), None)
        if first is not None:
            result.draft_length, result.p_min = first.n_max, first.p_min
        named = [i.type for i in self.inits] or list(self.statistics)
        result.mode = named[0] if named else None
        if len(self.statistics) == 1:
            only = next(iter(self.statistics.values()))
            result.shares = only.per_position
            if only.draft_ms is not None and only.drafted:
                result.draft_ms = only.draft_ms / only.drafted

    def _whether_off(self, result: LogReading, *, draft_loaded: bool, drafting: bool) -> None:
        no_type = self.off is not None and _NO_TYPE in self.off.reason
        if self.off is not None and (draft_loaded or not no_type):
            result.off, result.draft_idle = self.off.reason, draft_loaded and no_type
        elif draft_loaded and self.requests and not drafting:
            result.off, result.draft_idle = "no request drafted anything", True
        else:
            result.plain = not drafting and (no_type or bool(self.requests)) and not self.failures

    def _failures(self) -> tuple[Failure, ...]:
        codes = [code for code in self.failures if code != GENERIC_FAILURE] or list(self.failures)
        return tuple(Failure(code=code, text=self.failures[code].text) for code in codes)


@dataclass(slots=True)
class _Process:
    """One server of a log."""

    parser: LogParser = field(default_factory=LogParser)
    collector: _Collector = field(default_factory=_Collector)


def _speed(request: _Request) -> RatioSums:
    return RatioSums().plus(request.tokens - 1, request.ms / 1000)


def _repeated(requests: list[_Request]) -> int:
    seen: set[tuple[int, int, int]] = set()
    count = 0
    for request in requests:
        shape = (request.tokens, request.drafted, request.accepted)
        cached = request.prompt_tokens is not None and request.prompt_tokens <= 1
        count += cached or (request.drafted > 0 and shape in seen)
        seen.add(shape)
    return count


def _passes(steps: list[PassTrace], request: _Request | None) -> RequestPasses:
    """Passes of one request. Those that drafted nothing are not traced; the generated tokens tell their number.

    After a restored state the kept tokens are verified once more, which is no draft of its own.
    """
    drafts: list[TargetPass] = []
    replay: int | None = None
    for step in steps:
        again = replay is not None and step.accepted == step.drafted == replay
        replay = step.accepted if step.restored else None
        if not again:
            drafts.append(TargetPass(step.drafted, step.accepted, step.accepted + 1, None))
    if request is not None:
        missing = request.tokens - 1 - sum(p.committed for p in drafts)
        drafts += [TargetPass(0, 0, 1, None)] * max(0, missing)
    return RequestPasses(
        passes=tuple(drafts),
        drafted=sum(p.drafted for p in drafts),
        accepted=sum(p.accepted for p in drafts),
        predicted_n=request.tokens if request else 1 + sum(p.committed for p in drafts),
        predicted_ms=request.ms if request else 0.0,
        completed=request is not None,
    )
