"""What must be remembered of a job beyond its objects, as one text in its status, so that no restart of a controller loses it.

Most events can be read off what is there. Three things cannot: that a pod is gone which nobody decided to delete, when a gang
broke, and that an event was answered whose cause is still to be seen. Only jobs with policies remember anything. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

import orjson

from cluster import objects
from cluster.port import Obj
from jobs import keys
from jobs.lifecycle import TARGETED, Action, Effect
from jobs.policies import Event, Happening, choose, listens
from jobs.roles import is_marked, partition_of, role_of, tasks_of, version_of

MOST_WAITING = 200
"""Delayed events that are remembered; they are those that fall due first."""
_SEEN = frozenset({Event.POD_FAILED, Event.POD_PENDING, Event.TASK_COMPLETED, Event.TASK_FAILED, Event.UNKNOWN})
"""Events whose cause can still be seen when they were answered."""


@dataclass(frozen=True, slots=True)
class Memory:
    """`pods`: by role, the indices whose pods exist and are to exist; `waiting`: events without a trace whose time has not
    come; `answered`: events that were acted upon and can still be seen, by `identity`."""

    pods: dict[str, frozenset[int]] = field(default_factory=dict)
    waiting: tuple[Happening, ...] = ()
    answered: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Obj) -> Memory:
        """As the job's status keeps it; what cannot be read is as if nothing were remembered."""
        text = ((job.get("status") or {}).get("controlledResources") or {}).get(keys.MEMORY)
        if not text:
            return cls()
        try:
            kept = orjson.loads(text)
            return cls(
                {role: frozenset(_expand(ranges)) for role, ranges in (kept.get("pods") or {}).items()},
                tuple(_happening(job, entry) for entry in kept.get("waiting") or ()),
                frozenset(kept.get("answered") or ()),
            )
        except (ValueError, TypeError, AttributeError):
            return cls()

    def text(self) -> str:
        """As it is kept; empty when there is nothing to remember."""
        kept = {
            "pods": {role: _ranges(found) for role, found in sorted(self.pods.items()) if found},
            "waiting": [[str(h.event), h.role, h.pod, h.partition, h.exit_code, h.at] for h in self.waiting],
            "answered": sorted(self.answered),
        }
        kept = {key: value for key, value in kept.items() if value}
        return orjson.dumps(kept).decode() if kept else ""

    def missing(self, job: Obj, pods: Iterable[Obj]) -> Iterator[tuple[str, int]]:
        """Role and index of each pod that existed, is still asked for, and is not there."""
        there = {(role_of(pod), objects.name(pod)) for pod in pods}
        for task in tasks_of(job):
            for index in sorted(self.pods.get(task["name"], ())):
                place = (task["name"], keys.pod_name(objects.name(job), task["name"], index))
                if index < int(task.get("replicas") or 0) and place not in there:
                    yield task["name"], index

    def seeing(self, job: Obj, pods: Iterable[Obj], still: Collection[tuple[str, int]] = ()) -> Memory:
        """With the pods that are there now, and those of `still`, whose going has not been answered yet."""
        if not listens(job, Event.POD_EVICTED):
            return replace(self, pods={})
        version = int((job.get("status") or {}).get("version") or 0)
        found: dict[str, set[int]] = {}
        for pod in pods:
            if version_of(pod) >= version and not is_marked(pod):
                found.setdefault(role_of(pod), set()).add(keys.index_of(objects.name(pod)))
        for role, index in still:
            found.setdefault(role, set()).add(index)
        return replace(self, pods={role: frozenset(indices) for role, indices in found.items()})

    def without(self, pods: Iterable[Obj]) -> Memory:
        """Without some pods, about to be deleted."""
        kept = {role: set(indices) for role, indices in self.pods.items()}
        for pod in pods:
            kept.get(role_of(pod), set()).discard(keys.index_of(objects.name(pod)))
        return replace(self, pods={role: frozenset(indices) for role, indices in kept.items()})

    def wait_for(self, happening: Happening, action: Action, job: Obj) -> Memory:
        """Wait for the time of an event too, unless the same action waits for the same pod already."""
        if any(h.pod == happening.pod and choose(job, h).action is action for h in self.waiting):
            return self
        first = sorted((*self.waiting, happening), key=lambda h: h.at)
        return replace(self, waiting=tuple(first[:MOST_WAITING]))

    def after(self, action: Action, effect: Effect, target: Happening | None, gone: Collection[str], job: Obj) -> Memory:
        """When `action` was carried out, by pods deleted of these uids: what it made void is forgotten, its cause is answered.

        A kill of the whole job begins a new generation, of which nothing is known yet.
        """
        if effect in (Effect.KILL_ALL, Effect.KILL_SOFT):
            return Memory()
        waiting = tuple(h for h in self.waiting if h != target and not _is_void(h, choose(job, h).action, action, target))
        answered = self.answered
        if target is not None and target.event in _SEEN and target.pod_uid not in gone:
            answered |= {identity(target)}
        return replace(self, waiting=waiting, answered=answered)


def identity(happening: Happening) -> str:
    """What tells one event from another that can be seen at the same time or later."""
    return "/".join((str(happening.event), happening.role, happening.pod_uid))


def _is_void(waiting: Happening, its: Action, done: Action, target: Happening | None) -> bool:
    """Whether a delayed action is of the same level and about the same thing as one that was just carried out."""
    if its not in TARGETED or done not in TARGETED:
        return its not in TARGETED and done not in TARGETED
    if its is not done or target is None:
        return False
    if done is Action.RESTART_PARTITION:
        return waiting.partition == target.partition
    return waiting.role == target.role if done is Action.RESTART_TASK else waiting.pod == target.pod


def _happening(job: Obj, entry: list[object]) -> Happening:
    event, role, pod, partition, exit_code, at = entry
    version = int((job.get("status") or {}).get("version") or 0)
    return Happening(
        event=Event(str(event)),
        role=str(role),
        pod=str(pod),
        partition=str(partition),
        exit_code=int(str(exit_code)),
        job_uid=objects.uid(job),
        version=version,
        at=float(str(at)),
    )


def evicted(job: Obj, role: str, index: int, at: float) -> Happening:
    """The event of a pod that is gone; nothing is left of it but its name and place."""
    task = next((t for t in tasks_of(job) if t["name"] == role), {})
    return Happening(
        event=Event.POD_EVICTED,
        role=role,
        pod=keys.pod_name(objects.name(job), role, index),
        partition=partition_of(task, index),
        job_uid=objects.uid(job),
        version=int((job.get("status") or {}).get("version") or 0),
        at=at,
    )


def _ranges(indices: Iterable[int]) -> str:
    """`0-2,5` of 0, 1, 2, 5."""
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _expand(ranges: str) -> Iterator[int]:
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)
