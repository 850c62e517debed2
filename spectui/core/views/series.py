"""A bounded time series that always spans the whole session: when it is full, its resolution halves."""

from __future__ import annotations

from spectui.core.views.snapshot import HistoryPoint


class BoundedSeries:
    """Points in order of time, each the mean of `stride` samples; at `capacity` all are joined in pairs."""

    def __init__(self, capacity: int = 2400) -> None:
        self._capacity = max(8, capacity + capacity % 2)
        self._stride = 1
        self._points: list[HistoryPoint] = []
        self._pending: list[HistoryPoint] = []
        self._frozen: tuple[HistoryPoint, ...] = ()

    def add(self, t: float, value: float) -> None:
        """Append one sample; t in seconds must not go back."""
        self._pending.append(HistoryPoint(t=t, tokens_per_second=value))
        if len(self._pending) == self._stride:
            self._points.append(_mean(self._pending))
            self._pending = []
        if len(self._points) == self._capacity:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [_mean(pair) for pair in pairs]
            self._stride *= 2
        self._frozen = ()

    def snapshot(self) -> tuple[HistoryPoint, ...]:
        """All points as one immutable value; the same object while nothing was added."""
        if not self._frozen and (self._points or self._pending):
            latest = [_mean(self._pending)] if self._pending else []
            self._frozen = (*self._points, *latest)
        return self._frozen


def _mean(points: list[HistoryPoint] | tuple[HistoryPoint, ...]) -> HistoryPoint:
    n = len(points)
    return HistoryPoint(
        t=sum(p.t for p in points) / n, tokens_per_second=sum(p.tokens_per_second for p in points) / n
    )
