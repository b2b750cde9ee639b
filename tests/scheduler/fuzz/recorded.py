"""A random cluster with a mind of its own: what it was told, and what is true."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from cluster import objects
from cluster.kinds import POD, Kind, by_api
from cluster.port import Obj, WatchEvent
from scheduler.cycle import Cycle
from scheduler.snapshot import Offline, Snapshot, bound

NOW = 1_000_000.0
ENDED = ("Succeeded", "Failed")


class Broken(AssertionError):
    """Something that must hold does not."""


class Recorded(Offline):
    """Takes decisions in as a cluster with its own mind: it refuses some, and lets evicted pods linger."""

    def __init__(self, objs: list[Obj], conf: str, random: Random) -> None:
        self.truth: dict[tuple[Kind, str], Obj] = {}
        super().__init__(Snapshot.of(deepcopy(objs), conf), now=NOW)
        self.random = random
        for obj in objs:
            self.truth[_key(obj)] = obj

    def apply(self, what: str, obj: Obj) -> None:
        """An event, to the cache and to the truth."""
        kind, key = _key(obj)
        if what == "DELETED":
            self.truth.pop((kind, key), None)
        else:
            self.truth[kind, key] = obj
        self.cache.apply(WatchEvent(what, kind, deepcopy(obj)))

    def _modify(self, kind: Kind, obj: Obj) -> None:
        self.apply("MODIFIED", obj)

    def pods(self) -> list[Obj]:
        return [obj for (kind, _), obj in self.truth.items() if kind == POD]

    def all(self, kind: Kind) -> list[Obj]:
        return [obj for (each, _), obj in self.truth.items() if each == kind]

    def settle(self, done: Cycle, *, failing: float) -> None:
        """Carry decisions out, some in vain."""
        binds, evictions = [], []
        for binding in done.binds:
            if self.random.random() < failing:
                self.cache.bind_failed(binding.uid)
            else:
                binds.append(binding)
        for eviction in done.evictions:
            if self.random.random() < failing:
                self.cache.evict_failed(eviction.uid)
            else:
                evictions.append(eviction)
        for binding in binds:
            self._supply(binding, done.supplies.get(binding.uid))
            pod = bound(self.truth[POD, f"{binding.namespace}/{binding.name}"], binding.node, binding.annotations)
            self.apply("MODIFIED", pod)
            if self.random.random() < 0.7:
                self.apply("MODIFIED", {**pod, "status": {"phase": "Running"}})
        for eviction in evictions:
            pod = self.truth[POD, f"{eviction.namespace}/{eviction.name}"]
            if self.random.random() < 0.5:
                self.apply("DELETED", pod)
            else:
                self.apply("MODIFIED", leaving(pod))
        done.binds, done.evictions = [], []
        self.take_in(done)


def leaving(pod: Obj) -> Obj:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": objects.stamp(NOW)}}


def _key(obj: Obj) -> tuple[Kind, str]:
    kind = by_api(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return kind, objects.key(obj)
