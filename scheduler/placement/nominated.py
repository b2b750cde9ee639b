"""The node that an eviction already made room on for a task: it is tried first."""

from __future__ import annotations

import numpy as np

from scheduler.model.resources import Mask
from scheduler.model.tasks import NO_NODE, TaskInfo
from scheduler.placement.standing import Evaluator, Standing


def choose(evaluator: Evaluator, standing: Standing, task: TaskInfo, within: Mask | None = None) -> tuple[int, bool]:
    """The row that the task is nominated to, −1 when it is to none that takes it, and whether it is only pipelined there."""
    row = evaluator.nodes.index.get(task.nominated, NO_NODE) if task.nominated else NO_NODE
    if row == NO_NODE or not standing.views.future[row] or (within is not None and not within[row]):
        return NO_NODE, False
    if evaluator.is_contextual(task):
        open_ = np.zeros(evaluator.nodes.rows, np.bool_)
        open_[row] = True
        evaluator.task_refusals(task, open_)
        if not open_[row]:
            return NO_NODE, False
        return row, not (standing.views.idle[row] and evaluator.task_ready(task, open_)[row])
    return row, not standing.views.idle[row]
