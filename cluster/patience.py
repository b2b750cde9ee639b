"""Pauses of who tries again: each twice the last, up to a longest, so that what is away is neither forgotten nor pelted."""

from __future__ import annotations


class Patience:
    """Seconds of wall time. `first` may be told apart from nothing; `longest` is how late a cure is noticed."""

    def __init__(self, first: float = 0.1, longest: float = 10.0) -> None:
        self._first, self._longest = first, longest
        self._pause = first

    def next(self) -> float:
        """How long to wait after one more failure."""
        pause = self._pause
        self._pause = min(2 * pause, self._longest)
        return pause

    def reset(self) -> None:
        """Something was done: the next failure is the first again."""
        self._pause = self._first
