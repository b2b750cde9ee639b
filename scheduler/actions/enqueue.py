"""enqueue: admit waiting jobs to their queues, so that their pods are made and may ask for nodes."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from scheduler.conf import Arguments
from scheduler.framework.heap import Heap
from scheduler.framework.registry import action
from scheduler.framework.session import Session
from scheduler.model.jobs import JobInfo


@action
class Enqueue:
    """Queue by queue, one job a turn. A refused job does not hold up those behind it.

    A job larger than any node stays outside whatever its queue says, so it is charged to no budget.
    """

    name: ClassVar[str] = "enqueue"

    def __init__(self, arguments: Arguments) -> None:
        del arguments  # none are defined

    def execute(self, ssn: Session) -> None:
        waiting: defaultdict[str, list[JobInfo]] = defaultdict(list)
        for job in ssn.contenders():
            if job.phase == "Pending":
                waiting[job.queue].append(job)
        jobs = {name: Heap(ssn.job_key, members) for name, members in waiting.items()}
        queues = ssn.turns(ssn.queues[name] for name in jobs)
        while queues:
            queue = queues.pop()
            if not jobs[queue.name]:
                continue
            self._consider(ssn, jobs[queue.name].pop())
            queues.push(queue)

    def _consider(self, ssn: Session, job: JobInfo) -> None:
        ssn.asked.append(job.uid)
        refusal = job.impossible
        asks = job.min_resources is not None or any(task.cls.claims for task in job.tasks.values())
        if refusal is None and asks:
            refusal = ssn.enqueueable(job)
        if refusal is not None:
            ssn.refuse(job, refusal)
            return
        if asks:
            ssn.enqueued(job)
        ssn.admit(job)
