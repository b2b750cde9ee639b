"""What a timeline is drawn from: when pods lived, what kept the job waiting, what was decided, what its queue had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet

from cluster.quantities import is_gpu
from jobs import starts
from jobs.models import Hold, Job, PhaseChange, Pod, Task
from queues.history import History, queue_over_time

MOST = 60
"""Moments of one kind that are drawn, the newest."""
LONGEST = timedelta(days=7)
"""How far back the queue's shares are kept."""
LAG = timedelta(seconds=5)
"""What may pass until an admission is told; nodes are stamped by the scheduler itself, and may so be stamped before it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that was decided about the job: a code, when, and the numbers that its sentence needs."""

    at: datetime
    code: str
    values: dict[str, Any] = field(default_factory=dict)


Source = Callable[[str], Sequence[Moment]]
sources: list[Source] = []
"""Who knows of more decisions about a job, by its uid: the rooms above add themselves."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it. `queue` is the share of the job's queue over the job's life, None where nothing was sampled.

    `start` is when a job that waits is likely to start, None where nothing is foretold.
    """

    holds: Sequence[Hold] = ()
    moments: Sequence[Moment] = ()
    queue: History | None = None
    start: starts.Start | None = None


def gather(job: Job, changes: Sequence[PhaseChange], pods: QuerySet[Pod], tasks: Sequence[Task], present: datetime) -> Facts:
    """Read it: a constant number of statements, and no pod by itself."""
    holds = list(Hold.objects.filter(job_uid=job.uid).order_by("-since", "-id")[:MOST])[::-1]
    bound = pods.exclude(scheduled_at=None).order_by().values("scheduled_at")
    bound = bound.annotate(pods=Count("pk"), nodes=Count("node", distinct=True)).order_by("-scheduled_at")[:MOST]
    moments = [Moment(job.created_at, "submitted", {"who": job.owner})]
    placed = [Moment(row["scheduled_at"], "bound", {"pods": row["pods"], "nodes": row["nodes"]}) for row in bound]
    moments += [*_admitted(changes, [moment.at for moment in placed]), *placed]
    for source in sources:
        moments += source(job.uid)
    begin = max(min([job.created_at, *(change.at for change in changes)]), present - LONGEST)
    end = job.finished_at or job.deleted_at or present
    shares = queue_over_time([job.queue], _resource(tasks), max(end - begin, timedelta(seconds=60)), end)
    start = starts.likely([job]).get(job.uid) if starts.waits(job) else None
    return Facts(holds, sorted(moments, key=lambda moment: moment.at), shares if shares.times else None, start)


def _resource(tasks: Sequence[Task]) -> str:
    """What the job competes for: GPUs where it asks any."""
    return next((name for task in tasks for name in sorted(task.requests) if is_gpu(name)), "cpu")


def _admitted(changes: Sequence[PhaseChange], bound: Sequence[datetime]) -> list[Moment]:
    """Each time that the gang was let in: at the latest when its pods were given nodes."""
    found, before = [], ""
    for change in changes:
        if change.group_phase == "Inqueue" != before:
            at = min((at for at in bound if change.at - LAG < at < change.at), default=change.at)
            found.append(Moment(max(at, changes[0].at), "admitted"))
        before = change.group_phase or before
    return found
