"""The first access policy: the signed-in see everything, a job's owner may act on it, staff may do all."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from cluster.access import ALL

M = TypeVar("M", bound=Model)

EVERYBODY = frozenset(
    {
        "jobs.view", "jobs.submit", "logs.view", "queues.view", "nodes.view", "pods.view", "podgroups.view", "events.view",
        "scheduler.view", "simulations.view", "simulations.run",
    }
)  # fmt: skip
OWNERS = frozenset({"jobs.act", "pods.act", "simulations.act", "blueprints.act"})
STAFF = frozenset(
    {
        "queues.change", "nodes.change", "podgroups.act", "objects.apply", "workload.start", "scheduler.source", "views.change",
        "scheduler.change", "scheduler.try", "scheduler.snapshot",
        "blueprints.change",
    }
)  # fmt: skip


class StaffPolicy:
    """Three ranks: signed in, owner of the thing, staff. Whoever is not signed in, or no longer active, may do nothing."""

    def visible(self, user: Any, queryset: QuerySet[M]) -> QuerySet[M]:
        return queryset if _known(user) else queryset.none()

    def may(self, user: Any, action: str, obj: Any = None) -> bool:
        if not _known(user) or action not in EVERYBODY | OWNERS | STAFF:
            return False
        if user.is_staff or action in EVERYBODY:
            return True
        return action in OWNERS and obj is not None and bool(obj.owner) and obj.owner == user.get_username()

    def rights(self, user: Any) -> str:
        return ALL if _known(user) else "none"


def _known(user: Any) -> bool:
    return bool(user and user.is_authenticated and user.is_active)
