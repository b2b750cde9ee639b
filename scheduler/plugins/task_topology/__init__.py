"""task-topology: roles of a job that talk much share nodes, others keep apart, as annotations of the PodGroup ask.

`volcano.sh/task-topology-affinity: "ps,worker;evaluator"` (groups that want to be together; one role alone: its own tasks),
`volcano.sh/task-topology-anti-affinity` (the same, apart), `volcano.sh/task-topology-task-order: "ps,worker"`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE, Event
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block, NodeTable
from scheduler.model.resources import Floats, Ints
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins.task_topology import wishes
from scheduler.plugins.task_topology.buckets import Bucket, Buckets, compared, role_of

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

logger = logging.getLogger(__name__)

_GIVEN = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


@plugin
class TaskTopology:
    """Tasks that belong together are in a bucket; a node is as good as what it has and can take of a task's bucket.

    Argument: `task-topology.weight` (1). Tasks of roles of which nothing is said are in no bucket and come last.
    """

    name: ClassVar[str] = "task-topology"
    _nodes: NodeTable

    def __init__(self, arguments: Arguments) -> None:
        self._weight = arguments.integer("task-topology.weight", 1)
        self._jobs: dict[str, Buckets] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._nodes = ssn.nodes
        for job in ssn.active():
            if job.count(TaskStatus.PENDING) and (found := self._buckets(ssn, job)) is not None:
                self._jobs[job.uid] = found
        if self._jobs:
            ssn.add_task_order(self.name, self.order)
            if self._weight:
                ssn.add_task_score(self.name, self.score, self._is_in_bucket)
            ssn.add_handlers(self._allocated, self._deallocated)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def _buckets(self, ssn: Session, job: JobInfo) -> Buckets | None:
        try:
            wished = wishes.read(job.annotations, {task.role for task in job.tasks.values()})
        except ValueError as error:
            _tell_once(ssn, job, str(error))
            return None
        if wished is None:
            return None
        found = Buckets(wished, ssn.dims)
        found.fill(job.tasks.values(), {task.uid: name for task in job.tasks.values() if (name := self._node_of(task))})
        return found

    def _node_of(self, task: TaskInfo) -> str:
        """The node that a task is or was on."""
        return self._nodes.names[task.node] if task.node >= 0 else str(task.pod["spec"].get("nodeName") or "")

    # -- what it says --------------------------------------------------------------------------------------------------

    def order(self, task: TaskInfo) -> tuple[int, ...]:
        """Where a task stands in its job, by the buckets as they were filled when the session opened."""
        buckets = self._of(task)
        return buckets.order(task) if buckets is not None else (1,)

    def score(self, task: TaskInfo, at: Block) -> Floats:
        """What of the task's bucket is on each node or has room there, against the largest bucket of the job.

        Tasks of this session that it wants to avoid count against a node; one that lacks room for the task itself has 0.
        """
        buckets = self._of(task)
        bucket = buckets.of(task) if buckets is not None else None
        if buckets is None or bucket is None:
            return np.zeros(len(at))
        role, names = role_of(task), [self._nodes.names[row] for row in at.rows.tolist()]
        there = np.array([
            bucket.on_node[name] - buckets.wishes.repulsion(role, buckets.company(name)) for name in names
        ], np.int64)  # fmt: skip
        free = at.allocatable - at.used + at.releasing
        points = there + _with_room(bucket, task, free)
        points[~(free >= task.cls.floor).all(axis=1)] = 0
        scores: Floats = points * self._weight * MAX_NODE_SCORE / buckets.largest
        return scores

    def _of(self, task: TaskInfo) -> Buckets | None:
        return self._jobs.get(task.job.uid) if task.job is not None else None

    def _is_in_bucket(self, task: TaskInfo) -> bool:
        buckets = self._of(task)
        return buckets is not None and buckets.of(task) is not None

    # -- what happens --------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        for task in event.tasks:
            buckets = self._of(task)
            if buckets is not None and task.status in _GIVEN:
                buckets.place(task, self._nodes.names[task.node])

    def _deallocated(self, event: Event) -> None:
        for task in event.tasks:
            buckets = self._of(task)
            if buckets is not None:
                buckets.take_back(task)


def _with_room(bucket: Bucket, task: TaskInfo, free: Ints) -> Ints:
    """How many waiting tasks of a bucket fit into each row together with the task, the last ones left out first."""
    left = bucket.request.copy()
    places = np.flatnonzero(compared(left))
    count: Ints = np.full(len(free), len(bucket.waiting), np.int64)
    over = ~(free[:, places] >= left[places]).all(axis=1)
    for other in bucket.still_waiting():
        if not over.any():
            break
        if other is not task:
            left -= other.request
            count -= over
            over &= ~(free[:, places] >= left[places]).all(axis=1)
    return count


def _tell_once(ssn: Session, job: JobInfo, trouble: str) -> None:
    """Say in the log what is wrong with a job's annotations, once for each text."""
    told: dict[str, str] = ssn.memo.setdefault(TaskTopology.name, {})
    if told.get(job.uid) != trouble:
        for gone in told.keys() - ssn.jobs.keys():
            del told[gone]
        told[job.uid] = trouble
        logger.warning("%s: %s; its tasks are placed without", job.uid, trouble)
