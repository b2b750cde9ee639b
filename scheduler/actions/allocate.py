"""allocate: give admitted jobs nodes, all or nothing up to their gang's minimum, then one task a turn.

A gang with a network topology or sub-groups is planned domain by domain (`planning`), any other is filled in at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from scheduler.actions.filling import Filler, Target, Tasks
from scheduler.actions.holding import Holds
from scheduler.actions.planning import Planner
from scheduler.actions.redeeming import nomination, redeem
from scheduler.conf import Arguments
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.registry import action
from scheduler.framework.session import Session
from scheduler.framework.statement import Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.roster import SETTLED
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.placement import refusals


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
        self.gated: dict[str, list[TaskInfo]] = {}
        self.filler = Filler(ssn)
        self.planner = Planner(ssn, self.filler)
        by_queue: defaultdict[str, list[JobInfo]] = defaultdict(list)
        for job in self._jobs():
            by_queue[job.queue].append(job)
        self.holds = Holds(ssn, [job for jobs in by_queue.values() for job in jobs if job.nominated])
        self.jobs = {name: ssn.job_turns(members) for name, members in by_queue.items()}
        self.queues = ssn.turns(ssn.queues[name] for name in self.jobs)

    def _jobs(self) -> list[JobInfo]:
        """Jobs that are admitted, valid and have tasks to place; tasks that ask for nothing are backfill's."""
        found = []
        admits = "enqueue" in self.ssn.conf.actions
        no_nodes = None if len(self.ssn.nodes) else Verdict(Stage.NODE_FIT, Code.NODES_NONE)
        for job in self.ssn.contenders():
            if job.phase == "Pending":
                if admits:
                    continue
                self.ssn.admit(job)
            if job.phase in SETTLED and not job.count(TaskStatus.PENDING):
                continue
            refusal = self.ssn.job_valid(job) or job.impossible or no_nodes
            if refusal is not None:
                if self._is_news(job, refusal):
                    self.ssn.refuse(job, refusal)
                continue
            tasks = [task for task in job.pending() if not task.cls.best_effort and not task.gated]
            gated = [task for task in job.pending() if task.queue_gated]
            if gated:
                self.gated[job.uid] = sorted(gated, key=self.ssn.task_key)
            if not tasks and any(task.gated for task in job.pending()) and not self.ssn.job_runs(job):
                self.ssn.refuse(job, Verdict(Stage.GANG, Code.GATED, queue=job.queue, needed=job.min_available))
            if tasks or gated:
                ordered = sorted(tasks, key=self.ssn.task_key)
                if self.ssn.places.is_planned(job):
                    self.planner.take(job, ordered)
                else:
                    self.tasks[job.uid] = Tasks(ordered)
                found.append(job)
        self.ssn.considered += len(found)
        return found

    def _is_news(self, job: JobInfo, refusal: Verdict) -> bool:
        """Whether anybody has to be told: not of a job that ran, nor of one whose pods are just being made."""
        if job.phase in SETTLED:
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
                    self.holds.drop(job)
                    self.ssn.served.append(job.uid)
                    if not self.ssn.job_runs(job):
                        self.ssn.refuse(job, overused)
                continue
            job = jobs.pop()
            self.ssn.served.append(job.uid)
            for task in self.gated.pop(job.uid, ()):
                self.ssn.open_gate(queue, task)
            self.holds.stand_against(job)
            if self._turn(job, queue) if job.uid in self.tasks else self.planner.turn(job, queue):
                jobs.push(job)
            else:
                self.holds.drop(job)
            self.queues.push(queue)

    def _turn(self, job: JobInfo, queue: QueueInfo) -> bool:
        """Place tasks until the job is ready; whether it was, and has more to place."""
        if not self.tasks[job.uid]:
            return False
        places, tasks = self.ssn.places, self.tasks[job.uid]
        part = job.parts.sub_jobs.get(job.uid) if job.parts is not None else None
        before, target = places.of_sub.get(job.uid), Target(job, queue, part)
        statement = redeem(self.ssn, target, tasks) if nomination(self.ssn, tasks) is not None else None
        if statement is not None:
            tasks.clear()
            ready = False
        else:
            statement = Statement(self.ssn)
            ready = self.filler.fill(statement, target, tasks)
        if ready or self.ssn.job_ready(job):
            statement.commit()
            self._tell_of_rest(job)
            return bool(tasks)
        placed = job.ready_count() + job.waiting_count() + job.pending_best_effort()
        keeps = self.ssn.job_pipelined(job)
        self.ssn.refuse(job, refusals.of_gang(job, placed, self.filler.why.get(job.uid), releasing=keeps))
        if not keeps:
            statement.discard()
            if part is not None:
                places.put(part, before)
        return False

    def _tell_of_rest(self, job: JobInfo) -> None:
        """Of a job that runs, why some of its tasks do not; of one that is ready with nothing, why it does not run."""
        self.ssn.verdicts.pop(job.uid, None)
        why = self.filler.why.get(job.uid)
        if why is not None and self.ssn.job_runs(job):
            self.ssn.leftovers[job.uid] = why
        elif why is not None:
            self.ssn.refuse(job, refusals.of_gang(job, 0, why, releasing=False))
