"""A bounded time series: old points are merged in pairs, so that memory stays fixed over days."""

from __future__ import annotations

from spectui.core.snapshot import HistoryPoint


class BoundedSeries:
    """Points in order of time; when `capacity` is reached the older half is thinned to every second mean."""

    def __init__(self, capacity: int = 2400) -> None:
        self._capacity = max(8, capacity)
        self._points: list[HistoryPoint] = []
        self._frozen: tuple[HistoryPoint, ...] = ()

    def add(self, t: float, value: float) -> None:
        """Append one point; t in seconds must not go back."""
        self._points.append(HistoryPoint(t=t, tokens_per_second=value))
        if len(self._points) > self._capacity:
            half = len(self._points) // 4 * 2
            old, new = self._points[:half], self._points[half:]
            merged = [
                HistoryPoint(
                    t=(a.t + b.t) / 2, tokens_per_second=(a.tokens_per_second + b.tokens_per_second) / 2
                )
                for a, b in zip(old[::2], old[1::2], strict=False)
            ]
            self._points = merged + new
        self._frozen = ()

    def snapshot(self) -> tuple[HistoryPoint, ...]:
        """All points as one immutable value; the same object while nothing was added."""
        if not self._frozen and self._points:
            self._frozen = tuple(self._points)
        return self._frozen
