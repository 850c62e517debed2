from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from spectui.errors import ServerGone, UsageError
from spectui.lab.session.operations import Operations


class Recorder:
    """Operations whose course is written down, and that wait until they are let go."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.errors: list[Exception] = []
        self.operations = Operations(self.errors.append)
        self.gates: dict[str, asyncio.Event] = {}
        self.clean_up = asyncio.Event()
        """Cancelled work has cleaned up only once this is set."""

    def work(self, name: str) -> Callable[[], Awaitable[None]]:
        self.gates[name] = asyncio.Event()

        async def run() -> None:
            self.log.append(f"{name} begins")
            try:
                await self.gates[name].wait()
                self.log.append(f"{name} ends")
            except asyncio.CancelledError:
                await self.clean_up.wait()
                self.log.append(f"{name} cleaned up")
                raise

        return run

    async def until(self, entry: str) -> None:
        async with asyncio.timeout(5):
            while entry not in self.log:  # noqa: ASYNC110  nothing signals it
                await asyncio.sleep(0)

    async def idle(self) -> None:
        """Give everything that could run the time to do so."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def made() -> AsyncIterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.clean_up.set()
    async with asyncio.timeout(5):
        await recorder.operations.aclose()


async def test_patient_operations_wait_their_turn_in_order(made: Recorder) -> None:
    for name in "abc":
        made.operations.patient(made.work(name))
    await made.idle()
    assert made.log == ["a begins"]
    for name in "bca":
        made.gates[name].set()
    await made.operations.settled()
    assert made.log == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


async def test_an_urgent_one_cancels_what_runs_and_what_waits(made: Recorder) -> None:
    made.clean_up.set()
    made.operations.patient(made.work("a"))
    made.operations.patient(made.work("b"))
    await made.until("a begins")
    made.operations.urgent(made.work("c"))
    await made.until("c begins")
    made.gates["c"].set()
    await made.operations.settled()
    assert made.log == ["a begins", "a cleaned up", "c begins", "c ends"]
    assert made.errors == []


async def test_an_urgent_one_is_at_work_until_it_has_ended(made: Recorder) -> None:
    made.operations.patient(made.work("a"))
    await made.until("a begins")
    hurried = [made.operations.hurried]
    made.clean_up.set()
    made.operations.urgent(made.work("b"))
    hurried.append(made.operations.hurried)
    await made.until("b begins")
    made.gates["b"].set()
    await made.operations.settled()
    assert [*hurried, made.operations.hurried] == [False, True, False]


async def test_the_next_one_begins_only_after_the_clean_up(made: Recorder) -> None:
    made.operations.urgent(made.work("a"))
    await made.until("a begins")
    made.operations.urgent(made.work("b"))
    await made.idle()
    assert made.log == ["a begins"]
    made.clean_up.set()
    await made.until("b begins")
    assert made.log == ["a begins", "a cleaned up", "b begins"]


async def test_cancelling_again_does_not_break_off_a_clean_up(made: Recorder) -> None:
    made.operations.urgent(made.work("a"))
    await made.until("a begins")
    for name in "bcd":
        made.operations.urgent(made.work(name))
        await made.idle()
    made.clean_up.set()
    await made.until("d begins")
    assert made.log == ["a begins", "a cleaned up", "d begins"]


async def test_urgent_ones_in_a_row_run_only_the_last(made: Recorder) -> None:
    for name in "abc":
        made.operations.urgent(made.work(name))
    await made.until("c begins")
    assert made.log == ["c begins"]


async def test_a_patient_one_after_an_urgent_one_runs_behind_it(made: Recorder) -> None:
    made.operations.urgent(made.work("a"))
    made.operations.patient(made.work("b"))
    made.gates["b"].set()
    await made.idle()
    assert made.log == ["a begins"]
    made.gates["a"].set()
    await made.operations.settled()
    assert made.log[2:] == ["b begins", "b ends"]


@pytest.mark.parametrize(
    "error",
    [
        UsageError("no"),
        ServerGone("lost"),
        ValueError("x"),
        ExceptionGroup("two", [OSError("y")]),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_exception_reaches_the_handler_and_the_next_runs(
    made: Recorder, error: Exception
) -> None:
    async def fail() -> None:
        raise error

    made.operations.patient(fail)
    made.operations.patient(made.work("a"))
    made.gates["a"].set()
    await made.operations.settled()
    assert made.errors == [error]
    assert made.log == ["a begins", "a ends"]


async def test_what_fails_while_it_cleans_up_is_reported_too(made: Recorder) -> None:
    began = asyncio.Event()

    async def fail() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise OSError("disk full")

    made.operations.patient(fail)
    await began.wait()
    made.operations.urgent(made.work("a"))
    await made.until("a begins")
    assert [str(error) for error in made.errors] == ["disk full"]


async def test_closing_waits_until_everything_has_cleaned_up(made: Recorder) -> None:
    made.operations.patient(made.work("a"))
    made.operations.patient(made.work("b"))
    await made.until("a begins")
    closing = asyncio.create_task(made.operations.aclose())
    await made.idle()
    assert not closing.done()
    assert made.log == ["a begins"]
    made.clean_up.set()
    async with asyncio.timeout(5):
        await closing
    assert made.log == ["a begins", "a cleaned up"]


async def test_nothing_at_work_is_settled_and_closed_at_once(made: Recorder) -> None:
    async with asyncio.timeout(1):
        await made.operations.settled()
        await made.operations.aclose()
    assert (made.log, made.errors) == ([], [])


async def test_settled_waits_for_what_is_begun_meanwhile(made: Recorder) -> None:
    async def again() -> None:
        made.operations.patient(made.work("late"))
        made.gates["late"].set()

    made.operations.patient(again)
    await made.operations.settled()
    assert made.log == ["late begins", "late ends"]


async def test_nothing_begins_once_it_is_closed(made: Recorder) -> None:
    made.operations.patient(made.work("a"))
    await made.until("a begins")
    closing = asyncio.create_task(made.operations.aclose())
    await made.idle()
    for command in (made.operations.urgent, made.operations.patient):
        with pytest.raises(UsageError, match="closed"):
            command(made.work("late"))
    made.clean_up.set()
    await closing
    assert made.log == ["a begins", "a cleaned up"]
