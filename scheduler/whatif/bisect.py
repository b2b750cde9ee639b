"""The smallest change that is enough, found in few runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def largest(low: int, high: int, try_: Callable[[int], T | None]) -> tuple[int, T] | None:
    """The largest number from `low` to `high` for which `try_` answers, with its answer; None when `low` has none.

    A number that is too large is thought to have only larger ones above it that are too large as well. What is returned was
    tried, whatever happens between.
    """
    found = try_(low) if low <= high else None
    if found is None:
        return None
    best = (low, found)
    while low < high:
        middle = (low + high + 1) // 2
        answer = try_(middle)
        if answer is None:
            high = middle - 1
        else:
            low, best = middle, (middle, answer)
    return best
