"""What a change of a queue would do, from a run on the copy: who starts, waits longer or has to give way, and the shares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.display import quantity, resource_name
from cluster.port import Obj
from cluster.quantities import is_gpu
from portal.unblock import changes
from portal.unblock.copy import View, current
from portal.unblock.shown import Names, evicted_json, evicts_words
from scheduler.framework.record import EvictionRecord, QueueShare, Units
from scheduler.whatif import Played, compare

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """One queue's standing before and after, amounts in smallest units: what its jobs hold, what it deserves, its share."""

    name: str
    allocated: tuple[Units, Units]
    deserved: tuple[Units, Units]
    share: tuple[float, float]


@dataclass(slots=True)
class QueuePreview:
    """The difference that a change makes. Jobs are PodGroups by `namespace/name`, with the pods that start or do not.

    `reclaimed` is what queues (by name) would have to give back; `admits` are let into their queues, and start later.
    """

    queue: str
    starts: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    admits: list[str] = field(default_factory=list)
    evicted: list[EvictionRecord] = field(default_factory=list)
    reclaimed: dict[str, Counter[str]] = field(default_factory=dict)
    queues: list[QueueChange] = field(default_factory=list)
    version: int = 0
    age: float = 0.0
    milliseconds: float = 0.0

    @property
    def is_nothing(self) -> bool:
        """Whether nobody starts, waits or goes for it."""
        return not (self.starts or self.waits or self.evicted or self.admits)


def preview(queue: Obj) -> QueuePreview:
    """Ask the copy of this process's cluster what happens with a queue as it would be written."""
    with current().pinned() as view:
        return on(view, queue)


def on(view: View, queue: Obj) -> QueuePreview:
    """The same of one view."""
    began = time.perf_counter()
    before, after = view.baseline, view.play(changes.queue_changed(view, queue))
    found = between(view, before, after, str(queue["metadata"]["name"]))
    found.milliseconds = (time.perf_counter() - began) * 1000
    return found


def between(view: View, before: Played, after: Played, queue: str = "") -> QueuePreview:
    """The difference between two courses of one view, whatever was changed."""
    told = compare(before, after)
    found = QueuePreview(queue, version=view.version, age=view.age)
    found.starts = {uid: len(after.binds[uid]) for uid in told.starts}
    found.waits = {uid: len(before.binds[uid]) for uid in told.delayed}
    found.admits = sorted(uid for uid in after.admitted - before.admitted if uid not in found.starts)
    found.evicted = told.evicted
    for each in told.evicted:
        found.reclaimed.setdefault(each.victim_queue, Counter()).update(each.freed)
    found.queues = _queues(before, after)
    return found


def _queues(before: Played, after: Played) -> list[QueueChange]:
    """The queues of which anything is different, by name; shares are what they are once all of it has happened."""
    held = _held(before), _held(after)
    none = QueueShare()
    found = []
    for name in sorted(before.shares.keys() | after.shares.keys()):
        old, new = before.shares.get(name, none), after.shares.get(name, none)
        allocated = held[0].get(name, old.allocated), held[1].get(name, new.allocated)
        change = QueueChange(name, allocated, (old.deserved, new.deserved), (old.share, new.share))
        if allocated[0] != allocated[1] or old.deserved != new.deserved or abs(old.share - new.share) > 5e-4:
            found.append(change)
    return found


def _held(played: Played) -> Mapping[str, Units]:
    """What each queue holds at the end, as its share says."""
    return {
        name: {resource: units for resource, units in share.allocated.items() if units} for name, share in played.shares.items()
    }


@dataclass(frozen=True, slots=True)
class Line:
    """One resource of one queue, before and after, in words."""

    queue: str
    resource: str
    held: tuple[str, str]
    due: tuple[str, str]


def told(user: Any, found: QueuePreview) -> Json:
    """What the queue's page shows of a preview."""
    names = Names(user, {*found.starts, *found.waits, *found.admits, *(each.victim_job for each in found.evicted)})
    lines = []
    for each in found.queues:
        resources = {name for units in (*each.allocated, *each.deserved) for name in units if name != "pods"}
        for resource in sorted(resources, key=lambda name: (not is_gpu(name), name)):
            held, due = (tuple(units.get(resource, 0) for units in pair) for pair in (each.allocated, each.deserved))
            if held[0] != held[1] or due[0] != due[1]:
                lines.append(Line(each.name, resource_name(resource), _pair(held, resource), _pair(due, resource)))
    return {
        "found": found,
        "lines": lines,
        "starts": [(names.name(uid), names.job(uid), pods) for uid, pods in found.starts.items()],
        "waits": [(names.name(uid), names.job(uid), pods) for uid, pods in found.waits.items()],
        "admits": [(names.name(uid), names.job(uid), 0) for uid in found.admits],
        "evicts": evicts_words(names, found.evicted),
        "reclaimed": [(queue, [quantity(units, name) for name, units in amounts.items() if name != "pods" and units])
                      for queue, amounts in sorted(found.reclaimed.items())],
        "seconds": round(found.age),
    }  # fmt: skip


def _pair(units: tuple[int, ...], resource: str) -> tuple[str, str]:
    return quantity(units[0], resource), quantity(units[1], resource)


def as_json(user: Any, found: QueuePreview) -> Json:
    """A preview as data."""
    names = Names(user, {*found.starts, *found.waits, *found.admits, *(each.victim_job for each in found.evicted)})
    return {
        "queue": found.queue,
        "snapshot": {"version": found.version, "age_seconds": round(found.age, 1)},
        "milliseconds": round(found.milliseconds, 1),
        "starts": [names.as_json(uid) | {"pods": pods} for uid, pods in found.starts.items()],
        "waits": [names.as_json(uid) | {"pods": pods} for uid, pods in found.waits.items()],
        "admitted": [names.as_json(uid) for uid in found.admits],
        "evicted": evicted_json(names, found.evicted),
        "reclaimed": {queue: dict(amounts) for queue, amounts in found.reclaimed.items()},
        "queues": {
            each.name: {
                "before": {"allocated": each.allocated[0], "deserved": each.deserved[0], "share": each.share[0]},
                "after": {"allocated": each.allocated[1], "deserved": each.deserved[1], "share": each.share[1]},
            }
            for each in found.queues
        },
    }
