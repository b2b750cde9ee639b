"""reclaim: give a queue what it deserves, by evicting what others hold beyond theirs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from scheduler.eviction import starving
from scheduler.eviction.search import Search, Terms
from scheduler.eviction.taker import Taker
from scheduler.framework.registry import action
from scheduler.model.jobs import TaskClass, TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@action
class Reclaim:
    """Queue by queue: all starving jobs of one are worked off before the next. Its own limits are what Preemptive says."""

    name: ClassVar[str] = "reclaim"

    def __init__(self, arguments: Arguments) -> None:
        arguments.boolean("predicateErrorCacheEnable", True)  # what is kept of classes here is always exact

    def execute(self, ssn: Session) -> None:
        terms = Terms(
            action=self.name,
            family="reclaimable",
            offer=ssn.victims.reclaimable,
            may_lose=lambda task, other: _may_lose(ssn, task, other),
            reason=lambda task: f"reclaimed: {task.key} needs its room, which belongs to queue {queue_of(task)}",
            across=True,
        )
        by_queue = starving.by_queue(ssn)
        for queue in sorted((ssn.queues[name] for name in by_queue), key=ssn.queue_key):
            if ssn.overused(queue) is not None:
                continue
            hopeless: set[TaskClass] = set()
            searches: dict[TaskClass, Search] = {}
            for job in by_queue[queue.name]:
                tasks = starving.waiting_tasks(ssn, job)
                if not tasks or tasks[0].cls in hopeless or starving.has_hard_topology(job):
                    continue
                allowed = partial(_is_entitled, ssn)
                taker = Taker(ssn, terms, job, allowed=allowed, searches=searches)
                if taker.until_fed(tasks):
                    hopeless.clear()
                elif taker.barren:
                    hopeless.add(tasks[0].cls)


def queue_of(task: TaskInfo) -> str:
    """The queue of a task that belongs to a job."""
    assert task.job is not None
    return task.job.queue


def _is_entitled(ssn: Session, task: TaskInfo) -> bool:
    return ssn.preemptive(ssn.queues[queue_of(task)], [task])


def _may_lose(ssn: Session, task: TaskInfo, other: TaskInfo) -> bool:
    """Running, preemptable, and of another queue from which may be reclaimed."""
    if other.status is not TaskStatus.RUNNING or not other.preemptable or other.job is None:
        return False
    theirs = other.job.queue
    queue = ssn.queues.get(theirs)
    return queue is not None and theirs != queue_of(task) and queue.reclaimable
