"""reclaim: give a queue what it deserves, by evicting what others hold beyond theirs."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from cluster.said import said
from scheduler.eviction import starving
from scheduler.eviction.search import Search, Terms
from scheduler.eviction.taker import Taker
from scheduler.framework.explain import Spared
from scheduler.framework.registry import action
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus

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
            exempt=lambda task, other: _exempt(ssn, task, other),
            reason=lambda task: said(
                "reclaimed: %(pod)s needs its room, which belongs to queue %(queue)s", pod=task.key, queue=str(queue_of(task))
            ),
            across=True,
        )
        by_queue = starving.by_queue(ssn)
        for queue in sorted((ssn.queues[name] for name in by_queue), key=ssn.queue_key):
            if ssn.overused(queue) is not None:
                continue
            hopeless: dict[TaskClass, Counter[str]] = {}
            searches: dict[TaskClass, Search] = {}
            for job in by_queue[queue.name]:
                tasks = starving.waiting_tasks(ssn, job)
                if not tasks or starving.has_hard_topology(job):
                    continue
                spared = hopeless.get(tasks[0].cls)
                if spared is None:
                    taker = Taker(ssn, terms, job, allowed=partial(_is_entitled, ssn), searches=searches)
                    if taker.until_fed(tasks):
                        hopeless.clear()
                        continue
                    spared = taker.spared(tasks[0])
                    if taker.barren:
                        hopeless[tasks[0].cls] = spared
                starving.give_up(ssn, job, spared)


def queue_of(task: TaskInfo) -> str:
    """The queue of a task that belongs to a job."""
    assert task.job is not None
    return task.job.queue


def _is_entitled(ssn: Session, task: TaskInfo) -> bool:
    return ssn.preemptive(ssn.queues[queue_of(task)], [task])


def _exempt(ssn: Session, task: TaskInfo, other: TaskInfo) -> str | None:
    """In reach is what runs in other queues; it stays if it is not preemptable, or its queue is not reclaimed from."""
    queue = ssn.queues.get(other.job.queue) if other.job is not None else None
    if other.status is not TaskStatus.RUNNING or queue is None or queue.name == queue_of(task):
        return None
    if not other.preemptable:
        return Spared.NOT_PREEMPTABLE
    return "" if queue.reclaimable else Spared.NOT_RECLAIMABLE
