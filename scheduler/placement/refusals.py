"""Why a task found no node, and why its gang did not start, as verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block
from scheduler.model.resources import CPU, MEMORY, PODS, Dimensions, Mask
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.placement.standing import Evaluator, Standing


def of_nodes(
    evaluator: Evaluator, standing: Standing, task: TaskInfo, refused: dict[str, int], within: Mask | None = None
) -> Verdict:
    """Why no node (of some) takes a task: nodes by the first cause that refuses each, and the resource that is short."""
    if within is not None:
        verdict = of_class(evaluator, standing, within)
        return replace(verdict, task=task.role or task.name, rejected={**verdict.rejected, **refused})
    if standing.refusal is None or standing.refusal_position != evaluator.nodes.position:
        standing.refusal = of_class(evaluator, standing)
        standing.refusal_position = evaluator.nodes.position
    verdict = cast(Verdict, standing.refusal)
    if refused:
        told = evaluator.task_explained(task, refused) if verdict.code is Code.NODES_REFUSED else None
        verdict = replace(told or verdict, nodes=verdict.nodes, rejected={**verdict.rejected, **refused})
    return replace(verdict, task=task.role or task.name)


def of_class(evaluator: Evaluator, standing: Standing, within: Mask | None = None) -> Verdict:
    """The same for whatever task of a class, without contextual checks."""
    nodes, cls = evaluator.nodes, standing.cls
    count = len(nodes) if within is None else int(within.sum())
    if not count:
        return Verdict(Stage.NODE_FIT, Code.NODES_NONE)
    counts, passed = evaluator.refused_by_checks(standing, within)
    counts |= evaluator.refused_by_rooms(standing, passed)
    verdict = _short(evaluator, cls, passed, counts)
    if verdict is not None:
        return replace(verdict, nodes=count)
    if cls.gpus:
        taken = passed & ~standing.views.idle & ~standing.views.future
        if slots := int(taken.sum()):
            counts["gpu_slots"] = slots
            evaluator.tell("gpu_slots", taken)
    return Verdict(Stage.NODE_FIT, Code.NODES_REFUSED, nodes=count, rejected=counts)


def _short(evaluator: Evaluator, cls: TaskClass, passed: Mask, counts: dict[str, int]) -> Verdict | None:
    """The shortage on the nodes that pass all checks; each counts for the scarcest resource that it lacks."""
    at, dims = Block(evaluator.nodes), evaluator.dims
    free = (at.allocatable - at.used + at.releasing - at.pipelined)[passed]
    lacking = np.zeros(len(free), np.bool_)
    blocker, most = -1, 0
    for dimension in _scarcest_first(cls):
        short = ~lacking & (free[:, dimension] < cls.request[dimension])
        number = int(short.sum())
        if number:
            cause = f"insufficient:{resource_name(dims, dimension)}"
            counts[cause] = counts.get(cause, 0) + number
            evaluator.tell(cause, np.flatnonzero(passed)[short])
            if number > most:
                blocker, most = dimension, number
        lacking |= short
    if blocker < 0:
        return None
    asked, best = int(cls.request[blocker]), max(int(free[:, blocker].max()), 0)
    return Verdict(
        Stage.NODE_FIT,
        Code.NODES_INSUFFICIENT,
        resource=resource_name(dims, blocker),
        asked=asked,
        free=best,
        short=max(asked - best, 0),
        nodes=len(at.nodes),
        rejected=counts,
    )


def _scarcest_first(cls: TaskClass) -> list[int]:
    """Extended resources (GPUs) before cpu, memory and pods: who lacks a GPU is not helped by cores."""
    plain = [CPU, MEMORY, PODS]
    return [int(d) for d in cls.compared if d not in plain] + [d for d in plain if d in cls.compared]


def of_gang(job: JobInfo, placed: int, first: Verdict | None, *, releasing: bool) -> Verdict:
    """Why a gang did not start: `placed` of its minimum had a place, the next did not for the reason `first`."""
    if first is None:
        first = Verdict(Stage.GANG, Code.GANG_INCOMPLETE)
    gang = replace(first, queue=first.queue or job.queue, needed=job.min_available, placeable=min(placed, job.min_available))
    if releasing:
        return replace(gang, stage=Stage.NODE_FIT, code=Code.RELEASING)
    if 0 < placed < job.min_available and first.stage is Stage.NODE_FIT:
        return replace(gang, stage=Stage.GANG, code=Code.GANG_INCOMPLETE)
    return gang


def resource_name(dims: Dimensions, dimension: int) -> str:
    """The name of a dimension; none for a column that no resource has yet."""
    return dims.names[dimension] if dimension < len(dims.names) else ""
