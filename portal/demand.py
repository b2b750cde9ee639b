"""What waiting jobs asked for, over time: read off the jobs' own instants, since what never ran is in no queue's share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.db.models import F, Q

from cluster.access import policy
from jobs.choices import JobPhase
from jobs.models import Job

COLUMNS = ("gpus", "created_at", "phase", "phase_since", "started_at", "finished_at", "deleted_at")


def asked_over_time(user: Any, times: Sequence[datetime]) -> list[float]:
    """GPUs that waited at each of `times` (in order), in one query; at the last one, what waits now.

    A job waits from its submission to its first start or its end, and again while it is Pending. One that waited for less
    than a tenth of the distance of two points is not looked at: a chart could not show it.
    """
    if not times:
        return []
    least = (times[-1] - times[0]) / (10 * len(times))
    seen = Q(started_at=None) | Q(started_at__gt=times[0], started_at__gte=F("created_at") + least) | Q(phase=JobPhase.PENDING)
    jobs = policy().visible(user, Job.objects.filter(seen, gpus__gt=0, created_at__lte=times[-1]))
    steps = [0.0] * (len(times) + 1)

    def wait(gpus: float, since: datetime, until: datetime | None) -> None:
        steps[bisect_left(times, since)] += gpus
        steps[bisect_left(times, until) if until else len(times)] -= gpus

    for gpus, made, phase, phase_since, started, finished, deleted in jobs.values_list(*COLUMNS):
        ends = [at for at in (started, finished, deleted) if at]
        if not ends and phase != JobPhase.PENDING:
            ends = [phase_since]  # it was let go before it ever ran
        wait(gpus, made, min(ends) if ends else None)
        if phase == JobPhase.PENDING and started and not deleted:
            wait(gpus, max(phase_since, started), None)
    return list(accumulate(steps[:-1]))
