"""A local copy of some kinds of objects, fed by one watch, with indexes: what controllers read instead of listing.

The copy may lag behind the cluster. Whoever writes tells the informer what came back (`observe`, `forget`), so that it never
falls behind the writer's own doing: an older event that arrives later is dropped by its resourceVersion.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster import objects
from cluster.kinds import Kind
from cluster.port import Cluster, Obj, Watch

IndexFunction = Callable[[Obj], Iterable[str]]

_TOMBSTONES = 20_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after; `new` is None when it went, `old` when it came."""

    kind: Kind
    old: Obj | None
    new: Obj | None

    @property
    def object(self) -> Obj:
        """The object, as it is or as it was last."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


class Informer:
    """Objects by key (`namespace/name`; `/name` without a namespace) and by index. Every method is safe from any thread."""

    def __init__(self, cluster: Cluster, kinds: Sequence[Kind], indexes: Mapping[tuple[Kind, str], IndexFunction]) -> None:
        self._cluster = cluster
        self._kinds = tuple(kinds)
        self._functions: dict[Kind, list[tuple[str, IndexFunction]]] = defaultdict(list)
        for (kind, name), function in indexes.items():
            self._functions[kind].append((name, function))
        self._objects: dict[Kind, dict[str, Obj]] = {kind: {} for kind in kinds}
        self._indexes: dict[tuple[Kind, str], dict[str, dict[str, None]]] = {index: {} for index in indexes}
        self._own: list[Change] = []
        self._gone: set[str] = set()
        self._gone_order: deque[str] = deque()
        self._lock = threading.RLock()
        self._watch: Watch | None = None
        self._synced = False
        self._seen: dict[str, int] = {}
        self._mine = threading.local()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What it holds."""
        return self._kinds

    @property
    def synced(self) -> bool:
        """Whether everything that was there at the start has been seen."""
        return self._synced

    def start(self, notify: Callable[[], None] | None = None) -> None:
        """Begin to watch; `notify` is called whenever `pump` has something to do."""
        self._watch = self._cluster.watch(self._kinds, notify=notify)

    def stop(self) -> None:
        """End the watch; the copy stays as it is."""
        if self._watch is not None:
            self._watch.close()

    def pump(self) -> list[Change]:
        """Apply the events that wait, and say what changed since the last time, by ourselves or by others."""
        assert self._watch is not None, "start() comes first"
        changes = []
        for event in self._watch.drain():
            if event.type == "SYNCED":
                self._synced = True
            elif event.kind is not None:
                self._note(self._seen, event.kind, event.object)
                try:
                    change = self._apply(event.kind, event.object, gone=event.type == "DELETED")
                except Exception:  # one object that makes no sense must not hide the others
                    log.exception("%s %s is not taken in", event.kind, objects.key(event.object))
                    continue
                if change is not None:
                    changes.append(change)
        with self._lock:
            own, self._own = self._own, []
        return [*own, *changes]

    def observe(self, kind: Kind, obj: Obj) -> None:
        """Take in an object that a write of our own returned."""
        if (versions := getattr(self._mine, "versions", None)) is not None:
            self._note(versions, kind, obj)
        self._take_in(kind, obj, gone=False)

    @contextlib.contextmanager
    def recording(self) -> Iterator[dict[str, int]]:
        """The newest version of each kind that this thread observes inside: what it has written."""
        versions: dict[str, int] = {}
        self._mine.versions = versions
        try:
            yield versions
        finally:
            del self._mine.versions

    def wait_for(self, versions: Mapping[str, int], seconds: float) -> bool:
        """Wait until the watch has shown these versions of kinds, as `recording` gave them; whether it has, within the time."""
        end = time.monotonic() + seconds
        while any(self._seen.get(kind, 0) < version for kind, version in versions.items()):
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def forget(self, kind: Kind, obj: Obj) -> None:
        """Drop an object whose deletion by us is complete."""
        self._take_in(kind, obj, gone=True)

    def get(self, kind: Kind, key: str) -> Obj | None:
        """One object, only to read, or None."""
        with self._lock:
            return self._objects[kind].get(key)

    def all(self, kind: Kind) -> list[Obj]:
        """All objects of a kind, only to read."""
        with self._lock:
            return list(self._objects[kind].values())

    def by(self, kind: Kind, index: str, value: str) -> list[Obj]:
        """The objects of a kind that an index files under a value."""
        with self._lock:
            found = self._objects[kind]
            return [found[key] for key in self._indexes[kind, index].get(value, ())]

    @staticmethod
    def _note(versions: dict[str, int], kind: Kind, obj: Obj) -> None:
        name, version = str(kind), objects.resource_version(obj)
        if version > versions.get(name, 0):
            versions[name] = version

    def _take_in(self, kind: Kind, obj: Obj, *, gone: bool) -> None:
        with self._lock:
            change = self._apply(kind, obj, gone=gone) if kind in self._objects else None
            if change is not None:
                self._own.append(change)

    def _apply(self, kind: Kind, obj: Obj, *, gone: bool) -> Change | None:
        key, uid = objects.key(obj), objects.uid(obj)
        with self._lock:
            old = self._objects[kind].get(key)
            if gone:
                self._bury(uid)
                if old is None or objects.uid(old) != uid:
                    return None
                self._file(kind, key, old, None)
                return Change(kind, obj if objects.resource_version(obj) > objects.resource_version(old) else old, None)
            if uid in self._gone or (old is not None and objects.resource_version(obj) <= objects.resource_version(old)):
                return None
            self._file(kind, key, old, obj)
            return Change(kind, old, obj)

    def _file(self, kind: Kind, key: str, old: Obj | None, new: Obj | None) -> None:
        for name, function in self._functions[kind]:
            index = self._indexes[kind, name]
            was, now = (tuple(function(obj)) if obj is not None else () for obj in (old, new))
            if was == now:
                continue
            for value in was:
                filed = index.get(value)
                if filed is not None:
                    filed.pop(key, None)
                    if not filed:
                        del index[value]
            for value in now:
                index.setdefault(value, {})[key] = None
        if new is None:
            self._objects[kind].pop(key, None)
        else:
            self._objects[kind][key] = new

    def _bury(self, uid: str) -> None:
        if uid not in self._gone:
            self._gone.add(uid)
            self._gone_order.append(uid)
            if len(self._gone_order) > _TOMBSTONES:
                self._gone.discard(self._gone_order.popleft())
