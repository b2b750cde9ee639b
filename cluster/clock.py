"""Time as an argument: wall time, wall time run faster, and time that moves only when told to."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the Unix epoch, as the cluster counts them."""

    def now(self) -> float:
        """The present instant in seconds."""
        ...

    def real(self, seconds: float) -> float:
        """How many seconds of wall time pass while `seconds` of this clock do (for waits and time-outs)."""
        ...


class SystemClock:
    """Wall time."""

    def now(self) -> float:
        return time.time()

    def real(self, seconds: float) -> float:
        return seconds


class ScaledClock:
    """Wall time that runs `speed` times faster, counted from the moment of creation."""

    def __init__(self, speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self._speed = speed
        self._start_wall = time.time()
        self._start = time.monotonic()

    def now(self) -> float:
        return self._start_wall + (time.monotonic() - self._start) * self._speed

    def catch_up(self, instant: float) -> None:
        """Go on from an instant that has passed already, as the objects of an earlier run say; never back."""
        self._start_wall += max(0.0, instant - self.now())

    def real(self, seconds: float) -> float:
        return seconds / self._speed


class ManualClock:
    """Time that stands still until `advance`; for tests, scenarios and simulations."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def real(self, seconds: float) -> float:
        return 0.0

    def advance(self, seconds: float) -> None:
        """Move forward; time never runs backwards."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._now += seconds
