"""Pauses before writes that only count: many small changes of one object make one write, or go with the next that matters."""

from __future__ import annotations

from math import inf


class Rests:
    """A count that changed is written `seconds` later (in the cluster's time), with all that came until then; 0: at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._due: dict[str, float] = {}

    def left(self, key: str, now: float) -> float:
        """Seconds that a write that only counts has still to wait; 0: it is due. Asked first when the count has changed."""
        if not self._seconds:
            return 0.0
        return max(self._due.setdefault(key, now + self._seconds) - now, 0.0)

    def written(self, key: str) -> None:
        """Nothing waits any more: all was written, or has become what is written already, or its object is gone."""
        self._due.pop(key, None)

    def due(self, now: float) -> list[str]:
        """The keys whose pause is over."""
        return [key for key, at in self._due.items() if at <= now]

    def earliest(self) -> float:
        """When the first pause is over; infinity when nothing waits."""
        return min(self._due.values(), default=inf)
