"""What queues hold, ask and may have: arithmetic that the plugins which share resources among queues have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import CPU, MEMORY, PODS, Amounts, Ints
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus

_LIVING = (TaskStatus.PIPELINED, TaskStatus.RELEASING, TaskStatus.UNKNOWN)
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
"""Statuses whose requests are not in `JobInfo.requested`."""

OPEN_ENDED = 1 << 62
"""An amount that limits nothing; sums stop at it, so that absurd amounts do not wrap around."""


def guaranteed(queues: Iterable[QueueInfo], width: int) -> Ints:
    """The sum of guarantees."""
    sums = [0] * width
    for queue in queues:
        sums = [min(have + more, OPEN_ENDED) for have, more in zip(sums, queue.guarantee.values.tolist(), strict=True)]
    return np.array(sums, np.int64)


def limits(capability: Amounts) -> Ints:
    """A capability as limits: a cpu or memory that is missing or 0 is no limit, and so is a missing scalar."""
    named = capability.present.copy()
    named[[CPU, MEMORY]] &= capability.values[[CPU, MEMORY]] > 0
    return np.where(named, np.minimum(capability.values, OPEN_ENDED), OPEN_ENDED)


def real_capability(queue: QueueInfo, lendable: Ints) -> Ints:
    """The most that a queue can ever have: what no guarantee holds back and its own guarantee, below its capability."""
    real: Ints = np.minimum(lendable + np.minimum(queue.guarantee.values, OPEN_ENDED), limits(queue.capability))
    return real


def total_request(job: JobInfo, *, ended: bool = True) -> Ints:
    """What all of a job's tasks ask, whatever became of them; those that ended only when they are asked for."""
    asked = job.requested
    for status in (*_LIVING, *_ENDED) if ended else _LIVING:
        for task in job.by_status[status].values():
            asked = asked + task.request
    return asked


class Terms:
    """Dimension and amount of everything that a class, or some tasks together, ask for, pods apart; found once a class."""

    def __init__(self) -> None:
        self._found: dict[TaskClass, list[tuple[int, int]]] = {}

    def __call__(self, cls: TaskClass) -> list[tuple[int, int]]:
        found = self._found.get(cls)
        if found is None:
            places = np.flatnonzero(cls.request > 0).tolist()
            found = self._found[cls] = [(place, int(cls.request[place])) for place in places if place != PODS]
        return found

    def together(self, tasks: Sequence[TaskInfo]) -> list[tuple[int, int]]:
        """The same for the sum of some tasks."""
        sums: Counter[int] = Counter()
        for cls, count in Counter(task.cls for task in tasks).items():
            sums.update({place: amount * count for place, amount in self(cls)})
        return sorted(sums.items())
