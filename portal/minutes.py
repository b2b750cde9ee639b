"""What the scheduler decided in a stretch of time: who was given nodes, and who had to give way to whom.

A job that the viewer may not see is `other`: what it took is told, and no name of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from cluster.access import policy
from jobs.models import Job, PodGroup
from portal import evictions
from portal.models import Eviction, Placement

SHOWN = 50
"""Rows of each kind; those that took most first."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Pods of one job that one cycle gave nodes; `job` is empty for a job that the viewer may not know."""

    at: datetime
    cycle: int
    queue: str
    job: str
    uid: str
    pods: int
    taken: str
    units: dict[str, int]


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a stretch, and how many there are beyond those that are listed."""

    placed: list[Placed]
    placed_total: int
    evicted: evictions.Table
    kept: bool = True
    """False: it was so long ago that some of them are not kept any more."""

    @property
    def nothing(self) -> bool:
        """Whether nothing was decided."""
        return not self.placed_total and not self.evicted.total


def decisions(user: Any, since: datetime, until: datetime, queues: Collection[str] | None = None) -> Decisions:
    """What was decided after `since` and up to `until`, in the queues of these names; in all for None."""
    made = Placement.objects.filter(at__gt=since, at__lte=until)
    left = Eviction.objects.filter(at__gt=since, at__lte=until)
    if queues is not None:
        made = made.filter(queue__in=queues)
        left = left.filter(Q(victim_queue__in=queues) | Q(preemptor_queue__in=queues))
    rows = list(made.order_by("-pods", "-id")[:SHOWN])
    total = len(rows) if len(rows) < SHOWN else made.count()
    gone = list(left[:SHOWN])
    gone_total = len(gone) if len(gone) < SHOWN else left.count()
    kept = _reach(Placement, since) and _reach(Eviction, since)
    return Decisions(_seen(user, rows), total, evictions.Table(evictions.rows(user, gone), gone_total), kept)


def _reach(model: type[Placement | Eviction], since: datetime) -> bool:
    """Whether rows of that time would still be there: the oldest one is older, or was the first of all."""
    oldest = model._default_manager.order_by("pk").values_list("pk", "at").first()
    return oldest is None or oldest[0] == 1 or oldest[1] <= since


def _seen(user: Any, rows: list[Placement]) -> list[Placed]:
    uids = {row.job_uid for row in rows if row.job_uid}
    jobs = dict(policy().visible(user, Job.objects.filter(pk__in=uids)).values_list("uid", "name")) if uids else {}
    bare = {row.job.partition("/")[2] for row in rows if not row.job_uid}
    groups = policy().visible(user, PodGroup.objects.filter(name__in=bare)).values_list("namespace", "name") if bare else ()
    known = {f"{namespace}/{name}" for namespace, name in groups}
    return [
        Placed(
            row.at,
            row.cycle,
            row.queue,
            jobs.get(row.job_uid, "") if row.job_uid else row.job.partition("/")[2] if row.job in known else "",
            row.job_uid if row.job_uid in jobs else "",
            row.pods,
            evictions.freed(row.taken),
            row.taken,
        )
        for row in rows
    ]
