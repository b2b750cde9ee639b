"""Gangs that can never start on these nodes, since their pods are larger than any of them.

They are told so at once and charged to no budget, so that they never hold others up. Where the pods are not made yet, the
gang's minResources prove it by the pigeonhole principle: of n pods that together ask more than n times what the largest
node has, one asks more than that node has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import NodeTable
from scheduler.model.resources import PODS, Dimensions, Ints
from scheduler.model.tasks import TaskClass
from scheduler.placement.refusals import resource_name

_CLASSES = 10_000
"""Classes of which is remembered whether they fit; beyond that they are looked at anew."""


class Oversize:
    """What is too large for the nodes as they are; kept while their static columns stay."""

    def __init__(self, nodes: NodeTable, dims: Dimensions) -> None:
        self._nodes, self._dims = nodes, dims
        self._version = -1
        self._offered: Ints = nodes.allocatable[:0]
        self._largest: Any = None
        self._classes: dict[TaskClass, Verdict | None] = {}

    @property
    def is_current(self) -> bool:
        """Whether the nodes are still those by which jobs were marked last."""
        return self._version == self._nodes.static_version

    def mark(self, jobs: Iterable[JobInfo]) -> None:
        """Set or clear `impossible` on jobs."""
        if not self.is_current:
            self._version = self._nodes.static_version
            self._offered = self._nodes.allocatable[self._nodes.live]
            self._largest = self._offered.max(axis=0) if len(self._offered) else None
            self._classes.clear()
        for job in jobs:
            found = self._of_job(job)
            if found != job.impossible:
                job.impossible = found
                job.touch()

    def _of_job(self, job: JobInfo) -> Verdict | None:
        if job.ready_count() >= job.min_available:
            return None  # its gang stands already
        if job.valid_count() < job.min_available:
            return self._by_minimum(job)
        misfits = [task for task in job.pending() if self._of_known(task.cls) is not None]
        placeable = job.valid_count() - len(misfits)
        if not misfits or placeable >= job.min_available:
            return None
        verdict, first = self._of_known(misfits[0].cls), misfits[0]
        assert verdict is not None
        return replace(
            verdict, queue=job.queue, task=first.role or first.name, needed=job.min_available, placeable=placeable
        )  # fmt: skip

    def _of_known(self, cls: TaskClass) -> Verdict | None:
        if cls not in self._classes:
            if len(self._classes) > _CLASSES:
                self._classes.clear()
            self._classes[cls] = self._of_class(cls)
        return self._classes[cls]

    def _of_class(self, cls: TaskClass) -> Verdict | None:
        if self._largest is None:
            return None
        asked, offered = cls.request[cls.compared], self._offered[:, cls.compared]
        if (offered >= asked).all(axis=1).any():
            return None
        largest = offered.max(axis=0)
        # Where each amount for itself is to be had somewhere, the one that the fewest nodes have is the blocker.
        lacking = np.flatnonzero(asked > largest)
        worst = int(lacking[0]) if len(lacking) else int((offered >= asked).sum(axis=0).argmin())
        return self._verdict(int(cls.compared[worst]), int(asked[worst]), int(largest[worst]))

    def _by_minimum(self, job: JobInfo) -> Verdict | None:
        """A verdict when the gang's minResources, shared out evenly, are above the largest node in some dimension."""
        if self._largest is None or job.min_resources is None or job.min_available < 1:
            return None
        needs, count = job.min_resources.values, job.min_available
        for dimension in np.flatnonzero(needs > 0):
            need, largest = int(needs[dimension]), int(self._largest[dimension])
            if dimension != PODS and need > count * largest:
                return replace(self._verdict(int(dimension), -(-need // count), largest), queue=job.queue, needed=count)
        return None

    def _verdict(self, dimension: int, asked: int, largest: int) -> Verdict:
        return Verdict(
            Stage.NODE_FIT,
            Code.POD_TOO_LARGE,
            resource=resource_name(self._dims, dimension),
            asked=asked,
            limit=largest,
            short=max(asked - largest, 0),
            nodes=len(self._nodes),
        )
