"""The strip of sessions: an instant of each -> its mark, and which of our own servers share or disturb a device.

The snapshot holds the result; the rules for it are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spectui.core.views.snapshot import ServerState, SessionMark, SharedDevice, Snapshot, TrafficState

MAX_SESSIONS: Final = 9
"""As many as there are number keys."""


def mark_of(
    instant: Snapshot, *, number: int, label: str, front: bool, borrowed: tuple[str, ...] = ()
) -> SessionMark:
    """The mark of a session. borrowed: devices that its A/B run or sweep has while the session's server is down."""
    server, bet = instant.server, instant.bet
    speed = bet.tokens_per_second if bet.tokens_per_second is not None else bet.live_tokens_per_second
    return SessionMark(
        number=number,
        label=label,
        front=front,
        state=server.state,
        owned=server.owned,
        tokens_per_second=None if speed is None else round(speed, 1),
        outcome=instant.verdict.outcome,
        sending=instant.traffic is not TrafficState.OFF or bool(borrowed),
        measuring=instant.traffic is TrafficState.BASELINE or bool(borrowed),
        devices=borrowed or (server.devices if server.state is ServerState.RUNNING else ()),
    )


def shared_devices(marks: Sequence[SessionMark]) -> tuple[SharedDevice, ...]:
    """Devices that two or more servers of ours compute on, in the order of the sessions."""
    names = dict.fromkeys(name for mark in marks if mark.owned for name in mark.devices)
    found = []
    for name in names:
        users = [mark for mark in marks if mark.owned and name in mark.devices]
        sending = [mark for mark in users if mark.sending]
        if len(users) > 1:
            disturbed = len(sending) > 1
            numbers = tuple(mark.number for mark in (sending if disturbed else users))
            found.append(SharedDevice(device=name, numbers=numbers, disturbed=disturbed))
    return tuple(found)


def sharing_sentence(shared: SharedDevice) -> str:
    """What that means for the reader."""
    who = f"{_listed(shared.numbers)} share {shared.device}"
    if shared.disturbed:
        return f"{who}: their speeds disturb each other"
    return f"{who}: send to one at a time, or their speeds disturb each other"


def disturbing(marks: Sequence[SessionMark], number: int, devices: Sequence[str]) -> str:
    """Who computes on one of these devices beside the session of that number, and how to end it; empty for nobody.

    devices: what that session computes on, or did last.
    """
    device, others = _beside([mark for mark in marks if mark.sending], number, devices)
    if not others:
        return ""
    end = ", ".join(f"{other} and space" for other in others)
    return (
        f"{_sessions(others, 'compute')} on {device} too, which spoils what is measured here: "
        f"stop that first ({end})"
    )


def disturbed(marks: Sequence[SessionMark], number: int, devices: Sequence[str]) -> str:
    """Whose measurement traffic of the session of that number would spoil, as `disturbing`; empty for nobody's."""
    device, others = _beside([mark for mark in marks if mark.measuring], number, devices)
    if not others:
        return ""
    return f"{_sessions(others, 'measure')} on {device}, and traffic here would spoil that: wait until it is done"


def _beside(marks: Sequence[SessionMark], number: int, devices: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """The first of these devices that other sessions of ours among the marks compute on, and their numbers."""
    for device in devices:
        others = [mark for mark in marks if mark.number != number and mark.owned and device in mark.devices]
        if others:
            return device, tuple(mark.number for mark in others)
    return "", ()


def _sessions(numbers: Sequence[int], verb: str) -> str:
    return f"session {numbers[0]} {verb}s" if len(numbers) == 1 else f"sessions {_listed(numbers)} {verb}"


def _listed(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def session_label(name: str | None, url: str | None) -> str:
    """What a session is called: its profile without folders and ending, else the address without the scheme."""
    if name:
        return name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].removesuffix(".toml")
    return url.split("://", 1)[-1].rstrip("/") if url else "empty"
