"""The choice of a node for one task whose checks or scores look beyond its class and single nodes.

Inter-pod affinity and topology spreading see other pods and other nodes, so nothing can be kept from task to task but
the separable part of the class.
"""

from __future__ import annotations

import numpy as np

from scheduler.model.resources import Mask
from scheduler.model.tasks import TaskInfo
from scheduler.placement.standing import Evaluator, Standing


def choose_one(
    evaluator: Evaluator, standing: Standing, task: TaskInfo, within: Mask | None = None
) -> tuple[int, bool, dict[str, int]]:
    """A row of some (−1: none fits), whether only pipelined there, and how many nodes each contextual cause refused."""
    views = standing.views
    open_ = views.idle | views.future
    if within is not None:
        open_ &= within
    refused = evaluator.task_refusals(task, open_)
    idle = evaluator.task_ready(task, views.idle & open_)
    pipelined = not idle.any()
    candidates = open_ & views.future if pipelined else idle
    if not candidates.any():
        return -1, False, refused
    scores = standing.scores(candidates)
    rows = np.flatnonzero(candidates)
    scores[rows] += evaluator.task_scores(task, rows)
    return int(scores.argmax()), pipelined, refused
