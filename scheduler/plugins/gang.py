"""gang: all or nothing. A job starts when its minimum fits at once, and it is never broken below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@plugin
class Gang:
    """Validity, readiness and order of gangs, and the surplus that may be taken from them."""

    name: ClassVar[str] = "gang"

    def __init__(self, arguments: Arguments) -> None:
        """gang has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_job_valid(self.name, lacking)
        ssn.add_job_order(self.name, JobInfo.is_ready)
        ssn.add_job_ready(self.name, _ready, lacking=_missing)
        ssn.add_job_pipelined(self.name, _pipelined)
        ssn.add_sub_job_order(self.name, SubJob.is_ready)
        ssn.add_sub_job_ready(self.name, SubJob.is_ready, lacking=SubJob.missing)
        ssn.add_sub_job_pipelined(self.name, lambda sub: Vote.PERMIT if sub.is_pipelined() else Vote.REJECT)
        ssn.add_job_starving(self.name, JobInfo.is_starving)
        ssn.add_preemptable(self.name, surplus, spares=has_no_surplus)
        ssn.add_reclaimable(self.name, surplus, spares=has_no_surplus)
        ssn.add_unified_evictable(self.name, lambda kind, job, candidates: candidates)  # bundles keep gangs whole

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write: a gang's counts are the job's own."""


def lacking(job: JobInfo) -> Verdict | None:
    """Why a job cannot become a whole gang with the pods that it has: a role, or the job, has too few of them."""
    if job.role_min_counts():
        for role, least in job.role_min.items():
            found = job.role_valid_count(role)
            if found < least:
                return _too_few(job, least, found, role)
    if job.parts is not None and (lacks := job.parts.too_few()) is not None:
        policy, count = lacks
        return _too_few(job, policy.least, count, policy.name)
    found = job.valid_count()
    return _too_few(job, job.min_available, found) if found < job.min_available else None


def _too_few(job: JobInfo, needed: int, found: int, role: str = "") -> Verdict:
    return Verdict(Stage.GANG, Code.GANG_TOO_FEW_PODS, queue=job.queue, task=role, needed=needed, placeable=found)


def _missing(job: JobInfo) -> int:
    """How many more tasks must get a node, at the least, before the job can be ready."""
    return job.min_available - job.ready_count() - job.pending_best_effort()


def _ready(job: JobInfo) -> bool:
    return job.is_ready() and job.roles_ready() and (job.parts is None or job.parts.enough())


def _pipelined(job: JobInfo) -> Vote:
    enough = job.parts is None or job.parts.enough(pipelined=True)
    return Vote.PERMIT if enough and job.roles_ready(pipelined=True) and job.is_pipelined() else Vote.REJECT


def has_no_surplus(job: JobInfo) -> bool:
    """Whether `surplus` offers no task of the job."""
    return job.ready_count() <= job.min_available


def surplus(preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """The candidates, in their order, that their jobs can lose and still be whole. Pods of no job are skipped."""
    ready: dict[str, int] = {}
    victims = []
    for task in candidates:
        job = task.job
        if job is None:
            continue
        count = ready.setdefault(job.uid, job.ready_count())
        if count > job.min_available:
            ready[job.uid] = count - 1
            victims.append(task)
    return victims
