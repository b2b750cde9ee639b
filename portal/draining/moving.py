"""Waiting jobs into another queue. A job's queue cannot be changed, so a copy is made there and the job is deleted.

Job by job: the copy is tried first, and nothing is deleted before it stands. Whoever runs meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from cluster import documents, runtime
from cluster.access import policy
from cluster.errors import ApiError, Conflict, NotFound
from cluster.kinds import JOB
from cluster.port import Obj
from cluster.said import told, words
from jobs import operations, writes
from jobs.models import Job
from jobs.submit import clone

MOST = 200
"""Jobs of one request."""
TRIES = 5
"""Looks at a job that is written again and again meanwhile."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one job: `new` is its copy, else `why` says what kept it."""

    job: Job
    new: Job | None = None
    why: str = ""


def waiting(user: Any, queue: str) -> list[Job]:
    """Jobs of a queue that wait, oldest first, as far as the user may see them."""
    found = policy().visible(user, Job.objects.filter(queue=queue, phase="Pending", deleted_at=None))
    return list(found.order_by("created_at", "uid")[:MOST])


def move(user: Any, jobs: Sequence[Job], target: str) -> list[Moved]:
    """Move each to an open queue; one that cannot be moved keeps none of the others."""
    return [_moved(user, job, target) for job in jobs]


def _moved(user: Any, job: Job, target: str) -> Moved:
    if not policy().may(user, "jobs.act", job):
        return Moved(job, why=_("Only its owner and administrators may act on it."))
    if job.made_by:
        return Moved(job, why=_("It belongs to a flow or a cron job, which would make it again: change that."))
    try:
        manifest = documents.load(clone.manifest(job, {"spec": {"queue": target}}))[0].obj
        operations.submit(runtime.current(), manifest, owner=job.owner, dry_run=True)
        live, why = _looked_at(job)
        if why:
            return Moved(job, why=why)
        made = writes.submit(manifest, job.owner)
    except NotFound:
        return Moved(job, why=_("It is gone from the cluster."))
    except (ApiError, ValueError) as error:
        return Moved(job, why=words(told(error)))
    new = Job.objects.get(pk=made["metadata"]["uid"])
    try:
        why = _deleted(job, live)
        if not why:
            return Moved(job, new)
        writes.delete(new)
    except NotFound:
        return Moved(job, new)
    except ApiError as error:
        return Moved(
            job, new, why=_("Its copy stands; the job itself could not be deleted: %(why)s") % {"why": words(error.message)}
        )
    return Moved(job, why=why)


def _looked_at(job: Job) -> tuple[Obj, str]:
    """The job as it is now, and what keeps it from being moved. Raises NotFound."""
    live = runtime.current().get(JOB, job.name, job.namespace)
    phase = ((live.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    if live["metadata"]["uid"] != job.uid or phase != "Pending":
        return live, _("It does not wait any more: its state is %(phase)s.") % {"phase": phase}
    return live, ""


def _deleted(job: Job, live: Obj) -> str:
    """Delete the job as long as it waits; else why it stays. One that was written since it was looked at is looked at again."""
    for left in reversed(range(TRIES)):
        try:
            writes.delete(job, live["metadata"]["resourceVersion"])
            break
        except Conflict:
            if not left:
                raise
            live, why = _looked_at(job)
            if why:
                return why
    return ""
