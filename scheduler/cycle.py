"""One scheduling cycle over a cache: open a session, run the actions, close it. Pure: what is to be written is returned."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from time import perf_counter
from typing import Protocol

from cluster import objects
from cluster.port import Binding, Eviction
from scheduler.cache import SchedulerCache
from scheduler.conf import Configuration
from scheduler.framework import registry
from scheduler.framework.record import CycleRecord, EvictionRecord, Served
from scheduler.framework.session import Session
from scheduler.framework.statement import Cause
from scheduler.model.nodelocks import NodeLock
from scheduler.model.supply import Supply
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.status import Writes

EVICTED_BY = "PreemptionByScheduler"
"""The reason of the condition DisruptionTarget, by Kubernetes's word for it."""


@dataclass(slots=True)
class Cycle:
    """What one cycle decided. Binds and evictions are assumed in the cache until their outcome is known.

    `supplies` and `locks`, by pod uid, are written before the bind; `released` are pods (uids) whose queue let them through
    its gate. `line` are the jobs in the order of their turns: those that were to get nodes, then those that were to be admitted.
    """

    record: CycleRecord
    binds: list[Binding] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    writes: Writes = field(default_factory=Writes)
    admitted: int = 0
    supplies: dict[str, Supply] = field(default_factory=dict)
    released: list[TaskInfo] = field(default_factory=list)
    locks: dict[str, NodeLock] = field(default_factory=dict)
    line: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything has to be written."""
        return bool(self.binds or self.evictions or self.released or self.writes.statuses or self.writes.events)


class Keeper(Protocol):
    """Says at the end of a session what is to be written, and gives each job the phase that it has then."""

    def close(self, ssn: Session) -> Writes:
        """What has to be written after a session's actions, its reservations still in place."""
        ...


@contextmanager
def _without_collector() -> Iterator[None]:
    """Hold Python's cycle collector back: what a session makes mostly lives on, and looking at it is a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_without_collector()
def run_cycle(
    cache: SchedulerCache,
    conf: Configuration,
    keeper: Keeper,
    number: int,
    *,
    now: float,
    random: Random,
    only: Collection[str] | None = None,
) -> Cycle:
    """Run one cycle; with `only` it is a trial in which all other jobs stand still. On an exception the model is as before."""
    begin = perf_counter()
    record = CycleRecord(number, now)
    ssn = cache.open_session(f"{number:x}-{int(now * 1000):x}", conf, now=now, random=random, only=only)
    record.opening = (perf_counter() - begin) * 1000
    ssn.watches.taken()  # what plugins asked of each other while they registered counts as opening
    try:
        for name in conf.actions:
            start = perf_counter()
            registry.actions[name](conf.action_arguments(name)).execute(ssn)
            record.actions[name] = (perf_counter() - start) * 1000
            record.hooks[name] = ssn.watches.taken()
        ssn.close()
        writes = keeper.close(ssn)
        kept = [task for statement in ssn.statements.values() for task in statement.pipelined()]
        record.pipelined = {task.key: ssn.nodes.names[task.node] for task in kept}
    except BaseException:
        ssn.undo()
        _take_back(cache, ssn)
        raise
    ssn.undo()
    binds = [_binding(ssn, task) for task in ssn.binds]
    evictions = [Eviction(task.namespace, task.name, task.uid, EVICTED_BY, cause.reason) for task, cause in ssn.evictions]
    record.considered, record.bound, record.evicted = ssn.considered, len(binds), len(evictions)
    _measure(record, ssn)
    record.verdicts, record.queues = writes.verdicts, ssn.queue_shares
    record.evictions = [_eviction(ssn, task, cause) for task, cause in ssn.evictions]
    record.milliseconds = (perf_counter() - begin) * 1000
    supplies = {task.uid: task.supply for task in ssn.binds if task.supply}
    line = list(dict.fromkeys([*ssn.served, *ssn.asked]))
    return Cycle(record, binds, evictions, writes, len(ssn.admitted), supplies, ssn.released, ssn.locks, line)


def _measure(record: CycleRecord, ssn: Session) -> None:
    """Where the time went, and whom it served."""
    record.plugins = {name: (spent, ssn.closed.get(name, 0.0)) for name, spent in ssn.opened.items()}
    record.checking = (ssn.evaluator.seconds - ssn.evaluator.scoring) * 1000
    record.scoring = ssn.evaluator.scoring * 1000
    record.placed = {task.uid: task.creation for task in ssn.binds}
    record.served = _served(ssn)
    record.capacity = ssn.dims.units(ssn.total.values)
    record.inner = frozenset(queue.parent for queue in ssn.queues.values() if queue.name != queue.parent)


def _served(ssn: Session) -> dict[str, Served]:
    """The jobs that pods of were given nodes, how many and with what."""
    jobs = {task.job.uid: task.job for task in ssn.binds if task.job is not None}
    classes: dict[str, Counter[TaskClass]] = {uid: Counter() for uid in jobs}
    for task in ssn.binds:
        if task.job is not None:
            classes[task.job.uid][task.cls] += 1
    found = {}
    for uid, counts in classes.items():
        taken: Counter[str] = Counter()
        for cls, count in counts.items():
            taken.update(ssn.dims.units(cls.request * count))
        found[uid] = Served(jobs[uid].queue, jobs[uid].creation, counts.total(), dict(taken))
    return found


def _take_back(cache: SchedulerCache, ssn: Session) -> None:
    """Undo what was committed in a cycle that broke: none of it was written."""
    for task in ssn.binds:
        cache.bind_failed(task.uid)
    for task, _ in ssn.evictions:
        cache.evict_failed(task.uid)
    for job in ssn.admitted.values():
        job.phase = str((job.sent or job.obj.get("status") or {}).get("phase") or "Pending")
        job.touch()


def _eviction(ssn: Session, task: TaskInfo, cause: Cause) -> EvictionRecord:
    preemptor = cause.preemptor
    taker = preemptor.job if preemptor is not None else None
    return EvictionRecord(
        task.key,
        task.uid,
        task.job.uid if task.job is not None else "",
        task.job.queue if task.job is not None else "",
        ssn.nodes.names[task.node],
        cause.action,
        cause.rule,
        cause.reason,
        preemptor=taker.uid if taker is not None else "",
        preemptor_pod=preemptor.key if preemptor is not None else "",
        preemptor_queue=taker.queue if taker is not None else "",
        freed=ssn.dims.units(task.request),
        proved=cause.proved,
    )


def _binding(ssn: Session, task: TaskInfo) -> Binding:
    marks = {**task.marks, **({objects.GPU_INDICES: ",".join(map(str, task.gpus))} if task.gpus else {})}
    return Binding(task.namespace, task.name, task.uid, ssn.nodes.names[task.node], marks)
