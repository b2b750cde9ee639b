"""allocate: give admitted jobs nodes, all or nothing up to their gang's minimum, then one task a turn.

Network topology has its place in `_Allocation._turn`: a job with a hard topology or sub-groups will be planned hypernode
by hypernode there. Until then it is placed as a plain gang.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import ClassVar

from scheduler.conf import Arguments
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.heap import Heap
from scheduler.framework.registry import action
from scheduler.framework.session import Session
from scheduler.framework.statement import Statement
from scheduler.model.jobs import JobInfo, TaskInfo, TaskStatus
from scheduler.model.queues import QueueInfo
from scheduler.placement import ladder, refusals, stepwise

Tasks = deque[TaskInfo]


@action
class Allocate:
    """Queues take turns, and in a queue its jobs; a job's turn ends when it is ready."""

    name: ClassVar[str] = "allocate"

    def __init__(self, arguments: Arguments) -> None:
        arguments.boolean("predicateErrorCacheEnable", True)  # what is kept of classes here is always exact

    def execute(self, ssn: Session) -> None:
        _Allocation(ssn).run()


class _Allocation:
    """One run of the action."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.tasks: dict[str, Tasks] = {}
        self.failed_roles: defaultdict[str, set[str]] = defaultdict(set)
        self.why: dict[str, Verdict] = {}
        by_queue: defaultdict[str, list[JobInfo]] = defaultdict(list)
        for job in self._jobs():
            by_queue[job.queue].append(job)
        self.jobs = {name: Heap(ssn.job_key, members) for name, members in by_queue.items()}
        self.queues = ssn.turns(ssn.queues[name] for name in self.jobs)

    def _jobs(self) -> list[JobInfo]:
        """Jobs that are admitted, valid and have tasks to place; tasks that ask for nothing are backfill's."""
        found = []
        admits = "enqueue" in self.ssn.conf.actions
        no_nodes = None if len(self.ssn.nodes) else Verdict(Stage.NODE_FIT, Code.NODES_NONE)
        for job in self.ssn.jobs.values():
            if job.phase == "Pending":
                if admits:
                    continue
                self.ssn.admit(job)
            refusal = self.ssn.job_valid(job) or job.impossible or no_nodes
            if refusal is not None:
                if self._is_news(job, refusal):
                    self.ssn.refuse(job, refusal)
                continue
            tasks = [task for task in job.pending() if not task.cls.best_effort and not task.gated]
            if not tasks and job.count(TaskStatus.PENDING) and not self.ssn.job_ready(job):
                self.ssn.refuse(job, Verdict(Stage.GANG, Code.GATED, queue=job.queue, needed=job.min_available))
            if tasks:
                self.tasks[job.uid] = deque(sorted(tasks, key=self.ssn.task_key))
                found.append(job)
        self.ssn.considered += len(found)
        return found

    def _is_news(self, job: JobInfo, refusal: Verdict) -> bool:
        """Whether anybody has to be told: not of a job that ran, nor of one whose pods are just being made."""
        if job.phase in ("Running", "Completed"):
            return False
        return refusal.code is not Code.GANG_TOO_FEW_PODS or not job.is_fresh(self.ssn.now)

    def run(self) -> None:
        """Serve queues until no queue has a job left."""
        while self.queues:
            queue = self.queues.pop()
            jobs = self.jobs[queue.name]
            if not jobs:
                continue
            overused = self.ssn.overused(queue)
            if overused is not None:
                for job in jobs.drain():
                    if not self.ssn.job_ready(job):
                        self.ssn.refuse(job, overused)
                continue
            job = jobs.pop()
            if self._turn(job, queue) and self.tasks[job.uid]:
                jobs.push(job)
            self.queues.push(queue)

    def _turn(self, job: JobInfo, queue: QueueInfo) -> bool:
        """Place tasks until the job is ready; whether what was placed could be committed."""
        statement = Statement(self.ssn)
        if self._fill(statement, job, queue, self.tasks[job.uid]) or self.ssn.job_ready(job):
            statement.commit()
            self.ssn.verdicts.pop(job.uid, None)
            if job.uid in self.why:
                self.ssn.leftovers[job.uid] = self.why[job.uid]
            return True
        placed = job.ready_count() + job.waiting_count() + job.pending_best_effort()
        keeps = self.ssn.job_pipelined(job)
        self.ssn.refuse(job, refusals.of_gang(job, placed, self.why.get(job.uid), releasing=keeps))
        if not keeps:
            statement.discard()
        return False

    def _fill(self, statement: Statement, job: JobInfo, queue: QueueInfo, tasks: Tasks) -> bool:
        """Tasks in order, equal ones together; ends with True as soon as the job is ready."""
        failed = self.failed_roles[job.uid]
        while tasks:
            first, equal = tasks[0], _leading(tasks)
            room = self.ssn.room(queue, first.cls)
            if room <= 0:
                self._note(job, self._queue_refusal(queue, first))
                _drop(tasks, equal)
                continue
            if first.role in failed:
                _drop(tasks, equal)
                continue
            placed = self._place(statement, job, list(islice(tasks, min(equal, room, self.ssn.lacking(job)))))
            if placed:
                _drop(tasks, placed)
                if self.ssn.job_ready(job):
                    return True
                continue
            tasks.popleft()
            if first.role:
                failed.add(first.role)
            if not job.worth_continuing(failed):
                break
        return False

    def _place(self, statement: Statement, job: JobInfo, tasks: list[TaskInfo]) -> int:
        """Place the first of some equal tasks, as many as one look at the nodes allows; how many. 0: the first fits nowhere."""
        first = tasks[0]
        refusal = self.ssn.pre_predicate(first)
        if refusal is not None:
            self._note(job, refusal)
            return 0
        evaluator = self.ssn.evaluator
        standing = evaluator.standing(first.cls)
        refused: dict[str, int] = {}
        if evaluator.is_contextual(first):
            row, pipelined, refused = stepwise.choose_one(evaluator, standing, first)
            rows = [row] if row >= 0 else []
        else:
            count = next((i for i, task in enumerate(tasks) if i and self._stands_alone(task)), len(tasks))
            rows, pipelined = ladder.choose(evaluator, standing, count)
        if not rows:
            self._note(job, refusals.of_nodes(evaluator, standing, first, refused))
            return 0
        (statement.pipeline if pipelined else statement.allocate)(tasks[: len(rows)], rows)
        return len(rows)

    def _queue_refusal(self, queue: QueueInfo, task: TaskInfo) -> Verdict | None:
        """Why the queue takes no more. A queue that may have the whole cluster is not what stops a task: the nodes are."""
        refusal = self.ssn.room_refusal(queue, task.cls)
        if refusal is not None and refusal.resource:
            total = self.ssn.total.values[self.ssn.dims.index[refusal.resource]]
            if queue.is_open and refusal.limit >= total:
                evaluator = self.ssn.evaluator
                return refusals.of_nodes(evaluator, evaluator.standing(task.cls), task, {})
        return refusal

    def _stands_alone(self, task: TaskInfo) -> bool:
        """Whether a task must be looked at by itself though its class was just looked at."""
        return self.ssn.evaluator.is_contextual(task) or self.ssn.pre_predicate(task) is not None

    def _note(self, job: JobInfo, verdict: Verdict | None) -> None:
        """Keep the first reason for which a task of the job found no place."""
        if verdict is not None:
            self.why.setdefault(job.uid, verdict)


def _leading(tasks: Tasks) -> int:
    """How many tasks at the head share class and role with the first."""
    first, count = tasks[0], 0
    for task in tasks:
        if task.cls is not first.cls or task.role != first.role:
            break
        count += 1
    return count


def _drop(tasks: Tasks, count: int) -> None:
    for _ in range(count):
        tasks.popleft()
