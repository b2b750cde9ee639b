"""When a job's pods waited and ran, as few rows: pods that began and ended together are one."""

from __future__ import annotations

from django.db.models import Count, QuerySet

from jobs.models import Pod

FIELDS = ("task", "phase", "created_at", "started_at", "finished_at", "deleted_at")


def lives(pods: QuerySet[Pod]) -> list[Pod]:
    """Pods without names, one for each life that some pods of a job had; stamps are of whole seconds, so thousands are few.

    `alike` on each says how many pods had it.
    """
    found = []
    for *values, alike in pods.order_by(*FIELDS).values_list(*FIELDS).annotate(alike=Count("pk")).iterator(2_000):
        life = Pod(**dict(zip(FIELDS, values, strict=True)))
        life.alike = alike  # type: ignore[attr-defined]
        found.append(life)
    return found
