"""What the embedded store holds: objects by kind and key, and the indexes that deletion needs.

Stored objects are never changed, only replaced, so a reader may keep what it was given. The caller holds the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from cluster.kinds import Kind
from cluster.port import Obj

Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-wide object is empty."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the store: what an object was (None: nothing) and what it is; `obj` of a DELETED is its last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: Kind
    obj: Obj
    old: Obj | None

    @property
    def version(self) -> int:
        """The resourceVersion of this step; every step has one of its own."""
        return int(self.obj["metadata"]["resourceVersion"])


def key_of(obj: Obj) -> Key:
    """The key under which an object is kept."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


class Memory:
    """Objects by kind and key; `dependents` by the uid of an owner, `places` by the object's own uid."""

    def __init__(self) -> None:
        self._kinds: defaultdict[Kind, dict[Key, Obj]] = defaultdict(dict)
        self._ordered: dict[Kind, list[Key]] = {}
        self._dependents: defaultdict[str, dict[tuple[Kind, Key], None]] = defaultdict(dict)
        self._per_namespace: Counter[str] = Counter()
        self.places: dict[str, tuple[Kind, Key]] = {}

    def find(self, kind: Kind, key: Key) -> Obj | None:
        """The object, or None."""
        return self._kinds[kind].get(key)

    def by_uid(self, uid: str) -> tuple[Kind, Obj] | None:
        """The object of a uid, or None."""
        place = self.places.get(uid)
        return (place[0], self._kinds[place[0]][place[1]]) if place else None

    def all(self, kind: Kind) -> dict[Key, Obj]:
        """Every object of a kind; only to read, and only while the lock is held."""
        return self._kinds[kind]

    def ordered(self, kind: Kind, after: Key | None = None) -> Iterator[Obj]:
        """Objects of a kind by namespace and name, those behind `after` only."""
        keys = self._ordered.get(kind)
        if keys is None:
            keys = self._ordered[kind] = sorted(self._kinds[kind])
        held = self._kinds[kind]
        start = bisect_right(keys, after) if after is not None else 0
        return (held[keys[position]] for position in range(start, len(keys)))

    def dependents(self, uid: str) -> list[tuple[Kind, Obj]]:
        """Objects that name this uid among their owners, oldest first."""
        return [(kind, self._kinds[kind][key]) for kind, key in self._dependents.get(uid, ())]

    def any_dependent(self, uid: str, test: Callable[[Obj], bool]) -> bool:
        """Whether an object that names this uid among its owners passes a test; looks no further than the first that does."""
        return any(test(self._kinds[kind][key]) for kind, key in self._dependents.get(uid, ()))

    def inside(self, namespace: str) -> list[tuple[Kind, Obj]]:
        """Every object of a namespace."""
        if not self._per_namespace[namespace]:
            return []
        return [(kind, obj) for kind, held in self._kinds.items() for key, obj in held.items() if key[0] == namespace]

    def is_empty(self, namespace: str) -> bool:
        """Whether a namespace has nothing in it."""
        return not self._per_namespace[namespace]

    def put(self, kind: Kind, obj: Obj) -> None:
        """Keep an object in the place of the one of its key."""
        key = key_of(obj)
        held = self._kinds[kind]
        old = held.get(key)
        held[key] = obj
        if old is None:
            if kind in self._ordered:
                insort(self._ordered[kind], key)
            self._per_namespace[key[0]] += 1
        meta = obj["metadata"]
        if old is None or old["metadata"]["uid"] != meta["uid"]:
            self.places[meta["uid"]] = (kind, key)
        owners = meta.get("ownerReferences")
        before = old["metadata"].get("ownerReferences") if old is not None else None
        if owners is not before:
            self._unlink(kind, key, before)
            for owner in owners or ():
                self._dependents[owner["uid"]][kind, key] = None

    def remove(self, kind: Kind, obj: Obj) -> None:
        """Forget an object."""
        key = key_of(obj)
        gone = self._kinds[kind].pop(key)
        if kind in self._ordered:
            del self._ordered[kind][bisect_left(self._ordered[kind], key)]
        self._per_namespace[key[0]] -= 1
        self.places.pop(gone["metadata"]["uid"], None)
        self._unlink(kind, key, gone["metadata"].get("ownerReferences"))

    def undo(self, change: Change) -> None:
        """Take a change back; changes are taken back newest first."""
        if change.old is None:
            self.remove(change.kind, change.obj)
        else:
            self.put(change.kind, change.old)

    def _unlink(self, kind: Kind, key: Key, owners: list[Obj] | None) -> None:
        for owner in owners or ():
            found = self._dependents.get(owner["uid"])
            if found is not None:
                found.pop((kind, key), None)
                if not found:
                    del self._dependents[owner["uid"]]
