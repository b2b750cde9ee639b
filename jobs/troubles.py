"""Pods that run into trouble beside a job's own phase: images that cannot be pulled, containers that crash again and again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count, Min

from cluster.port import Obj
from jobs.choices import PodPhase
from jobs.models import Job, Pod

TROUBLES = (
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RegistryUnavailable",
    "RunContainerError",
)
"""Reasons for which a kubelet lets a container wait that do not pass by themselves."""


def in_trouble(statuses: Iterable[Obj]) -> Obj:
    """Why the first of these containers that is in trouble waits (`reason`, `message`); empty when none is."""
    waiting = ((container.get("state") or {}).get("waiting") or {} for container in statuses)
    return next((found for found in waiting if found.get("reason") in TROUBLES), {})


def renew(job_uids: Collection[str]) -> set[str]:
    """Bring `Job.trouble` of these jobs up to date; the uids of those that changed. Call it inside `writing(Job)`."""
    found: dict[str, dict[str, Any]] = {}
    alive = Pod.objects.filter(job_uid__in=job_uids, deleted_at=None, phase__in=(PodPhase.PENDING, PodPhase.RUNNING))
    held = alive.filter(reason__in=TROUBLES).order_by().values("job_uid", "reason")
    for row in held.annotate(pods=Count("pk"), pod=Min("name")).order_by("pods", "-reason"):  # what most have comes last
        found[row["job_uid"]] = {"reason": row["reason"], "pods": row["pods"], "pod": row["pod"]}
    changed = []
    for job in Job.objects.filter(pk__in=job_uids).only("uid", "trouble"):
        if job.trouble != found.get(job.uid):
            job.trouble = found.get(job.uid)
            changed.append(job)
    Job.objects.bulk_update(changed, ["trouble"], batch_size=500)
    return {job.uid for job in changed}
