"""Carries out what a cycle decided, through the port, and reports what failed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.errors import ApiError, Conflict, NotFound
from cluster.kinds import EVENT, POD
from cluster.port import Binding, Cluster, Obj
from scheduler.cycle import Eviction
from scheduler.locker import Locker
from scheduler.model.jobs import TaskInfo
from scheduler.model.nodelocks import NodeLock
from scheduler.model.supply import Supply
from scheduler.status import StatusWrite
from scheduler.supplier import Supplier

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What became of some writes. `statuses` lists every status write with whether it was done.

    `awaiting` are binds that must wait for the claims of their pods; `done` counts the binds, evictions and statuses that
    were written.
    """

    failed_binds: list[str] = field(default_factory=list)
    awaiting: list[tuple[Binding, Supply]] = field(default_factory=list)
    failed_evictions: list[str] = field(default_factory=list)
    statuses: list[tuple[StatusWrite, bool]] = field(default_factory=list)
    done: int = 0


class Writer:
    """Writes in the calling thread; a refusal of one write never stops the next."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
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
        outcomes = self._cluster.bind_many(ready) if ready else []
        for binding, outcome in zip(ready, outcomes, strict=True):
            if outcome.error is not None:
                _log(f"binding {binding.namespace}/{binding.name} to {binding.node}", outcome.error)
                report.failed_binds.append(binding.uid)
                if binding.uid in supplies:
                    self._supplier.take_back(binding, supplies[binding.uid])
                if binding.uid in locks:
                    self._locker.give_back(locks[binding.uid])
            else:
                report.done += 1
        for eviction in evictions:
            try:
                uid, reason, message = eviction.uid, eviction.reason, eviction.message
                self._cluster.evict(eviction.namespace, eviction.name, uid=uid, reason=reason, message=message)
                report.done += 1
            except ApiError as error:
                _log(f"evicting {eviction.namespace}/{eviction.name}", error)
                report.failed_evictions.append(eviction.uid)
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
        for task in tasks:
            body = {"metadata": {"uid": task.uid}, "spec": {"schedulingGates": None}}
            try:
                self._cluster.patch(POD, task.name, task.namespace, body)
            except ApiError as error:
                _log(f"opening the gate of {task.key}", error)
        return Report()

    def report(self, statuses: Sequence[StatusWrite], events: Sequence[Obj]) -> Report:
        """Write statuses, those of pods last since nobody waits for them, then events."""
        report = Report()
        for write in sorted(statuses, key=lambda write: write.kind == POD):
            report.statuses.append((write, self._status(write)))
            report.done += report.statuses[-1][1]
        for event in events:
            try:
                self._cluster.create(EVENT, event)
            except ApiError as error:
                _log(f"event {event['reason']} of {event['involvedObject']['name']}", error)
        return report

    def _status(self, write: StatusWrite) -> bool:
        try:
            if write.annotations:
                marks = {"metadata": {"uid": write.uid, "annotations": write.annotations}}
                self._cluster.patch(write.kind, write.name, write.namespace, marks)
            self._cluster.patch_status(write.kind, write.name, write.namespace, write.status, uid=write.uid)
        except ApiError as error:
            _log(f"status of {write.kind.kind} {write.namespace}/{write.name}", error)
            return False
        return True


def _log(what: str, error: Exception) -> None:
    """Objects that changed or went meanwhile are everyday; anything else is worth a look."""
    level = logging.DEBUG if isinstance(error, (NotFound, Conflict)) else logging.WARNING
    logger.log(level, "%s failed: %s", what, error)
