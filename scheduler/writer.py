"""Carries out what a cycle decided, through the port, and reports what failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from cluster.errors import ApiError, Conflict, NotFound, Unanswered
from cluster.kinds import POD
from cluster.port import Binding, Cluster, Eviction, Obj, Outcome, Victim
from cluster.port import StatusWrite as PortWrite
from cluster.recorder import EventRecorder
from scheduler.locker import Locker
from scheduler.model.nodelocks import NodeLock
from scheduler.model.supply import Supply
from scheduler.model.tasks import TaskInfo
from scheduler.status import StatusWrite
from scheduler.supplier import Supplier

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")


@dataclass(slots=True)
class Report:
    """What became of some writes. `statuses` lists every status write with whether it was done.

    `awaiting` are binds that must wait for the claims of their pods; `done` counts the binds, evictions and statuses that
    were written. `unclear`: of some binds it is not known whether they were done.
    """

    failed_binds: list[str] = field(default_factory=list)
    awaiting: list[tuple[Binding, Supply]] = field(default_factory=list)
    failed_evictions: list[str] = field(default_factory=list)
    statuses: list[tuple[StatusWrite, bool]] = field(default_factory=list)
    done: int = 0
    unclear: bool = False


class Writer:
    """Writes many at once, waited for in the calling thread; a refusal of one write never stops the next."""

    def __init__(self, cluster: Cluster, now: Callable[[], float]) -> None:
        self._cluster = cluster
        self._recorder = EventRecorder(cluster, now)
        self._supplier = Supplier(cluster)
        self._locker = Locker(cluster)

    def decide(
        self,
        binds: Sequence[Binding],
        evictions: Sequence[Eviction],
        supplies: Mapping[str, Supply] | None = None,
        locks: Mapping[str, NodeLock] | None = None,
    ) -> Report:
        """Bind and evict. What `supplies` name for a pod is written first; who waits for volumes then is bound later.

        Where `locks` name a lock for a pod, it is bound only when that could be taken.
        """
        report, supplies, locks = Report(), supplies or {}, locks or {}
        ready = [
            binding
            for binding in binds
            if self._locked(binding, locks.get(binding.uid), report)
            and self._supplied(binding, supplies.get(binding.uid), report)
        ]
        outcomes = _each(self._cluster.bind_many, ready)
        for binding, outcome in zip(ready, outcomes, strict=True):
            if outcome.error is not None:
                _log(f"binding {binding.namespace}/{binding.name} to {binding.node}", outcome.error)
                report.failed_binds.append(binding.uid)
                report.unclear |= isinstance(outcome.error, Unanswered)
                if binding.uid in supplies:
                    self._supplier.take_back(binding, supplies[binding.uid])
                if binding.uid in locks:
                    self._locker.give_back(locks[binding.uid])
            else:
                report.done += 1
        evicted = _each(self._cluster.evict_many, evictions)
        for eviction, outcome in zip(evictions, evicted, strict=True):
            if outcome.error is not None:
                _log(f"evicting {eviction.namespace}/{eviction.name}", outcome.error)
                report.failed_evictions.append(eviction.uid)
            else:
                report.done += 1
        return report

    def _locked(self, binding: Binding, lock: NodeLock | None, report: Report) -> bool:
        """Take a pod's lock; whether it is taken, or none is needed."""
        if lock is None:
            return True
        try:
            self._locker.take(lock)
        except ApiError as error:
            _log(f"locking node {lock.node} for {binding.namespace}/{binding.name}", error)
            report.failed_binds.append(binding.uid)
            return False
        return True

    def _supplied(self, binding: Binding, supply: Supply | None, report: Report) -> bool:
        """Write what a pod was given; whether it may be bound now."""
        if not supply:
            return True
        try:
            self._supplier.write(binding, supply)
        except ApiError as error:
            _log(f"supplying {binding.namespace}/{binding.name} on {binding.node}", error)
            report.failed_binds.append(binding.uid)
            return False
        if supply.volumes:
            report.awaiting.append((binding, supply))
        return not supply.volumes

    def give_up(self, binds: Sequence[tuple[Binding, Supply]]) -> Report:
        """Binds that waited in vain: what they were given is free again."""
        report = Report()
        for binding, supply in binds:
            self._supplier.take_back(binding, supply)
            report.failed_binds.append(binding.uid)
        return report

    def open_gates(self, tasks: Sequence[TaskInfo]) -> Report:
        """Take the gate off pods that their queue lets through; who could not be reached is asked for again."""
        body: Obj = {"spec": {"schedulingGates": None}}
        patches = [(Victim(task.namespace, task.name, task.uid), body) for task in tasks]
        outcomes = _each(partial(self._cluster.patch_many, POD), patches)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.error is not None:
                _log(f"opening the gate of {task.key}", outcome.error)
        return Report()

    def report(self, statuses: Sequence[StatusWrite], events: Sequence[Obj]) -> Report:
        """Write statuses, those of pods last since nobody waits for them, then events."""
        report = Report()
        for kind in sorted({write.kind for write in statuses}, key=lambda kind: (kind == POD, str(kind))):
            writes = self._marked([write for write in statuses if write.kind == kind], report)
            merged = [PortWrite(w.namespace, w.name, w.status, uid=w.uid) for w in writes]
            for write, outcome in zip(writes, _each(partial(self._cluster.patch_status_many, kind), merged), strict=True):
                self._written(write, outcome, report)
        if events:
            self._recorder.record(events)
        return report

    def _marked(self, writes: Sequence[StatusWrite], report: Report) -> list[StatusWrite]:
        """Set the annotations that some objects get before their status; those of which the status may be written."""
        marking = [write for write in writes if write.annotations]
        if not marking:
            return list(writes)
        patches: list[tuple[Victim, Obj]] = [
            (Victim(w.namespace, w.name, w.uid), {"metadata": {"annotations": w.annotations}}) for w in marking
        ]
        failed = set()
        outcomes = _each(partial(self._cluster.patch_many, marking[0].kind), patches)
        for write, outcome in zip(marking, outcomes, strict=True):
            if outcome.error is not None:
                failed.add(id(write))
                self._written(write, outcome, report)
        return [write for write in writes if id(write) not in failed]

    @staticmethod
    def _written(write: StatusWrite, outcome: Outcome, report: Report) -> None:
        if outcome.error is not None:
            _log(f"status of {write.kind.kind} {write.namespace}/{write.name}", outcome.error)
        report.statuses.append((write, outcome.error is None))
        report.done += outcome.error is None


def _each(write: Callable[[Sequence[_Item]], list[Outcome]], items: Sequence[_Item]) -> list[Outcome]:
    """The outcome of each of many writes; a cluster that refuses them together refuses each."""
    try:
        return write(items) if items else []
    except ApiError as error:
        return [Outcome("", "", error) for _ in items]


def _log(what: str, error: Exception) -> None:
    """Objects that changed or went meanwhile are everyday; anything else is worth a look."""
    level = logging.DEBUG if isinstance(error, (NotFound, Conflict)) else logging.WARNING
    logger.log(level, "%s failed: %s", what, error)
