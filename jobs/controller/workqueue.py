"""The work queue of the controllers: each key is worked by one worker at a time, and asked for twice is worked once.

The pattern of every Kubernetes controller: a key added while it is being worked is worked again afterwards; a key may be
added for later; a key that failed comes back after a delay that doubles. Time comes from the clock that is handed in.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from cluster.clock import Clock

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY = 0.005
LONGEST_DELAY = 60.0
_SHORTEST_WAIT = 0.001  # a clock that stands still must not make workers spin


class WorkQueue(Generic[Key]):
    """Keys that wait for a worker, in the order in which they came. Every method is safe from any thread."""

    def __init__(self, clock: Clock, *, first_delay: float = FIRST_DELAY, longest_delay: float = LONGEST_DELAY) -> None:
        self._clock = clock
        self._first, self._longest = first_delay, longest_delay
        self._ready: deque[Key] = deque()
        self._wanted: set[Key] = set()
        self._working: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._counter = 0
        self._closed = False
        self._condition = threading.Condition()

    def __len__(self) -> int:
        """Keys that could be worked now."""
        with self._condition:
            self._promote()
            return len(self._ready)

    def add(self, key: Key) -> None:
        """Ask for a key to be worked as soon as possible."""
        with self._condition:
            self._add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Ask for a key in `seconds` of the clock; the earliest of several such requests holds."""
        with self._condition:
            if seconds <= 0:
                self._add(key)
                return
            due = self._clock.now() + seconds
            if due < self._due.get(key, float("inf")):
                self._due[key] = due
                self._counter += 1
                heapq.heappush(self._heap, (due, self._counter, key))
                self._condition.notify()

    def retry(self, key: Key) -> int:
        """Ask for a key that failed, after a delay that doubles each time; how often it has failed now."""
        with self._condition:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(self._first * 2.0 ** min(failures - 1, 60), self._longest))
        return failures

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        with self._condition:
            self._failures.pop(key, None)

    def get(self, timeout: float | None = None) -> Key | None:
        """The next key, for this worker alone until it calls `done`.

        Waits at most `timeout` wall seconds; None when nothing came or the queue was closed.
        """
        with self._condition:
            self._promote()
            while not self._ready and not self._closed:
                wait = self._until_next(timeout)
                if not self._condition.wait(wait) and timeout is not None and (wait is None or wait >= timeout):
                    self._promote()
                    break
                self._promote()
            if self._closed or not self._ready:
                return None
            key = self._ready.popleft()
            self._wanted.discard(key)
            self._working.add(key)
            return key

    def done(self, key: Key) -> None:
        """This worker is finished with a key; if it was asked for meanwhile, it is ready again."""
        with self._condition:
            self._working.discard(key)
            if key in self._wanted:
                self._ready.append(key)
                self._condition.notify()

    def next_due(self) -> float | None:
        """When the earliest delayed key falls due, by the clock; None when none waits."""
        with self._condition:
            return min(self._due.values(), default=None)

    def close(self) -> None:
        """Let every waiting worker go."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _add(self, key: Key) -> None:
        self._due.pop(key, None)
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._working:
            self._ready.append(key)
            self._condition.notify()

    def _promote(self) -> None:
        """Move what has fallen due to the ready keys."""
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                self._add(key)

    def _until_next(self, timeout: float | None) -> float | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            return timeout
        wait = max(self._clock.real(self._heap[0][0] - self._clock.now()), _SHORTEST_WAIT)
        return wait if timeout is None else min(wait, timeout)
