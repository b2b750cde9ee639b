"""priority: higher priority first, among jobs and among the tasks of a job; only the lower may be evicted for the higher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from scheduler.framework.plugin import EvictionKind
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@plugin
class Priority:
    """Orders by priority. Reclaiming between queues is a matter of shares and is not gated by it."""

    name: ClassVar[str] = "priority"

    def __init__(self, arguments: Arguments) -> None:
        """priority has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_task_order(self.name, lambda task: -task.priority)
        ssn.add_job_order(self.name, lambda job: -job.priority)
        ssn.add_sub_job_order(self.name, lambda sub: -sub.priority)
        ssn.add_preemptable(self.name, lower)
        ssn.add_unified_evictable(self.name, _below)
        ssn.add_job_starving(self.name, wants_more)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""


def lower(preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Candidates of jobs with strictly lower priority; of the preemptor's own job, tasks with strictly lower priority."""
    job = preemptor.job
    if job is None:
        return []
    victims = []
    for task in candidates:
        if task.job is None:
            continue
        theirs, ours = (task.priority, preemptor.priority) if task.job is job else (task.job.priority, job.priority)
        if theirs < ours:
            victims.append(task)
    return victims


def _below(kind: EvictionKind, job: JobInfo, candidates: Sequence[TaskInfo]) -> Sequence[TaskInfo]:
    """For a gang of the same queue, tasks of jobs with strictly lower priority; between queues priority does not matter."""
    if kind is EvictionKind.RECLAIM:
        return candidates
    return [task for task in candidates if task.job is not None and task.job.priority < job.priority]


def wants_more(job: JobInfo) -> bool:
    """Whether some task of the job neither holds nor waits for a node."""
    return job.ready_count() + job.waiting_count() < len(job.tasks)
