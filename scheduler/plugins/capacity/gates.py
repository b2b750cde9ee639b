"""Room that is kept for tasks which their queue's gate let through, until they have a node.

A pod may ask (by an annotation) to be held by a gate until its queue has room for it. Once the gate is off the pod waits
for a node like any other; others must not take its queue's room meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Ints
from scheduler.model.tasks import TaskInfo

if TYPE_CHECKING:
    from scheduler.framework.session import Session


@dataclass(slots=True)
class Kept:
    """What is kept in one queue, and for which tasks. `asks`: a task at the gate is being looked at, which keeps nothing yet."""

    queue: QueueInfo
    total: Ints
    tasks: dict[str, TaskInfo] = field(default_factory=dict)
    asks: bool = False


class Gates:
    """By queue. Tasks that were let through earlier are found again by their annotation."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._kept: dict[str, Kept] = {}
        if any(cls.gate for cls in ssn.classes):
            for job in ssn.active():
                for task in job.pending():
                    if task.cls.gate and not task.gated:
                        self.keep(job.queue, task)

    def kept(self, queue: str) -> Kept | None:
        """What is kept in a queue; None when nothing is."""
        return self._kept.get(queue)

    def keep(self, queue: str, task: TaskInfo) -> None:
        """Keep room for a task."""
        found = self._kept.get(queue)
        if found is None:
            found = self._kept[queue] = Kept(self._ssn.queues[queue], np.zeros(self._ssn.dims.width, np.int64))
        if task.uid not in found.tasks:
            found.tasks[task.uid] = task
            found.total = found.total + task.request

    def forget(self, queue: str, task: TaskInfo) -> None:
        """The task has its node: what it holds is counted as such."""
        found = self._kept.get(queue)
        if found is not None and found.tasks.pop(task.uid, None) is not None:
            found.total = found.total - task.request
            if not found.tasks:
                del self._kept[queue]

    @contextmanager
    def asking(self, queue: str) -> Iterator[None]:
        """Look at the room of a queue for a task that keeps nothing there yet."""
        found = self._kept.get(queue)
        if found is None:
            yield
            return
        found.asks = True
        try:
            yield
        finally:
            found.asks = False
