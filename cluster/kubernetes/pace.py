"""How fast requests are made: a rate of writes that is not to be passed, and the pauses that a server asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MOST_PAUSES = 4
_LONGEST_PAUSE = 5.0
_BURST_SECONDS = 0.2
_BUDGET = b'"DisruptionBudget"'


class Pace:
    """`rate` writes a second at most, over any while; short bursts pass. 0: as fast as answers come. Safe from any thread."""

    def __init__(
        self, rate: float = 0.0, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._each = 1.0 / rate if rate > 0 else 0.0
        self._now, self._sleep = now, sleep
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self) -> None:
        """Return when the next write may be made."""
        if (pause := self.reserve()) > 0:
            self._sleep(pause)

    def reserve(self) -> float:
        """Take the next turn; the seconds until it comes."""
        if not self._each:
            return 0.0
        with self._lock:
            now = self._now()
            at = max(self._next, now - _BURST_SECONDS)
            self._next = at + self._each
        return max(0.0, at - now)


def asked_pause(status: int, retry_after: str | None, said: bytes = b"") -> float | None:
    """Seconds after which the same request may be made again, since the server did nothing of it; None: it was answered.

    A refused eviction is an answer: a disruption budget says so, and time alone does not change it.
    """
    if status not in (429, 503) or not retry_after or _BUDGET in said:
        return None
    try:
        return min(max(float(retry_after), 0.1), _LONGEST_PAUSE)
    except ValueError:
        return None
