"""The nodes that refuse a waiting job for a cause, found on the copy."""

from __future__ import annotations

from typing import Any

from cluster.access import seen
from cluster.errors import Unavailable
from cluster.rejections import Refusing
from jobs import reasons
from jobs.models import Job
from portal.unblock.copy import current
from scheduler.whatif.refused import nodes_by_cause


def refusing(user: Any, uid: str, cause: str) -> Refusing | None:
    """The nodes by name; None for a job that the user may not see, or where the cluster cannot be asked."""
    job = seen(user, Job.objects.filter(uid=uid), "jobs.view")
    if job is None:
        return None
    try:
        with current().pinned() as view:
            manifest = view.job(job.namespace, job.name)
            names = view.alone(lambda: nodes_by_cause(view.sandbox, view.group_of(manifest))) if manifest is not None else {}
    except Unavailable:
        return None
    return Refusing(job.uid, job.name, cause, reasons.cause_label(cause), tuple(names.get(cause, ())))
