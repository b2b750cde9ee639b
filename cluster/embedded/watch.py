"""A watch over the embedded store: what is there, SYNCED, then changes, filtered by namespace and selectors.

It remembers what it has shown. So an object that begins or ceases to match arrives as ADDED or DELETED, and a consumer
that was too slow for the store's history gets the difference to the present instead of holding anything back.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from cluster.embedded.journal import Journal
from cluster.embedded.memory import Change, Key, Memory, key_of
from cluster.kinds import Kind
from cluster.port import Obj, WatchEvent
from cluster.selectors import FieldSelector, Selector

_STRIDE = 2_000


class StoreWatch:
    """One watch; safe for several readers, each event goes to one of them."""

    def __init__(
        self,
        journal: Journal,
        memory: Memory,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: Selector | None = None,
        fields: FieldSelector | None = None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        self.kinds = frozenset(kinds)
        self._order = tuple(dict.fromkeys(kinds))
        self._journal, self._memory = journal, memory
        self._namespace, self._labels, self._fields = namespace, labels or Selector(), fields or FieldSelector()
        self._selects = bool(namespace or self._labels.requirements or self._fields.conditions)
        self._notify = notify
        self._guard = threading.Lock()
        self._news = threading.Event()
        self._closed = False
        self._shown: dict[tuple[Kind, Key], Obj] = {}
        self._ready: deque[WatchEvent] = deque()
        self._position = 0
        journal.listen(self)
        self._list()
        self._ready.append(WatchEvent("SYNCED", None, {}))
        self.wake()

    def wake(self) -> None:
        """Called by the journal: there may be news."""
        if not self._news.is_set():
            self._news.set()
        if self._notify is not None:
            self._notify()

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event within `timeout` wall seconds, or None."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._guard:
                if self._closed:
                    return None
                self._news.clear()
                if not self._ready:
                    self._read_on()
                if self._ready:
                    event = self._ready.popleft()
                    self._news.set()  # there may be more, for another reader too
                    return event
            if not self._news.wait(None if until is None else max(0.0, until - time.monotonic())):
                return None

    def drain(self) -> list[WatchEvent]:
        """All events that are waiting."""
        with self._guard:
            if self._closed:
                return []
            self._news.clear()
            while self._read_on():
                pass
            events = list(self._ready)
            self._ready.clear()
            return events

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed:
            event = self.get()
            if event is not None:
                yield event

    def close(self) -> None:
        """Stop, and let blocked readers go."""
        self._closed = True
        self._journal.leave(self)
        self._news.set()

    def _read_on(self) -> bool:
        """Take the next stretch of the line; False when there was none."""
        found = self._journal.since(self._position, _STRIDE)
        if found is None:
            self._list()
            return True
        changes, self._position = found
        for change in changes:
            if change.kind in self.kinds:
                self._take(change)
        return bool(changes)

    def _take(self, change: Change) -> None:
        place = (change.kind, key_of(change.obj))
        shown = self._shown.get(place)
        if change.type == "DELETED" or not self._matches(place[1], change.obj):
            if shown is not None and _version(shown) < change.version:
                del self._shown[place]
                self._ready.append(WatchEvent("DELETED", change.kind, change.obj))
        else:
            self._show(place, shown, change.obj)

    def _show(self, place: tuple[Kind, Key], shown: Obj | None, obj: Obj) -> None:
        if shown is None:
            self._ready.append(WatchEvent("ADDED", place[0], obj))
        elif _version(shown) < _version(obj):
            self._ready.append(WatchEvent("MODIFIED", place[0], obj))
        else:
            return
        self._shown[place] = obj

    def _list(self) -> None:
        """Bring what was shown up to the present, as events."""
        present, self._position = self._journal.settled_state(self._present)
        for place, shown in list(self._shown.items()):
            obj = present.get(place)
            if obj is None or obj["metadata"]["uid"] != shown["metadata"]["uid"]:
                del self._shown[place]
                self._ready.append(WatchEvent("DELETED", place[0], shown))
        for place, obj in present.items():
            self._show(place, self._shown.get(place), obj)

    def _present(self) -> dict[tuple[Kind, Key], Obj]:
        return {
            (kind, key_of(obj)): obj
            for kind in self._order
            for obj in self._memory.ordered(kind)
            if self._matches(key_of(obj), obj)
        }

    def _matches(self, key: Key, obj: Obj) -> bool:
        if not self._selects:
            return True
        if self._namespace and key[0] != self._namespace:
            return False
        return self._labels.matches(obj["metadata"].get("labels") or {}) and self._fields.matches(obj)


def _version(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])
