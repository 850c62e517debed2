from __future__ import annotations

from dataclasses import replace

import pytest

from spectui.core.bet.estimates import BetReading
from spectui.core.verdict.verdict import Outcome, Verdict
from spectui.core.views.sessions import (
    disturbed,
    disturbing,
    mark_of,
    session_label,
    shared_devices,
    sharing_sentence,
)
from spectui.core.views.snapshot import (
    ServerState,
    ServerView,
    SessionMark,
    SharedDevice,
    Snapshot,
    TrafficState,
)

CPU, GPU0, GPU1 = "the CPU", "GPU 0", "GPU 1"
RUNNING = Snapshot(
    server=ServerView(state=ServerState.RUNNING, owned=True, devices=(CPU,)),
    traffic=TrafficState.ON,
    bet=BetReading(tokens_per_second=18.04, live_tokens_per_second=21.0),
    verdict=Verdict(outcome=Outcome.LOSING),
)


def mark(
    number: int, *devices: str, sending: bool = False, owned: bool = True, measuring: bool = False
) -> SessionMark:
    return SessionMark(
        number=number, label="p", devices=devices, sending=sending, owned=owned, measuring=measuring
    )


def test_the_mark_of_a_running_session() -> None:
    assert mark_of(RUNNING, number=2, label="pair", front=True) == SessionMark(
        number=2,
        label="pair",
        front=True,
        state=ServerState.RUNNING,
        owned=True,
        tokens_per_second=18.0,
        outcome=Outcome.LOSING,
        sending=True,
        devices=(CPU,),
    )


@pytest.mark.parametrize(
    ("bet", "speed"),
    [
        (BetReading(), None),
        (BetReading(live_tokens_per_second=21.04), 21.0),
        (BetReading(tokens_per_second=0.04), 0.0),
    ],
)
def test_an_unknown_speed_is_none_and_the_live_one_stands_in(bet: BetReading, speed: float | None) -> None:
    assert mark_of(replace(RUNNING, bet=bet), number=1, label="", front=False).tokens_per_second == speed


@pytest.mark.parametrize(
    ("traffic", "sending"),
    [(TrafficState.OFF, False), (TrafficState.WARMUP, True), (TrafficState.BASELINE, True)],
)
def test_whatever_loads_the_device_counts_as_sending(traffic: TrafficState, sending: bool) -> None:
    assert mark_of(replace(RUNNING, traffic=traffic), number=1, label="", front=False).sending is sending


def test_a_server_that_is_down_has_no_device_but_its_comparison_has() -> None:
    down = Snapshot(server=ServerView(state=ServerState.FAILED, owned=True, devices=(CPU,)))
    assert mark_of(down, number=1, label="", front=False).devices == ()
    lent = mark_of(down, number=1, label="", front=False, borrowed=(GPU0,))
    assert (lent.devices, lent.sending) == ((GPU0,), True)


@pytest.mark.parametrize(
    ("marks", "shared"),
    [
        ((), ()),
        ((mark(1, CPU, sending=True),), ()),
        ((mark(1, CPU, sending=True), mark(2, GPU0, sending=True)), ()),
        ((mark(1, GPU0, sending=True), mark(2, GPU1, sending=True)), ()),
        ((mark(1, CPU, sending=True), mark(2, CPU, sending=True, owned=False)), ()),
        ((mark(1, CPU), mark(2, CPU)), ((CPU, (1, 2), False),)),
        ((mark(1, CPU, sending=True), mark(2, CPU)), ((CPU, (1, 2), False),)),
        ((mark(1, CPU, sending=True), mark(2, CPU, sending=True)), ((CPU, (1, 2), True),)),
        (
            (mark(1, CPU, sending=True), mark(2, CPU), mark(3, CPU, sending=True)),
            ((CPU, (1, 3), True),),
        ),
        (
            (mark(1, CPU, GPU0), mark(2, GPU0, sending=True), mark(3, CPU), mark(4, GPU0, sending=True)),
            ((CPU, (1, 3), False), (GPU0, (2, 4), True)),
        ),
    ],
)
def test_shared_devices(
    marks: tuple[SessionMark, ...], shared: tuple[tuple[str, tuple[int, ...], bool], ...]
) -> None:
    assert shared_devices(marks) == tuple(
        SharedDevice(device=device, numbers=numbers, disturbed=disturbed)
        for device, numbers, disturbed in shared
    )


def test_what_sharing_means() -> None:
    shared = SharedDevice(device=CPU, numbers=(1, 2), disturbed=True)
    assert sharing_sentence(shared) == "1 and 2 share the CPU: their speeds disturb each other"
    several = SharedDevice(device=GPU1, numbers=(1, 3, 9), disturbed=False)
    assert sharing_sentence(several).startswith("1, 3 and 9 share GPU 1: send to one at a time")


@pytest.mark.parametrize(
    ("name", "url", "label"),
    [
        ("code-draft", None, "code-draft"),
        ("/home/me/p/pair.toml", None, "pair"),
        ("C:\\p\\pair.toml", None, "pair"),
        ("remote", "http://h:1", "remote"),
        (None, "https://host:8080/", "host:8080"),
        (None, None, "empty"),
    ],
)
def test_labels(name: str | None, url: str | None, label: str) -> None:
    assert session_label(name, url) == label


@pytest.mark.parametrize(
    ("marks", "devices", "said"),
    [
        ((), (CPU,), ""),
        ((mark(1, CPU, sending=True), mark(2, CPU)), (CPU,), ""),
        ((mark(1, CPU), mark(2, GPU0, sending=True)), (CPU,), ""),
        ((mark(1, CPU), mark(2, CPU, sending=True, owned=False)), (CPU,), ""),
        ((mark(1), mark(2, CPU, sending=True)), (), ""),
        (
            (mark(1), mark(2, CPU, sending=True)),
            (CPU,),
            "session 2 computes on the CPU too, which spoils what is measured here: stop that first (2 and space)",
        ),
        (
            (mark(1, GPU0, CPU), mark(2, CPU, sending=True), mark(3, CPU), mark(4, CPU, sending=True)),
            (GPU0, CPU),
            (
                "sessions 2 and 4 compute on the CPU too, which spoils what is measured here: "
                "stop that first (2 and space, 4 and space)"
            ),
        ),
    ],
)
def test_who_disturbs_the_first_session(
    marks: tuple[SessionMark, ...], devices: tuple[str, ...], said: str
) -> None:
    assert disturbing(marks, 1, devices) == said


def test_whose_measurement_the_first_session_would_spoil() -> None:
    measures = mark(2, CPU, sending=True, measuring=True)
    assert disturbed((mark(1), measures), 1, (GPU0, CPU)) == (
        "session 2 measures on the CPU, and traffic here would spoil that: wait until it is done"
    )
    assert disturbed((mark(1), measures), 2, (CPU,)) == ""
    assert disturbed((mark(1), measures), 1, (GPU0,)) == ""
    assert disturbed((mark(1), mark(2, CPU, sending=True)), 1, (CPU,)) == ""
