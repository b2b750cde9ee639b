"""gangpreempt and gangreclaim: room for a gang as a whole, by evicting what other gangs can spare, or other gangs whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler.eviction import starving
from scheduler.eviction.gangs import GangTaker, GangTerms
from scheduler.framework.explain import Spared
from scheduler.framework.plugin import EvictionKind
from scheduler.framework.registry import action
from scheduler.framework.victims import Backwards
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


class _GangAction(ABC):
    """What both have in common: `maxDomains` places to look at, and whether gangs may be taken whole."""

    name: ClassVar[str]

    def __init__(self, arguments: Arguments) -> None:
        most = arguments.integer("maxDomains", 8)
        self._domains = most if most > 0 else 8
        self._whole = arguments.boolean("allowWholeBundle", True)

    def execute(self, ssn: Session) -> None:
        terms = self._terms(ssn)
        by_queue = starving.by_queue(ssn)
        for queue in sorted((ssn.queues[name] for name in by_queue), key=ssn.queue_key):
            if terms.kind is EvictionKind.RECLAIM and ssn.overused(queue) is not None:
                continue
            for job in by_queue[queue.name]:
                if ssn.job_starving(job):
                    self._serve(ssn, terms, job)

    def _serve(self, ssn: Session, terms: GangTerms, job: JobInfo) -> None:
        taker = GangTaker(ssn, terms, job)
        tasks = [task for _, tasks in taker.parts for task in tasks]
        if not tasks or not all(starving.may_evict(task) for task in tasks):
            return
        if terms.kind is EvictionKind.RECLAIM and not ssn.preemptive(ssn.queues[job.queue], tasks):
            return
        if not taker.take():
            starving.give_up(ssn, job, taker.spared())

    @abstractmethod
    def _terms(self, ssn: Session) -> GangTerms: ...


@action
class GangPreempt(_GangAction):
    """Within a queue, from jobs of strictly lower priority."""

    name: ClassVar[str] = "gangpreempt"

    def _terms(self, ssn: Session) -> GangTerms:
        def exempt(job: JobInfo, task: TaskInfo) -> str | None:
            theirs = task.job
            if theirs is None or theirs is job or theirs.queue != job.queue:
                return None
            if task.status not in (TaskStatus.BOUND, TaskStatus.RUNNING):
                return None
            return _exempt(task) or ("priority" if theirs.priority >= job.priority else "")

        def order(job: JobInfo) -> Any:
            return lambda theirs: Backwards(ssn.job_key(theirs))

        return GangTerms(self.name, EvictionKind.PREEMPT, exempt, order, self._whole, self._domains)


@action
class GangReclaim(_GangAction):
    """From other queues that may be reclaimed from."""

    name: ClassVar[str] = "gangreclaim"

    def _terms(self, ssn: Session) -> GangTerms:
        def exempt(job: JobInfo, task: TaskInfo) -> str | None:
            theirs = ssn.queues.get(task.job.queue) if task.job is not None else None
            if theirs is None or theirs.name == job.queue or task.status is not TaskStatus.RUNNING:
                return None
            return _exempt(task) or ("" if theirs.reclaimable else Spared.NOT_RECLAIMABLE)

        def order(job: JobInfo) -> Any:
            return lambda theirs: ssn.victims.queue_key(ssn.queues[theirs.queue], ssn.queues[job.queue])

        return GangTerms(self.name, EvictionKind.RECLAIM, exempt, order, self._whole, self._domains)


def _exempt(task: TaskInfo) -> str:
    """Whether the pod or its gang says that it is not preemptable."""
    gang = task.job.annotations.get("volcano.sh/preemptable", "") if task.job is not None else ""
    return "" if task.preemptable and gang.lower() != "false" else Spared.NOT_PREEMPTABLE
