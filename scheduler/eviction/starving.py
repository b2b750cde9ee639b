"""Jobs that may make others give way, and their tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.framework.session import Session
    from scheduler.framework.statement import Statement


def by_queue(ssn: Session) -> dict[str, list[JobInfo]]:
    """Starving jobs that are admitted and can run at all, by queue, in job order."""
    found: defaultdict[str, list[JobInfo]] = defaultdict(list)
    for job in ssn.contenders():
        if job.phase == "Pending" or job.impossible is not None or not job.count(TaskStatus.PENDING):
            continue
        if ssn.job_starving(job) and ssn.job_valid(job) is None:
            found[job.queue].append(job)
    return {queue: sorted(jobs, key=ssn.job_key) for queue, jobs in found.items()}


def is_ranked(ssn: Session) -> bool:
    """Whether priority orders the jobs of a queue."""
    return any(name == "priority" for tier in ssn.named("job_order") for name, _ in tier)


def waiting_tasks(ssn: Session, job: JobInfo) -> list[TaskInfo]:
    """Pending tasks of a job that no gate holds, in task order."""
    return sorted((task for task in job.pending() if not task.gated), key=ssn.task_key)


def has_topology(job: JobInfo) -> bool:
    """Whether the job says how near to each other its pods must be."""
    spec = job.obj.get("spec") or {}
    return bool(spec.get("networkTopology") or spec.get("subGroupPolicy"))


def has_hard_topology(job: JobInfo) -> bool:
    """Whether it does so without leaving a choice."""
    topology = (job.obj.get("spec") or {}).get("networkTopology") or {}
    return topology.get("mode", "hard") == "hard" and has_topology(job)


def may_evict(task: TaskInfo) -> bool:
    """Whether the pod's preemptionPolicy lets it make others give way."""
    return task.cls.spec.get("preemptionPolicy") != "Never" and task.pod["spec"].get("preemptionPolicy") != "Never"


def is_terminating_for(task: TaskInfo, other: TaskInfo) -> bool:
    """Whether another task is leaving to whose place this one, being of higher priority, is entitled."""
    if other.status is not TaskStatus.RELEASING or other.job is None or task.job is None:
        return False
    if other.job is task.job:
        return other.priority < task.priority
    return other.job.priority < task.job.priority


def give_up(ssn: Session, job: JobInfo, spared: Counter[str]) -> None:
    """Say of a job that no eviction makes room for it: of how many pods, and by which rules they stay.

    What holds it before that point (its queue's limit, no domain) stays the blocker. Nothing is said where nobody was in
    reach.
    """
    verdict = ssn.verdicts.get(job.uid)
    if verdict is None or not spared or verdict.code is Code.RELEASING:
        return
    counts = Counter(verdict.spared) + spared
    verdict = replace(verdict, candidates=counts.total(), spared=dict(sorted(counts.items())))
    if verdict.stage in (Stage.NODE_FIT, Stage.GANG):
        verdict = replace(verdict, stage=Stage.PREEMPTION, code=Code.NO_VICTIMS)
    ssn.refuse(job, verdict)


def commit(ssn: Session, statement: Statement, job: JobInfo, *, nominate_all: bool = False) -> None:
    """Keep a plan, nominate its tasks to nodes that victims leave (or all), and say that the job waits for them to go."""
    victims = statement.evicted()
    rows = {victim.node for victim in victims}
    for task in statement.pipelined():
        if nominate_all or task.node in rows:
            task.nominated = ssn.nodes.names[task.node]
    statement.commit()
    if victims or job.uid in ssn.verdicts:
        verdict = ssn.verdicts.get(job.uid) or Verdict(Stage.NODE_FIT, Code.RELEASING, queue=job.queue, needed=job.min_available)
        placed = min(job.ready_count() + job.waiting_count() + job.pending_best_effort(), job.min_available)
        ssn.refuse(job, replace(verdict, stage=Stage.NODE_FIT, code=Code.RELEASING, placeable=placed))
