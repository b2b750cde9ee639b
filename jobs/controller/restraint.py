"""Creations that a cluster refuses for as long as something lasts: a quota that is used up, a namespace that is ending.

They are tried again ever later, whatever else happens to the job meanwhile, and never count towards its end.
"""

from __future__ import annotations

import re

from cluster.errors import Forbidden

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0

_QUOTA = re.compile(r"exceeded quota: ([a-z0-9.-]+)")
_ENDING = "because it is being terminated"


def quota_of(error: Exception) -> str:
    """The name of the ResourceQuota that refused; empty when it was something else. A server says it in words alone."""
    found = _QUOTA.search(str(error)) if isinstance(error, Forbidden) else None
    return found[1] if found else ""


def is_ending(error: Exception) -> bool:
    """Whether nothing can be made because the namespace is being deleted."""
    return isinstance(error, Forbidden) and _ENDING in str(error)


class Restraint:
    """Until when what was refused is not tried again, by key; each refusal in a row doubles the pause. Keys are worked by one
    thread at a time."""

    def __init__(self) -> None:
        self._pauses: dict[str, tuple[float, float]] = {}

    def left(self, key: str, now: float) -> float:
        """Seconds that are still to be waited."""
        _, until = self._pauses.get(key, (0.0, now))
        return max(until - now, 0.0)

    def refused(self, key: str, now: float) -> float:
        """It was refused once more; in how many seconds to try again."""
        last, _ = self._pauses.get(key, (FIRST_SECONDS / 2, 0.0))
        pause = min(last * 2, LONGEST_SECONDS)
        self._pauses[key] = pause, now + pause
        return pause

    def holds(self, key: str) -> bool:
        """Whether the last try was refused."""
        return key in self._pauses

    def clear(self, key: str) -> None:
        """It went well, or is wanted no more."""
        self._pauses.pop(key, None)
