"""Events that wait for whoever watches: all of them while they are few, else of each object the newest."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from cluster.kinds import Kind
from cluster.objects import uid
from cluster.port import WatchEvent

EXACT = 4096
"""So many events wait as they came. Beyond, news of an object takes the place of what waits of it, so that a reader who stands
still costs at most one event an object more, however long."""


class Pending:
    """A queue of events between threads. Those of an object stay in order, and leave a reader with what is there now."""

    def __init__(self, exact: int = EXACT) -> None:
        self._exact = exact
        self._first: deque[WatchEvent] = deque()
        self._beyond: dict[tuple[Kind | None, str], WatchEvent] = {}
        self._condition = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._first) + len(self._beyond)

    def put(self, events: Sequence[WatchEvent]) -> None:
        """Add events."""
        with self._condition:
            for event in events:
                if not self._beyond and len(self._first) < self._exact:
                    self._first.append(event)
                else:
                    self._merge(event)
            self._condition.notify_all()

    def take(self, timeout: float | None = None) -> WatchEvent | None:
        """The first, waiting at most `timeout` seconds (None: for ever); None when nothing came, or after `close`."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not len(self) and not self._closed:
                if not self._condition.wait(None if end is None else max(0.0, end - time.monotonic())) and end is not None:
                    break
            if self._closed or not len(self):
                return None
            return self._first.popleft() if self._first else self._beyond.pop(next(iter(self._beyond)))

    def drain(self) -> list[WatchEvent]:
        """All."""
        with self._condition:
            events = [] if self._closed else [*self._first, *self._beyond.values()]
            self._first.clear()
            self._beyond.clear()
            return events

    def close(self) -> None:
        """Nothing more comes out."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _merge(self, event: WatchEvent) -> None:
        mark = event.kind, uid(event.object) if event.kind is not None else ""
        waiting = self._beyond.get(mark)
        if waiting is None or event.kind is None or waiting.type != "ADDED":
            self._beyond[mark] = event
        elif event.type == "DELETED":
            del self._beyond[mark]
        else:
            self._beyond[mark] = WatchEvent("ADDED", event.kind, event.object)
