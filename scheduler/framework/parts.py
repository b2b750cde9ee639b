"""How plugins' answers about parts of gangs, and about the domains where these may run, combine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scheduler.framework.plugin import Vote

if TYPE_CHECKING:
    from scheduler.framework.session import Session
    from scheduler.model.jobs import JobInfo
    from scheduler.model.subjobs import SubJob
    from scheduler.topology.hypernodes import Domain

Rows = list[list["Domain"]]
"""Domains to try, row by row: within a row the best plan is taken, and the next row only when the one before has none."""


class PartRules:
    """A session's rules for sub-jobs. Where a gang has no policies, its one part is judged as the gang."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._order = ssn.functions("sub_job_order")
        self._ready = ssn.functions("sub_job_ready")
        self._pipelined = [[item for _, item in tier] for tier in ssn.named("sub_job_pipelined")]
        self._scores = ssn.functions("hyper_node_order")
        self._gradients: dict[str, Any] = {
            kind: next(iter(ssn.functions(f"hyper_node_gradient_{kind}")), None) for kind in ("job", "sub_job")
        }

    def ready(self, sub: SubJob) -> bool:
        """All agree, or nobody is asked."""
        if not _divided(sub):
            return self._ssn.job_ready(sub.job)
        return all(item.check(sub) for item in self._ready)

    def lacking(self, sub: SubJob) -> int:
        """At least so many more tasks, and at least one, must be allocated before the part can be ready."""
        if not _divided(sub):
            return self._ssn.lacking(sub.job)
        return max(1, *(int(item.lacking(sub)) for item in self._ready if item.lacking is not None), 1)

    def pipelined(self, sub: SubJob) -> bool:
        """Any rejection refuses; the first tier with a permit decides; nobody objecting is enough."""
        if not _divided(sub):
            return self._ssn.job_pipelined(sub.job)
        for tier in self._pipelined:
            votes = [check(sub) for check in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    def key(self, sub: SubJob) -> tuple[Any, ...]:
        """Where a part stands among those of its gang; ends with match index and uid."""
        return (*(key(sub) for key in self._order), sub.match_index, sub.uid)

    def required(self, subs: Sequence[SubJob], job: JobInfo) -> set[str]:
        """Of parts in order, the uids of the first that each policy still lacks for its number of ready ones."""
        assert job.parts is not None
        least = {policy.name: policy.least for policy in job.parts.policies}
        count = {name: sum(map(self.ready, job.parts.of_group(name))) for name in least}
        found = set()
        for sub in subs:
            if sub.group in least and not self.ready(sub) and count[sub.group] < least[sub.group]:
                count[sub.group] += 1
                found.add(sub.uid)
        return found

    # -- domains -------------------------------------------------------------------------------------------------------

    def domains_for_job(self, job: JobInfo, within: Domain, *, evicting: bool = False) -> Rows:
        """Where a gang may be tried, row by row: the first plugin's answer, else the given domain."""
        return self._domains("job", job, within, evicting)

    def domains_for_sub_job(self, sub: SubJob, within: Domain, *, evicting: bool = False) -> Rows:
        """The same for a part of a gang."""
        return self._domains("sub_job", sub, within, evicting)

    def _domains(self, kind: str, who: Any, within: Domain, evicting: bool) -> Rows:
        gradient = self._gradients[kind]
        if gradient is None:
            return [[within]]
        rows: Rows = gradient(who, within, evicting)
        return rows

    def scores(self, sub: SubJob, domains: Sequence[Domain]) -> list[float]:
        """How good each domain is for a part, summed over plugins."""
        total = [0.0] * len(domains)
        for score in self._scores:
            total = [a + b for a, b in zip(total, score(sub, domains), strict=True)]
        return total


def _divided(sub: SubJob) -> bool:
    return sub.job.parts is not None and bool(sub.job.parts.policies)
