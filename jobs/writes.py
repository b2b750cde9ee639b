"""Writes that people make to jobs: through the operations, and projected at once so that the next page shows them."""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError

from cluster import runtime
from cluster.errors import ApiError, NotFound
from cluster.kinds import JOB
from cluster.port import Obj
from cluster.projection import Batch
from jobs import operations
from jobs.blueprints import operations as blueprints
from jobs.models import Job
from jobs.pages.defaulted import filled
from jobs.projection import project_jobs

log = logging.getLogger(__name__)


def submit(manifest: Any, owner: str) -> Obj:
    """Create a job. Raises what `operations.submit` does, or DatabaseError: a job that cannot be shown is not kept.

    One that says that it comes from a blueprint is held to that: Invalid when it is not as that allows.
    """
    cluster = runtime.current()
    made_from = blueprints.claim_of(owner, manifest)
    obj = operations.submit(cluster, manifest, owner=owner)
    try:
        project_jobs(Batch(upserts=[obj]))
        if made_from is not None:
            blueprints.used(made_from, obj["metadata"]["uid"], owner)
    except DatabaseError:
        meta = obj["metadata"]
        try:
            operations.delete(cluster, meta["namespace"], meta["name"], uid=meta["uid"])
        except ApiError as error:
            log.warning("%s/%s cannot be shown, and could not be taken back: %s", meta["namespace"], meta["name"], error)
        raise
    if isinstance(manifest, dict):  # what was written is seen here alone
        Job.objects.filter(pk=obj["metadata"]["uid"]).update(defaulted=filled(manifest, obj))
    return obj


def act(job: Job, action: str, user: str) -> bool:
    """Ask for an action on exactly this job; whether there was anything to ask. Raises what `operations.act` does."""
    asked = operations.act(runtime.current(), job.namespace, job.name, action, uid=job.uid, user=user)
    renew(job)
    return asked is not None


def delete(job: Job, version: str = "") -> None:
    """Delete exactly this job, only as it was at a version if one is given. Raises what `operations.delete` does."""
    operations.delete(runtime.current(), job.namespace, job.name, uid=job.uid, version=version)
    renew(job)


def renew(job: Job) -> None:
    """Show the job as the cluster has it now."""
    try:
        obj = runtime.current().get(JOB, job.name, job.namespace)
    except NotFound:
        obj = None
    is_same = obj is not None and obj["metadata"]["uid"] == job.uid
    project_jobs(Batch(upserts=[obj]) if obj is not None and is_same else Batch(gone=[job.uid]))
