"""resourcequota: no job is admitted whose pods the ResourceQuotas of its namespace would refuse."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, ClassVar

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Answer, Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.quotas import Limit, units
from scheduler.plugins.holdings import total_request

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@plugin
class ResourceQuota:
    """used + admitted in this cycle + minResources ≤ hard, on the resources that a quota and minResources both name.

    Scopes are not looked at. Where nobody counts what is used, the pods that exist are counted.
    """

    name: ClassVar[str] = "resourcequota"
    _ssn: Session

    def __init__(self, arguments: Arguments) -> None:
        """resourcequota has no arguments."""
        self._admitted: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._counted: dict[str, Counter[str]] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        ssn.add_enqueueable(self.name, self.admits)
        ssn.add_enqueued(self.name, self.charge)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def admits(self, job: JobInfo) -> Answer:
        """Whether every quota of the namespace has room for the job's minResources."""
        quotas = self._ssn.quotas.get(job.namespace)
        if job.min_resources is None or not quotas:
            return Vote.PERMIT
        asked = _asked(job)
        for quota in quotas:
            for limit in quota.limits:
                amount = asked.get(limit.resource, 0)
                taken = self._used(job.namespace, limit) + self._admitted[job.namespace][limit.resource]
                if limit.resource in asked and taken + amount > limit.hard:
                    return _refusal(job, limit, amount, limit.hard - taken)
        return Vote.PERMIT

    def charge(self, job: JobInfo) -> None:
        """The job was admitted."""
        if job.min_resources is not None and job.namespace in self._ssn.quotas:
            self._admitted[job.namespace].update(_asked(job))

    def _used(self, namespace: str, limit: Limit) -> int:
        if limit.used is not None:
            return limit.used
        counted = self._counted.get(namespace)
        if counted is None:
            counted = self._counted[namespace] = Counter()
            for job in self._ssn.jobs.values():
                if job.namespace == namespace:
                    counted.update(self._ssn.dims.units(total_request(job, ended=False)))
        return counted[limit.resource]


def _asked(job: JobInfo) -> dict[str, int]:
    """What the PodGroup asks, by plain names of resources."""
    return units((job.obj.get("spec") or {}).get("minResources"), "minResources")


def _refusal(job: JobInfo, limit: Limit, asked: int, free: int) -> Verdict:
    resource = limit.resource.removeprefix("limits.")
    return Verdict(
        Stage.ADMISSION, Code.RESOURCE_QUOTA, job.queue, resource=resource, asked=asked, free=max(free, 0),
        short=asked - free, limit=limit.hard,
    )  # fmt: skip
