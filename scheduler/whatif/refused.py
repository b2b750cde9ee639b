"""Which nodes refuse a waiting job, by cause: the names behind the numbers of its verdict; and where GPUs are free for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

import numpy as np

from scheduler.actions.filling import Filler, Target, Tasks
from scheduler.framework.statement import Statement
from scheduler.model.resources import Mask, Rows
from scheduler.model.tasks import TaskStatus
from scheduler.placement import refusals, stepwise
from scheduler.whatif.sandbox import Sandbox


def nodes_by_cause(sandbox: Sandbox, uid: str) -> dict[str, list[str]]:
    """Names of nodes by the first cause for which each refuses the next task of a job, what it can place being placed.

    Empty for a job that no node refuses, or that has no pods yet.
    """
    cache = sandbox.cache
    ssn = cache.open_session("asked", sandbox.conf, now=sandbox.now, random=Random(0))  # noqa: S311 - ties, nothing secret
    found: defaultdict[str, list[str]] = defaultdict(list)

    def note(cause: str, rows: Mask | Rows) -> None:
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        found[cause] += [ssn.nodes.names[row] for row in indices.tolist()]

    try:
        job = ssn.jobs.get(uid)
        tasks = sorted((task for task in job.pending() if not task.gated), key=ssn.task_key) if job is not None else []
        if job is None or not tasks:
            return {}
        filler, statement = Filler(ssn), Statement(ssn)
        filler.fill(statement, Target(job, ssn.queues[job.queue]), Tasks(tasks))
        why = filler.why.get(uid)
        left = [task for task in tasks if task.status is TaskStatus.PENDING]
        task = next((task for task in left if why is not None and why.task in (task.role, task.name)), None)
        if task is not None:
            evaluator = ssn.evaluator
            standing = evaluator.standing(task.cls)
            evaluator.note = note
            refusals.of_class(evaluator, standing)
            if evaluator.is_contextual(task):
                stepwise.choose_one(evaluator, standing, task)
        statement.discard()
    finally:
        ssn.undo()
    return {cause: sorted(set(names)) for cause, names in found.items() if names}


@dataclass(frozen=True, slots=True)
class Free:
    """A node with free GPUs that a job may use as far as its labels and taints go: of `gpus` these many are `free`."""

    node: str
    gpus: int
    free: int


def free_gpus(sandbox: Sandbox, uid: str) -> tuple[int, list[Free]]:
    """How many GPUs one pod of a job asks, and the nodes with free ones that it may use, most free first.

    0 and none for a job that has no pods yet, or asks no GPUs.
    """
    cache = sandbox.cache
    job = cache.jobs.get(uid)
    task = next((task for task in job.pending() if task.cls.gpus), None) if job is not None else None
    if task is None:
        return 0, []
    ssn = cache.open_session("asked", sandbox.conf, now=sandbox.now, random=Random(0))  # noqa: S311 - ties, nothing secret
    try:
        nodes, allowed = ssn.nodes, ssn.evaluator.standing(task.cls).static_ok
        rows = [row for row in np.flatnonzero(allowed).tolist() if nodes.gpu_free[row]]
        found = [Free(nodes.names[r], int(nodes.gpu_all[r]).bit_length(), int(nodes.gpu_free[r]).bit_count()) for r in rows]
    finally:
        ssn.undo()
    return task.cls.gpus, sorted(found, key=lambda each: (-each.free, each.node))
