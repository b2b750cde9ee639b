"""drf: dominant resource fairness between jobs. Who holds the smallest part of what he holds most of goes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo, TaskInfo, TaskStatus
from scheduler.model.resources import Ints, Rows

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_SAME = 1e-6
"""Shares closer than this are equal, in favour of eviction."""


@plugin
class Drf:
    """Flat dominant resource fairness over every dimension that the cluster has, pods included."""

    name: ClassVar[str] = "drf"
    _owned: Rows
    _total: Ints

    def __init__(self, arguments: Arguments) -> None:
        """drf has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        self._owned = np.flatnonzero(ssn.total.values > 0)
        self._total = ssn.total.values[self._owned]
        ssn.add_job_order(self.name, self.job_share)
        ssn.add_preemptable(self.name, self.victims)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def share(self, held: Ints) -> float:
        """The largest part of a cluster total that `held` is."""
        if not self._owned.size:
            return 0.0
        return float((held[self._owned] / self._total).max())

    def job_share(self, job: JobInfo) -> float:
        """A job's dominant share; what it only waits for on a node (pipelined) counts."""
        if not job.waiting_count() and not job.ready_count():
            return 0.0
        return self.share(holding(job))

    def victims(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Candidates whose job keeps at least the share that the preemptor's job comes to.

        Candidates are taken off their job one after the other, victim or not.
        """
        if preemptor.job is None:
            return []
        ours = self.share(holding(preemptor.job) + preemptor.request)
        left: dict[str, Ints] = {}
        found = []
        for task in candidates:
            job = task.job
            if job is None:
                continue
            held = left[job.uid] = left.get(job.uid, holding(job)) - task.request
            theirs = self.share(held)
            if ours < theirs or abs(ours - theirs) <= _SAME:
                found.append(task)
        return found


def holding(job: JobInfo) -> Ints:
    """What a job holds and what is reserved for it in this session."""
    held = job.allocated
    for task in job.by_status[TaskStatus.PIPELINED].values():
        held = held + task.request
    return held
