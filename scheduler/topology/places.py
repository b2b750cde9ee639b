"""Where gangs with a network topology are in one session, and how far each may spread."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.model.jobs import JobInfo
from scheduler.model.subjobs import SOFT, SubJob, Topology
from scheduler.model.tasks import ALLOCATED_SET, NO_NODE, TaskInfo
from scheduler.topology.hypernodes import Domain, HyperNodes

__all__ = ["ANNOTATION", "Places"]

ANNOTATION = "volcano.sh/job-allocated-hypernode"
"""On a PodGroup: the HyperNode that the running gang occupies."""


class Places:
    """Domains by gang and by part of a gang, as far as they hold nodes; found again from where the pods are.

    `of_job` and `of_sub` go by uid. A plan moves `of_sub` while it is tried; `keep` makes it last. `trying` is the domain
    inside which tasks are being placed at the moment.
    """

    def __init__(self, tree: HyperNodes, jobs: Iterable[JobInfo]) -> None:
        self.tree = tree
        self.of_job: dict[str, Domain] = {}
        self.of_sub: dict[str, Domain] = {}
        self.trying: Domain | None = None
        self._subs: dict[str, list[str]] = {}
        self.find(jobs)

    def find(self, jobs: Iterable[JobInfo]) -> None:
        """Find where some jobs are."""
        for job in jobs:
            if job.parts is not None:
                self._recover(job)

    def forget(self, jobs: Iterable[JobInfo]) -> None:
        """Forget where some jobs are."""
        for job in jobs:
            self.of_job.pop(job.uid, None)
            for sub in self._subs.pop(job.uid, ()):
                self.of_sub.pop(sub, None)

    def copy(self) -> Places:
        """The same, to be moved about in one session."""
        found = Places(self.tree, ())
        found.of_job, found.of_sub = dict(self.of_job), dict(self.of_sub)
        return found

    # -- limits --------------------------------------------------------------------------------------------------------

    def job_limit(self, job: JobInfo) -> int | None:
        """The highest tier over which a gang may spread; None when nothing is set.

        Soft means: up to the top, lower tiers first. Hard without a tier, or with an unknown name, sets no limit.
        """
        topology = job.parts.topology if job.parts is not None else None
        return self.tree.top.tier if topology is not None and topology.mode == SOFT else self._limit(topology)

    def sub_limit(self, sub: SubJob) -> int | None:
        """The same for a part; a soft one inside a limited gang goes up to the gang's limit."""
        if sub.topology is None or sub.topology.mode != SOFT:
            return self._limit(sub.topology)
        limit = self.job_limit(sub.job)
        return self.tree.top.tier if limit is None else limit

    def is_planned(self, job: JobInfo) -> bool:
        """Whether a gang is placed domain by domain, part by part."""
        parts = job.parts
        if parts is None:
            return False
        return bool(parts.policies) or self.job_limit(job) is not None or self.is_limited(parts.sub_jobs.values())

    def is_limited(self, subs: Iterable[SubJob]) -> bool:
        """Whether any of some parts has a limit."""
        return any(self.sub_limit(sub) is not None for sub in subs)

    def _limit(self, topology: Topology | None) -> int | None:
        if topology is None:
            return None
        return topology.tier if topology.tier is not None else self.tree.tier_called(topology.tier_name)

    # -- places --------------------------------------------------------------------------------------------------------

    def grow(self, sub: SubJob, row: int) -> None:
        """A task of a part was given a node: its domain takes that node in."""
        leaf = int(self.tree.leaf[row])
        if leaf >= 0:
            found = self.tree.common(self.of_sub.get(sub.uid), self.tree.domains[leaf])
            assert found is not None
            self.of_sub[sub.uid] = found

    def put(self, sub: SubJob, domain: Domain | None) -> None:
        """Set or clear a part's domain."""
        if domain is None:
            self.of_sub.pop(sub.uid, None)
        else:
            self.of_sub[sub.uid] = domain

    def keep(self, job: JobInfo, domain: Domain) -> None:
        """A gang was committed into a domain: from here on it is bound to it."""
        found = self.tree.common(self.of_job.get(job.uid), domain)
        assert found is not None
        self.of_job[job.uid] = found

    def _recover(self, job: JobInfo) -> None:
        assert job.parts is not None
        if not any(job.by_status[status] for status in ALLOCATED_SET):
            return
        for sub in job.parts.sub_jobs.values():
            rows = _rows(sub.tasks.values())
            if rows and sub.topology is not None:
                self.of_sub[sub.uid] = self.tree.holding(rows)
                self._subs.setdefault(job.uid, []).append(sub.uid)
        rows = _rows(job.tasks.values())
        if rows:
            said = self.tree.by_name.get(job.annotations.get(ANNOTATION) or "")
            self.of_job[job.uid] = said if said is not None and said.mask[rows].all() else self.tree.holding(rows)


def _rows(tasks: Iterable[TaskInfo]) -> list[int]:
    return [task.node for task in tasks if task.status in ALLOCATED_SET and task.node != NO_NODE]
