"""Pauses between writes that only count: many small changes of one object make one write, the first of them at once."""

from __future__ import annotations

from math import inf


class Rests:
    """At most one such write an object in `seconds` of the cluster's time; 0: no pauses."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._last: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def must_wait(self, key: str, now: float) -> bool:
        """Whether a write that only counts has to wait; it is due then when the pause is over."""
        due = self._last.get(key, -inf) + self._seconds
        if now >= due:
            return False
        self._due[key] = due
        return True

    def written(self, key: str, now: float) -> None:
        """Something was written, whatever it was."""
        self._due.pop(key, None)
        if self._seconds:
            self._last[key] = now

    def settled(self, key: str) -> None:
        """Nothing is left to be written."""
        self._due.pop(key, None)

    def forget(self, key: str) -> None:
        """It is gone, or has to be said anew."""
        self._due.pop(key, None)
        self._last.pop(key, None)

    def due(self, now: float) -> list[str]:
        """The keys whose pause is over."""
        return [key for key, at in self._due.items() if at <= now]

    def earliest(self) -> float:
        """When the first pause is over; infinity when nothing waits."""
        return min(self._due.values(), default=inf)
