"""Placing the tasks of a gang, or of a part of one, in their order, up to the moment at which it is ready."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import islice

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.session import Session
from scheduler.framework.statement import Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskInfo
from scheduler.placement import ladder, nominated, refusals, stepwise
from scheduler.topology.hypernodes import Domain

Tasks = deque[TaskInfo]


@dataclass(frozen=True, slots=True)
class Target:
    """Whom tasks are placed for: a gang in its queue, perhaps one part of it, perhaps inside one domain of nodes."""

    job: JobInfo
    queue: QueueInfo
    part: SubJob | None = None
    within: Domain | None = None

    @property
    def uid(self) -> str:
        """Of the part, else of the gang."""
        return self.part.uid if self.part is not None else self.job.uid


class Filler:
    """Places tasks in one run of allocate. `why` holds, by job, the first reason for which a task found no place."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.why: dict[str, Verdict] = {}
        self._failed: defaultdict[str, set[str]] = defaultdict(set)

    def forget(self, target: Target) -> None:
        """Let roles that failed elsewhere be tried again."""
        self._failed.pop(target.uid, None)
        self.why.pop(target.job.uid, None)

    def fill(self, statement: Statement, target: Target, tasks: Tasks) -> bool:
        """Tasks in order, equal ones together; ends with True as soon as what they are placed for is ready."""
        places = self._ssn.places
        places.trying = target.within
        try:
            return self._fill(statement, target, tasks)
        finally:
            places.trying = None

    def _fill(self, statement: Statement, target: Target, tasks: Tasks) -> bool:
        job, failed = target.job, self._failed[target.uid]
        while tasks:
            first = tasks[0]
            room = self._ssn.room(target.queue, first.cls)
            if room <= 0:
                self._note(job, self._queue_refusal(target.queue, first))
                _drop(tasks, _leading(tasks, len(tasks)))
                continue
            if first.role in failed:
                _drop(tasks, _leading(tasks, len(tasks)))
                continue
            most = min(room, self._lacking(target))
            if most > 1 and self._ssn.evaluator.is_contextual(first):
                most = 1
            placed = self._place(statement, target, list(islice(tasks, _leading(tasks, most))))
            if placed:
                _drop(tasks, placed)
                if self._ready(target):
                    return True
                continue
            tasks.popleft()
            if placed is None:
                continue
            if first.role:
                failed.add(first.role)
            if not job.worth_continuing(failed, target.part):
                break
        return False

    def _ready(self, target: Target) -> bool:
        return self._ssn.job_ready(target.job) if target.part is None else self._ssn.parts.ready(target.part)

    def _lacking(self, target: Target) -> int:
        return self._ssn.lacking(target.job) if target.part is None else self._ssn.parts.lacking(target.part)

    def _place(self, statement: Statement, target: Target, tasks: list[TaskInfo]) -> int | None:
        """Place the first of some equal tasks, as many as one look at the nodes allows; how many.

        0: the first fits nowhere; None: a plugin refused what it was given, which says nothing of the others.
        """
        first, job = tasks[0], target.job
        refusal = self._ssn.pre_predicate(first)
        if refusal is not None:
            self._note(job, refusal)
            return 0
        evaluator = self._ssn.evaluator
        standing = evaluator.standing(first.cls)
        within = target.within.mask if target.within is not None else None
        refused: dict[str, int] = {}
        row, pipelined = nominated.choose(evaluator, standing, first, within)
        if row >= 0:
            rows = [row]
        elif evaluator.is_contextual(first):
            row, pipelined, refused = stepwise.choose_one(evaluator, standing, first, within)
            rows = [row] if row >= 0 else []
        else:
            count = next((i for i, task in enumerate(tasks) if i and self._stands_alone(task)), len(tasks))
            rows, pipelined = ladder.choose(evaluator, standing, count, within)
        if not rows:
            self._note(job, refusals.of_nodes(evaluator, standing, first, refused, within))
            return 0
        if not (statement.pipeline if pipelined else statement.allocate)(tasks[: len(rows)], rows):
            self._note(job, Verdict(Stage.NODE_FIT, Code.EXTENDER, queue=job.queue, task=first.role or first.name))
            return None
        if target.part is not None and target.part.topology is not None:
            for row in rows:
                self._ssn.places.grow(target.part, row)
        return len(rows)

    def _queue_refusal(self, queue: QueueInfo, task: TaskInfo) -> Verdict | None:
        """Why the queue takes no more. A queue that may have the whole cluster is not what stops a task: the nodes are."""
        refusal = self._ssn.room_refusal(queue, task.cls)
        if refusal is not None and refusal.resource in self._ssn.dims.index:
            total = self._ssn.total.values[self._ssn.dims.index[refusal.resource]]
            if queue.is_open and refusal.limit >= total:
                evaluator = self._ssn.evaluator
                return refusals.of_nodes(evaluator, evaluator.standing(task.cls), task, {})
        return refusal

    def _stands_alone(self, task: TaskInfo) -> bool:
        """Whether a task must be looked at by itself though its class was just looked at."""
        return bool(task.nominated) or self._ssn.evaluator.is_contextual(task) or self._ssn.pre_predicate(task) is not None

    def _note(self, job: JobInfo, verdict: Verdict | None) -> None:
        """Keep the first reason for which a task of the job found no place."""
        if verdict is not None:
            self.why.setdefault(job.uid, verdict)


def _leading(tasks: Tasks, most: int) -> int:
    """How many tasks at the head, up to so many, share class and role with the first."""
    first, count = tasks[0], 0
    for task in islice(tasks, most):
        if task.cls is not first.cls or task.role != first.role:
            break
        count += 1
    return count


def _drop(tasks: Tasks, count: int) -> None:
    for _ in range(count):
        tasks.popleft()
