"""backfill: find a node for admitted tasks that ask for nothing but to run. No queue limit is asked."""

from __future__ import annotations

from typing import ClassVar

from scheduler.conf import Arguments
from scheduler.framework.heap import Heap
from scheduler.framework.registry import action
from scheduler.framework.session import Session
from scheduler.framework.statement import Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskInfo
from scheduler.placement import ladder, refusals, stepwise


@action
class Backfill:
    """Queue by queue, job by job, task by task. Nothing is bound before its gang is ready."""

    name: ClassVar[str] = "backfill"

    def __init__(self, arguments: Arguments) -> None:
        arguments.boolean("predicateErrorCacheEnable", True)  # what is kept of classes here is always exact

    def execute(self, ssn: Session) -> None:
        for statement in list(ssn.statements.values()):
            statement.unpipeline_best_effort()
        waiting: dict[str, list[JobInfo]] = {}
        for job in ssn.contenders():
            if job.phase != "Pending" and job.pending_best_effort() and ssn.job_valid(job) is None:
                waiting.setdefault(job.queue, []).append(job)
        queues = ssn.turns(ssn.queues[name] for name in waiting)
        while queues:
            jobs = Heap(ssn.job_key, waiting[queues.pop().name])
            while jobs:
                self._serve(ssn, jobs.pop())

    def _serve(self, ssn: Session, job: JobInfo) -> None:
        ssn.served.append(job.uid)
        statement = Statement(ssn)
        tasks = [task for task in job.pending() if task.cls.best_effort and not task.gated]
        for task in sorted(tasks, key=ssn.task_key):
            if self._place(ssn, statement, job, task) and ssn.job_ready(job):
                statement.commit()
                statement = Statement(ssn)
                if job.uid in ssn.verdicts:  # it starts after all
                    ssn.leftovers[job.uid] = ssn.verdicts.pop(job.uid)
        if not statement:
            statement.discard()

    def _place(self, ssn: Session, statement: Statement, job: JobInfo, task: TaskInfo) -> bool:
        refusal = ssn.pre_predicate(task)
        standing = ssn.evaluator.standing(task.cls)
        refused: dict[str, int] = {}
        rows: list[int] = []
        if refusal is None and ssn.evaluator.is_contextual(task):
            row, pipelined, refused = stepwise.choose_one(ssn.evaluator, standing, task)
            rows = [row] if row >= 0 and not pipelined else []
        elif refusal is None:
            rows, _ = ladder.choose(ssn.evaluator, standing, 1)
        if rows:
            return statement.allocate([task], rows)
        if job.uid not in ssn.verdicts and not job.ready_count():
            ssn.refuse(job, refusal or refusals.of_nodes(ssn.evaluator, standing, task, refused))
        return False
