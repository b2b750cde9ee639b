"""Room that evictions made: kept, while others are served, for the tasks that it was made for.

Without this the pod that takes an evicted one's place may be served before the preemptor, take the very same room, and be
evicted again, for ever. As in Kubernetes a nominated task counts as being on its node for all but those that come before it
by priority. Between queues priority orders nothing: reclaim takes from whatever priority, so it is held from all of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.actions.redeeming import forget
from scheduler.eviction import starving
from scheduler.eviction.search import fits
from scheduler.framework.session import Session
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskInfo

Held = list[tuple[TaskInfo, int]]


class Holds:
    """The nominations that hold, in one run of allocate: each task with its row, by job.

    A nomination holds while the task may be placed and has its room there, now or once who is leaving has left. It ends
    with the job's last turn, which every job has: who could not use it keeps it from nobody.
    """

    def __init__(self, ssn: Session, jobs: Iterable[JobInfo]) -> None:
        self._ssn, self._ranked = ssn, starving.is_ranked(ssn)
        self._held: dict[JobInfo, Held] = {}
        self._counted: set[JobInfo] = set()
        for job in sorted(jobs, key=lambda job: -job.priority):
            if self._ssn.overused(ssn.queues[job.queue]) is None:
                self._hold(job)

    def _hold(self, job: JobInfo) -> None:
        """Count the nominated tasks of a job that have their room beside what is held already."""
        held: Held = []
        for task in job.nominated.values():
            row = self._ssn.nodes.index.get(task.nominated)
            if row is not None and not task.gated and self._has_room(task, row):
                self._ssn.nodes.hold(task, row)
                held.append((task, row))
        if held:
            self._held[job] = held
            self._counted.add(job)

    def _has_room(self, task: TaskInfo, row: int) -> bool:
        ssn = self._ssn
        return ssn.pre_predicate(task) is None and fits(ssn, ssn.evaluator.standing(task.cls), task, row, asks_room=True)

    def stand_against(self, job: JobInfo) -> None:
        """Count for a job's turn what is held from it, and nothing else."""
        for other in self._held:
            self._count(other, other is not job and not self._comes_before(job, other))

    def _comes_before(self, job: JobInfo, other: JobInfo) -> bool:
        return self._ranked and job.queue == other.queue and job.priority > other.priority

    def drop(self, job: JobInfo) -> None:
        """Hold nothing for a job any more. Its tasks whose victims have left, and that found no place, wait for none."""
        if job not in self._held:
            return
        self._count(job, False)
        del self._held[job]
        forget([task for task in job.nominated.values() if not self._is_being_left(task.nominated)])

    def _is_being_left(self, node: str) -> bool:
        row = self._ssn.nodes.index.get(node)
        return row is not None and bool(self._ssn.nodes.releasing[row].any())

    def _count(self, job: JobInfo, wanted: bool) -> None:
        if wanted is (job in self._counted):
            return
        put = self._ssn.nodes.hold if wanted else self._ssn.nodes.unhold
        for task, row in self._held[job]:
            put(task, row)
        (self._counted.add if wanted else self._counted.discard)(job)
