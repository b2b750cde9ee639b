"""drf: dominant resource fairness between jobs. Who holds the smallest part of what he holds most of goes first.

With `enableHierarchy` also between queues, along the paths that their annotations give. With `enableNamespaceOrder` also
between the namespaces of a queue, by weights that their ResourceQuotas give (`volcano.sh/namespace.weight`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import Event
from scheduler.framework.registry import plugin
from scheduler.framework.turns import Hierarchy
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.quotas import Quota
from scheduler.model.resources import Ints, Rows
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins.fair_tree import FairTree
from scheduler.plugins.holdings import total_request

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

WEIGHT = "volcano.sh/namespace.weight"
_SAME = 1e-6
"""Shares closer than this are equal, in favour of eviction."""


@plugin
class Drf:
    """Dominant resource fairness over every dimension that the cluster has, pods included."""

    name: ClassVar[str] = "drf"
    _owned: Rows
    _total: Ints
    _ssn: Session
    _tree: FairTree
    _namespaces: Namespaces | None

    def __init__(self, arguments: Arguments) -> None:
        """drf has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        self._owned = np.flatnonzero(ssn.total.values > 0)
        self._total = ssn.total.values[self._owned]
        ssn.add_job_order(self.name, self.job_share)
        ssn.add_preemptable(self.name, self.victims)
        self._namespaces = None
        if ssn.is_on(self.name, "enableNamespaceOrder"):
            self._namespaces = spaces = Namespaces(ssn, self.share)
            ssn.add_namespace_order(self.name, spaces.weighted)
            ssn.add_handlers(lambda event: spaces.take(event, 1), lambda event: spaces.take(event, -1))
        if ssn.is_hierarchical(self.name):
            self._ssn = ssn
            self._tree = tree = _tree_of(ssn, self._owned)
            ssn.add_queue_order(self.name, Hierarchy(tree.path, lambda node: node.key, stamp=lambda: tree.moved))
            ssn.add_reclaimable(self.name, self.reclaimed)
            ssn.add_handlers(lambda event: self._take(event, 1), lambda event: self._take(event, -1))

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

        Candidates are taken off their job one after the other, victim or not. Of other namespaces, where these count, those
        go whose namespace keeps a larger weighted share; only where it comes out even the jobs are compared.
        """
        if preemptor.job is None:
            return []
        if self._namespaces is not None:
            chosen, candidates = self._namespaces.judge(preemptor, candidates)
            return [*chosen, *self._of_jobs(preemptor, candidates)]
        return self._of_jobs(preemptor, candidates)

    def _of_jobs(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        assert preemptor.job is not None
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

    def reclaimed(self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Candidates without each of which alone the reclaimer's queue, with it, would still come before theirs."""
        job, tree = reclaimer.job, self._tree
        if job is None:
            return []
        queue = self._ssn.queues[job.queue]
        with tree.supposing(queue, job, reclaimer.request):
            return [task for task in candidates if self._still_first(queue, task)]

    def _still_first(self, queue: QueueInfo, task: TaskInfo) -> bool:
        if task.job is None or task.job.uid not in self._ssn.jobs:
            return False
        theirs = self._ssn.queues[task.job.queue]
        with self._tree.supposing(theirs, task.job, -task.request):
            return self._tree.goes_before(queue, theirs)

    def _take(self, event: Event, times: int) -> None:
        job = event.job
        if job is not None and job.uid in self._ssn.jobs:
            self._tree.take(self._ssn.queues[job.queue], job, event.total * times)


class Namespaces:
    """What each namespace holds, against its weight."""

    def __init__(self, ssn: Session, share: Callable[[Ints], float]) -> None:
        self._share = share
        self._held: defaultdict[str, Ints] = defaultdict(lambda: np.zeros(ssn.dims.width, np.int64))
        self._weights = {name: weight_of(quotas) for name, quotas in ssn.quotas.items()}
        for job in ssn.jobs.values():
            self._held[job.namespace] += holding(job)

    def take(self, event: Event, times: int) -> None:
        """Follow tasks that got or lost a node."""
        if event.job is not None:
            self._held[event.job.namespace] += event.total * times

    def weighted(self, name: str, more: Ints | int = 0) -> float:
        """A namespace's dominant share over its weight, perhaps with more than it holds."""
        return self._share(self._held[name] + more) / self._weights.get(name, 1)

    def judge(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> tuple[list[TaskInfo], list[TaskInfo]]:
        """Candidates of namespaces that keep more than the preemptor's comes to; and those of which nothing follows."""
        ours = self.weighted(preemptor.namespace, preemptor.request)
        gone: defaultdict[str, Ints] = defaultdict(lambda: np.zeros_like(preemptor.request))
        chosen, open_ = [], []
        for task in candidates:
            if task.namespace == preemptor.namespace:
                open_.append(task)
                continue
            gone[task.namespace] += task.request
            theirs = self.weighted(task.namespace, -gone[task.namespace])
            if ours < theirs:
                chosen.append(task)
            elif ours - theirs <= _SAME:
                open_.append(task)
        return chosen, open_


def weight_of(quotas: Iterable[Quota]) -> int:
    """The largest weight that a namespace's quotas give it; 1 where none gives a positive one."""
    given = (limit.hard // 1000 for quota in quotas for limit in quota.limits if limit.resource == WEIGHT)
    return max((weight for weight in given if weight > 0), default=1)


def _tree_of(ssn: Session, owned: Rows) -> FairTree:
    tree = FairTree(ssn.total.values, owned)
    for queue in sorted(ssn.queues.values(), key=lambda queue: (queue.creation, queue.name)):
        tree.path(queue)
        for job in queue.jobs.values():
            tree.add(queue, job, job.allocated, total_request(job))
    tree.settle()
    return tree


def holding(job: JobInfo) -> Ints:
    """What a job holds and what is reserved for it in this session."""
    held = job.allocated
    for task in job.by_status[TaskStatus.PIPELINED].values():
        held = held + task.request
    return held
