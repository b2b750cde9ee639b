"""Where a job comes from and what was made of it: the jobs that it is a copy of, and its copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

from jobs.models import Job
from jobs.submit.clone import written

COLUMNS = ("uid", "namespace", "name", "phase", "group_phase", "owner", "created_at", "deleted_at", "cloned_from")
GENERATIONS = 20
MOST = 200

Narrow = Callable[[Any, QuerySet[Job]], QuerySet[Job]]


def ancestors(job: Job, narrow: Narrow, user: Any, most: int = GENERATIONS) -> list[Job]:
    """The job that it is a copy of, the one before that, and so on; as far as the user may see them."""
    found: list[Job] = []
    seen, uid = {job.uid}, job.cloned_from
    while uid and uid not in seen and len(found) < most:
        seen.add(uid)
        before = narrow(user, Job.objects.filter(uid=uid)).only(*COLUMNS).first()
        if before is None:
            break
        found.append(before)
        uid = before.cloned_from
    return found


def copies(job: Job, narrow: Narrow, user: Any) -> QuerySet[Job]:
    """The jobs that are copies of it, the newest first."""
    return narrow(user, Job.objects.filter(cloned_from=job.uid)).only(*COLUMNS).order_by("-created_at")


def text_of(job: Job) -> str:
    """A job's manifest as its author would have written it, for comparing."""
    return written(job)
