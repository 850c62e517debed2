"""One server in front of a session: our own process from a launch plan, or somebody else's by its address.

Joins the process, its client and its log into one handle. Processes that we start are ours to end; a server that
we attached to is only ever asked what the user wants to know, and never stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from spectui.core.bet.segment import DraftTiming
from spectui.core.profile import OFF, TuningProfile, needs_draft_model
from spectui.core.verdict.verdict import Failure
from spectui.core.views.snapshot import ServerState, ServerView
from spectui.errors import (
    BinaryError,
    FlagError,
    LaunchError,
    ServerDied,
    ServerError,
    ServerGone,
    SpectuiError,
    Unauthorized,
    Unsupported,
    UsageError,
)
from spectui.lab.servers.cancel_shield import finished
from spectui.lab.servers.discovery import discover
from spectui.lab.servers.launcher import HOST, LaunchPlan
from spectui.llama.builds import CACHE_GATE, REAL, rereads_draft
from spectui.llama.http.client import Health, LlamaClient, Props, SlotInfo
from spectui.llama.log.events import (
    Event,
    LoadProgress,
    LogFailure,
    Placement,
    SpeculationOff,
    Statistics,
    root_failure,
)
from spectui.llama.log.parser import LogParser
from spectui.llama.process.process import ServerProcess, describe_exit
from spectui.llama.process.ready import require_free_port, wait_ready

_LAST_WORDS_SECONDS: Final = 5.0
"""How long a lost connection waits for the exit of the process that may be behind it: a large one takes seconds
to give its memory back, and more of them on a busy machine."""
_LOADING_POLL_SECONDS: Final = 0.5


def failure_of(error: SpectuiError) -> Failure:
    """The finding that an error is shown as."""
    codes: tuple[tuple[type[SpectuiError], str], ...] = (
        (BinaryError, "binary-missing"),
        (FlagError, "flag-unknown"),
        (Unauthorized, "unauthorized"),
        (Unsupported, "metrics-disabled"),
        (ServerGone, "server-unreachable"),
        (ServerError, "server-error"),
        (UsageError, "flag-value"),
    )
    if isinstance(error, LaunchError | ServerDied):
        return Failure(code=error.code, text=str(error))
    code = next((code for kind, code in codes if isinstance(error, kind)), "server-error")
    return Failure(code=code, text=str(error))


class Server:
    """What a session needs of a server, whoever started it."""

    owned = False

    def __init__(self, profile: TuningProfile, client: LlamaClient, *, cache_prompt: bool) -> None:
        self.profile = profile
        self.client = client
        self.cache_prompt = cache_prompt
        self.state = ServerState.STARTING
        self.note = ""
        self.length_known = True
        """Whether the draft length is known; else it shows in the answers."""
        self.failures: list[Failure] = []
        self.props: Props | None = None
        self.slots: tuple[SlotInfo, ...] = ()

    @property
    def speculating(self) -> bool | None:
        """What `/slots` said; None before it was asked, or where it is switched off."""
        known = [s.speculative for s in self.slots if s.speculative is not None]
        return any(known) if known else None

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self.state in {ServerState.RUNNING, ServerState.ATTACHED}

    @property
    def drafting(self) -> DraftTiming | None:
        """Totals of the statistics line since the server began; None where its log is not ours to read."""
        return None

    @property
    def rereads(self) -> bool:
        """Whether its draft reads the last accepted token again; taken for granted where no build is named."""
        return rereads_draft(_build_number((self.build or "").partition("-")[0]))

    @property
    def build(self) -> str | None:
        """Build as the server names it; packaged builds that count from 1 keep their commit."""
        info = self.props.build_info if self.props else None
        if not info:
            return None
        number = _build_number(info.partition("-")[0])
        return info if number not in REAL else info.partition("-")[0]

    @property
    def build_number(self) -> int | None:
        """Number of its build; packaged builds count from 1. None where it names none."""
        return _build_number((self.build or "").partition("-")[0])

    def log_tail(self, lines: int) -> tuple[str, ...]:
        """The last lines of the server's log; empty where it is not ours to read."""
        del lines
        return ()

    async def refresh(self) -> None:
        """Ask `/props` and `/slots`: read-only, and without effect on the server's counters."""
        self.props = await self.client.props()
        try:
            self.slots = await self.client.slots()
        except Unsupported:
            self.slots = ()

    def view(self) -> ServerView:
        """This server as the dashboard shows it."""
        profile = self.profile
        return ServerView(
            state=self.state,
            owned=self.owned,
            url=self.client.base_url,
            note=self.note,
            build=self.build,
            target=_model_name(profile.server.model or (self.props.model_path if self.props else None)),
            draft=_model_name(profile.speculation.draft_model)
            if needs_draft_model(profile.speculation.mode)
            else None,
            speculating=self.speculating,
            slots=self.props.total_slots if self.props else None,
            context=self.props.n_ctx if self.props else None,
            padded="padded" in (profile.server.model or ""),
        )

    async def explain(self, error: SpectuiError) -> SpectuiError:
        """The error with what is known of its cause."""
        return error

    async def stop(self) -> None:
        """Leave the server: end our streams, and the process if it is ours.

        Returns when all of that has ended, also when it is cancelled: what starts next needs the memory.
        """
        await finished(self._leave())

    async def _leave(self) -> None:
        await self.client.aclose()


class AttachedServer(Server):
    """Somebody else's server. Only asked, never stopped."""

    def __init__(self, profile: TuningProfile, *, api_key: str | None) -> None:
        url = profile.server.url
        if url is None:
            raise UsageError("this profile has no server.url to attach to")
        super().__init__(profile, LlamaClient(url, api_key=api_key), cache_prompt=False)

    async def connect(self) -> None:
        """Wait while it loads, then look at it and fill in what the profile leaves open.

        Raises ServerGone, Unauthorized or ServerError, with the connection closed.
        """
        try:
            async with asyncio.timeout(self.profile.server.ready_timeout):
                while await self.client.health() is Health.LOADING:
                    self.state, self.note = ServerState.LOADING, "the server loads its model"
                    await asyncio.sleep(_LOADING_POLL_SECONDS)
            await self.refresh()
        except TimeoutError:
            await self.client.aclose()
            raise ServerError(f"{self.client.base_url} is still loading; attach again later") from None
        except BaseException:
            await self.client.aclose()
            raise
        found = await asyncio.to_thread(discover, self.profile, self.slots, speculating=self.speculating)
        self.profile, self.length_known = found.profile, found.length_known
        if self.profile.server.model is None and self.props is not None and self.props.model_path:
            self.profile = self.profile.with_server(model=self.props.model_path)
        self.cache_prompt = self.build_number in CACHE_GATE
        self.state, self.note = ServerState.ATTACHED, ""


class LaunchedServer(Server):
    """A process of our own."""

    owned = True

    def __init__(
        self,
        plan: LaunchPlan,
        *,
        on_exit: Callable[[LaunchedServer], None] | None = None,
    ) -> None:
        gated = plan.capabilities.accepts("--cache-ram") or not plan.capabilities.accepts("--draft-max")
        super().__init__(
            plan.profile,
            LlamaClient(f"http://{HOST}:{plan.port}", api_key=plan.api_key),
            cache_prompt=not gated,
        )
        self.plan = plan
        self.progress: float | None = None
        self.process: ServerProcess | None = None
        self._parser = LogParser(with_draft=needs_draft_model(plan.profile.speculation.mode))
        self._placement = Placement()
        self._statistics: dict[str, Statistics] = {}
        self._said: list[LogFailure] = []
        self._on_exit = on_exit
        self._watch: asyncio.Task[None] | None = None

    async def start(self, *, log_file: Path | None = None) -> None:
        """Start the process and wait until it is healthy.

        Raises LaunchError with the reason that its log gives. When it raises or is cancelled nothing is left.
        """
        try:
            if self.profile.server.port is not None:
                require_free_port(HOST, self.plan.port)
            self.process = await ServerProcess.start(
                self.plan.argv, self.plan.environment, on_line=self._line, log_file=log_file
            )
            self.state = ServerState.LOADING
            await wait_ready(self.client, self.process, timeout=self.profile.server.ready_timeout)
            await self.refresh()
        except LaunchError as error:
            tail = error.log_tail or self.log_tail(12)
            await self.stop()
            self.state = ServerState.FAILED
            raise self._explained(error, tail) from error
        except BaseException:
            await self.stop()
            self.state = ServerState.FAILED
            raise
        self.state = ServerState.RUNNING
        self._watch = asyncio.create_task(self._watch_exit(), name="server-exit")

    async def explain(self, error: SpectuiError) -> SpectuiError:
        """The error, or that the process ended by itself if that is what is behind a lost connection."""
        if self.process is None or not isinstance(error, ServerGone):
            return error
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                status = await self.process.wait()
        except TimeoutError:
            return error
        root = root_failure(self._said)
        text = _ended_by_itself(status) if root is None else f"{_ended_by_itself(status)}: {root.text}"
        code = "server-crashed" if root is None else root.code
        return ServerDied(text, code=code, log_tail=self.log_tail(12))

    @property
    def drafting(self) -> DraftTiming | None:
        """Totals of the statistics lines over all implementations."""
        lines = [s for s in self._statistics.values() if s.draft_ms is not None and s.drafted]
        if not lines:
            return None
        return DraftTiming(
            draft_ms=sum(s.draft_ms or 0.0 for s in lines), drafted=sum(s.drafted for s in lines)
        )

    @property
    def draft_on_cpu_beside_gpu(self) -> bool:
        """Whether the log placed the target on a GPU and the draft on the CPU."""
        target, draft = self._placement.target_place, self._placement.draft_place
        return bool(target and draft and target.startswith("GPU") and draft.startswith("CPU"))

    @property
    def on_cpu_only(self) -> bool:
        """Whether the log placed all of target and draft on the CPU."""
        return self._placement.devices == ("the CPU",)

    def log_tail(self, lines: int) -> tuple[str, ...]:
        """The last lines of the server's output."""
        return self.process.tail(lines) if self.process is not None else ()

    def view(self) -> ServerView:
        """As `Server.view`, with what the log says."""
        return replace(
            super().view(),
            pid=self.process.pid if self.process else None,
            progress=self.progress,
            target_place=self._placement.target_place,
            draft_place=self._placement.draft_place if self.profile.speculation.mode != OFF else None,
            devices=self._placement.devices,
        )

    async def _leave(self) -> None:
        # A server waits for its clients, so that our streams end before it.
        if self.state is not ServerState.GONE:
            self.state = ServerState.STOPPING
        if self._watch is not None:
            self._watch.cancel()
        try:
            await self.client.close_streams()
        finally:
            try:
                if self.process is not None:
                    await self.process.stop()
            finally:
                await self.client.aclose()

    def _line(self, line: str) -> None:
        event = self._parser.feed(line)
        if event is not None and not self._placement.add(event):
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case LoadProgress():
                self.progress, self.note = event.fraction, event.note
            case Statistics():
                self._statistics[event.implementation] = event
            case LogFailure():
                self._said.append(event)
                self._fail(event.code, event.text)
            case SpeculationOff() if self.plan.profile.speculation.mode != OFF:
                self._fail("speculation-off", event.reason)
            case _:
                pass

    def _fail(self, code: str, text: str) -> None:
        if all(known.code != code for known in self.failures):
            self.failures.append(Failure(code=code, text=text))

    def _explained(self, error: LaunchError, tail: tuple[str, ...]) -> LaunchError:
        """The error with the reason that the log gave, where it gave one."""
        root = root_failure(self._said)
        if root is None:
            return LaunchError(str(error), code=error.code, log_tail=tail)
        return LaunchError(root.text, code=root.code, log_tail=tail)

    async def _watch_exit(self) -> None:
        if self.process is None:
            return
        status = await self.process.wait()
        self.state = ServerState.GONE
        self._fail("server-crashed", _ended_by_itself(status))
        await self.client.close_streams()
        if self._on_exit is not None:
            self._on_exit(self)


def _ended_by_itself(status: int) -> str:
    return f"the server ended by itself ({describe_exit(status)})"


def _model_name(path: str | None) -> str | None:
    return None if path is None else Path(path).name.removesuffix(".gguf")


def _build_number(build: str | None) -> int | None:
    digits = (build or "").removeprefix("b")
    return int(digits) if digits.isdigit() else None
