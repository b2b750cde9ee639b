"""preempt: make room within a queue, for a job that starves, by evicting what may give way to it.

First between the jobs of a queue, then between the tasks of one job. Who is evicted is the smallest set that makes the
whole preemptor fit, and nobody when none does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from cluster import objects
from cluster.said import said
from scheduler.eviction import starving
from scheduler.eviction.search import NOTHING, Cost, Terms, fewest, level
from scheduler.eviction.taker import Taker
from scheduler.framework.explain import Spared
from scheduler.framework.registry import action
from scheduler.framework.statement import Statement
from scheduler.framework.victims import HELD
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskClass, TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_LOWEST = 1 << 31
Hopeless = dict[tuple[TaskClass, int], Counter[str]]
"""Classes of tasks with the priority of their jobs for which no eviction makes room, and whom that spares."""


@action
class Preempt:
    """The topology-aware variant asks for a victim on every node, and tells nodes apart by Kubernetes's longer list."""

    name: ClassVar[str] = "preempt"

    def __init__(self, arguments: Arguments) -> None:
        arguments.boolean("predicateErrorCacheEnable", True)  # what is kept of classes here is always exact
        self._topology_aware = arguments.boolean("enableTopologyAwarePreemption", False)
        # All nodes are looked at, in one thread, so nothing is sampled; the numbers must make sense all the same.
        for key, default in (
            ("topologyAwarePreemptWorkerNum", 16),
            ("minCandidateNodesPercentage", 10),
            ("minCandidateNodesAbsolute", 1),
            ("maxCandidateNodesAbsolute", 100),
        ):
            if arguments.integer(key, default) < 0:
                raise arguments.error(key, said("must not be negative"))

    def execute(self, ssn: Session) -> None:
        between = self._terms(ssn, _job_not_above if starving.is_ranked(ssn) else _other_job)
        inside = replace(self._terms(ssn, _same_job), rows=_own_rows, hosts=None)
        by_queue = starving.by_queue(ssn)
        for queue in sorted((ssn.queues[name] for name in by_queue), key=ssn.queue_key):
            jobs = [job for job in by_queue[queue.name] if not starving.has_topology(job)]
            hopeless: Hopeless = {}
            for job in jobs:
                _between_jobs(ssn, between, job, hopeless)
            for job in jobs:
                _inside_job(ssn, inside, job)

    def _terms(self, ssn: Session, among: Callable[[TaskInfo, TaskInfo], str | None]) -> Terms:
        return Terms(
            action=self.name,
            family="preemptable",
            offer=ssn.victims.preemptable,
            exempt=among,
            reason=lambda task: said("preempted: %(pod)s needs its room", pod=task.key),
            asks_room=True,
            cost=_as_kubernetes if self._topology_aware else fewest,
            bare=not self._topology_aware,
            hosts=lambda task: _queue_rows(ssn, task),
        )


def _between_jobs(ssn: Session, terms: Terms, job: JobInfo, hopeless: Hopeless) -> None:
    """Feed one job. `hopeless` remembers what found no place: the next of equal priority and like tasks finds none either."""
    tasks = starving.waiting_tasks(ssn, job)
    if not tasks:
        return
    alike = (tasks[0].cls, job.priority)
    if alike not in hopeless:
        taker = Taker(ssn, terms, job)
        if taker.until_fed(tasks):
            hopeless.clear()
            return
        spared = taker.spared(tasks[0])
        if taker.barren and not job.ready_count():
            hopeless[alike] = spared
    else:
        spared = hopeless[alike]
    starving.give_up(ssn, job, spared)


def _inside_job(ssn: Session, terms: Terms, job: JobInfo) -> None:
    """Let the tasks of a job that matter more take the place of those that matter less; the first failure ends it."""
    if not any(job.by_status[status] for status in HELD):
        return
    taker = Taker(ssn, terms, job)
    for task in starving.waiting_tasks(ssn, job):
        statement = Statement(ssn)
        if not taker.place(statement, task):
            statement.discard()
            return
        starving.commit(ssn, statement, job)


def _same_job(task: TaskInfo, other: TaskInfo) -> str | None:
    return _exempt(task, other) if other.job is task.job and other.status in HELD else None


def _own_rows(task: TaskInfo) -> set[int]:
    job = task.job
    return {each.node for status in HELD for each in job.by_status[status].values()} if job is not None else set()


def _queue_rows(ssn: Session, task: TaskInfo) -> set[int]:
    """Where pods of the task's queue run."""
    jobs = ssn.queues[task.job.queue].jobs.values() if task.job is not None else ()
    return {each.node for job in jobs for status in HELD for each in job.by_status[status].values()}


def _other_job(task: TaskInfo, other: TaskInfo) -> str | None:
    job, theirs = task.job, other.job
    if theirs is None or job is None or theirs is job or theirs.queue != job.queue or other.status not in HELD:
        return None
    return _exempt(task, other)


def _job_not_above(task: TaskInfo, other: TaskInfo) -> str | None:
    """Where priority orders the jobs, one of higher priority is served first: it would have its room back in the next cycle."""
    why = _other_job(task, other)
    above = why == "" and task.job is not None and level(task, other) > task.job.priority
    return Spared.HIGHER_PRIORITY if above else why


def _exempt(task: TaskInfo, other: TaskInfo) -> str:
    """Who is not preemptable stays; who asks for nothing does not drive out who asks for something."""
    if not other.preemptable:
        return Spared.NOT_PREEMPTABLE
    return Spared.ASKS_NOTHING if task.cls.best_effort and not other.cls.best_effort else ""


def _as_kubernetes(task: TaskInfo, victims: Sequence[TaskInfo]) -> Cost:
    """Highest priority, sum of priorities, number, and the latest start of the first started among the highest."""
    levels = [level(task, victim) for victim in victims]
    if not levels:
        return (NOTHING, 0, 0, 0.0)
    first = min(_started(victim) for victim, each in zip(victims, levels, strict=True) if each == max(levels))
    return (max(levels), sum(each + _LOWEST for each in levels), len(levels), -first)


def _started(task: TaskInfo) -> float:
    text = (task.pod.get("status") or {}).get("startTime")
    return objects.parse_time(text) if text else task.creation
