"""Nominations redeemed: where an eviction made room for a whole gang, or a part of one, all its tasks take their places at once.

A nomination is what the tasks themselves say: the nodes that they were nominated to, which their pods' statuses keep. It is
of the smallest domain that holds them all, so it outlives the session and the scheduler that made it.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.actions.filling import Target, Tasks
from scheduler.framework.session import Session
from scheduler.framework.statement import Statement
from scheduler.model.tasks import TaskInfo
from scheduler.placement import nominated
from scheduler.topology.hypernodes import Domain


def nomination(ssn: Session, tasks: Iterable[TaskInfo]) -> Domain | None:
    """The smallest domain that holds the nominated nodes of all of some tasks; None when one of them has none."""
    rows = []
    for task in tasks:
        row = ssn.nodes.index.get(task.nominated) if task.nominated else None
        if row is None:
            return None
        rows.append(row)
    return ssn.places.tree.holding(rows) if rows else None


def redeem(ssn: Session, target: Target, tasks: Tasks) -> Statement | None:
    """Give all of some tasks their nominated nodes, not only up to readiness; None, and nothing done, when one does not fit."""
    evaluator, statement = ssn.evaluator, Statement(ssn)
    before = ssn.places.of_sub.get(target.uid)
    for task in tasks:
        row, pipelined = -1, False
        if ssn.room(target.queue, task.cls) > 0 and ssn.pre_predicate(task) is None:
            within = target.within.mask if target.within is not None else None
            row, pipelined = nominated.choose(evaluator, evaluator.standing(task.cls), task, within)
        if row < 0 or not (statement.pipeline if pipelined else statement.allocate)([task], [row]):
            statement.discard()
            if target.part is not None:
                ssn.places.put(target.part, before)
            return None
        if target.part is not None and target.part.topology is not None:
            ssn.places.grow(target.part, row)
    return statement


def forget(tasks: Iterable[TaskInfo]) -> None:
    """A nomination that cannot be redeemed binds nobody any more."""
    for task in tasks:
        task.nominated = ""
        if task.job is not None:
            task.job.nominated.pop(task.uid, None)
