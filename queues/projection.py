"""Queues as rows: what the object says, how many PodGroups stand where, and what the scheduler computed last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from cluster import objects
from cluster.kinds import QUEUE
from cluster.port import Obj
from cluster.projection import Batch, Projection, apply, common, differs, notify, writing
from queues.changes import record
from queues.choices import QueueState
from queues.models import Queue
from queues.queries import capacity
from queues.sampling import Sampler
from queues.tree import parent_of

SHARES = ("share", "share_allocated", "share_deserved", "share_request", "share_inqueue")
GROUPS = ("groups_pending", "groups_inqueue", "groups_running", "groups_unknown", "groups_completed")


def queue(obj: Obj, deleted: bool = False) -> Queue:
    """A Queue object as its row; an empty state (no controller saw it yet) counts as Open."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    state = status.get("state") or QueueState.OPEN
    return Queue(
        **common(obj, deleted),
        parent=parent_of(obj),
        weight=int(spec.get("weight") or 1),
        priority=int(spec.get("priority") or 0),
        reclaimable=spec.get("reclaimable", True) is not False,
        state=state if state in QueueState else QueueState.UNKNOWN,
        capability=objects.resource_units(spec.get("capability")),
        deserved=objects.resource_units(spec.get("deserved")),
        guarantee=objects.resource_units((spec.get("guarantee") or {}).get("resource")),
        labels=dict(objects.labels(obj)),
        annotations=dict(objects.annotations(obj)),
        **({} if settings.BASALT_SCHEDULER else _told(spec, status)),
    )


def _told(spec: Obj, status: Obj) -> dict[str, Any]:
    """The figures of a queue that another scheduler serves: what it writes into the status, and nothing that it does not say."""
    allocated = objects.resource_units(status.get("allocated"))
    deserved = objects.resource_units(spec.get("deserved"))
    share = max((allocated.get(resource, 0) / units for resource, units in deserved.items() if units), default=0.0)
    return {"share": share, "share_allocated": allocated, "share_deserved": deserved, "share_request": {}, "share_inqueue": {}}


def project(batch: Batch, user: str = "") -> None:
    """Queues, forward only; counts of PodGroups stay as they are, and so do the shares that our scheduler computes.

    `user` is who made the changes, where that is known.
    """
    kept, shown = (SHARES, SHOWS) if settings.BASALT_SCHEDULER else ((), SHOWS + SHARES)
    with writing(Queue):
        changes = apply(Queue, queue, batch, keep=kept + GROUPS)
        record(changes, user)
        notify("queues", (change.after.name for change in changes if differs(change, shown)))
        if changes and not settings.BASALT_SCHEDULER:
            _sample()


_sampler = Sampler(asks=False)


def _sample() -> None:
    rows = Queue.objects.filter(deleted_at=None).only("name", "parent", *SHARES)
    shares = {row.name: {column: getattr(row, column) for column in SHARES} for row in rows}
    _sampler.offer(shares, timezone.now(), capacity=capacity(), inner=frozenset(row.parent for row in rows))


SHOWS = ("parent", "weight", "priority", "reclaimable", "state", "capability", "deserved", "guarantee", "deleted_at")
PROJECTIONS = {QUEUE: Projection(Queue, project)}


def count_groups(counts: Mapping[str, Mapping[str, int]]) -> None:
    """Set how many PodGroups of each phase stand in each queue named; call it inside the transaction that counted them."""
    rows = list(Queue.objects.filter(name__in=counts, deleted_at=None).only("uid", "name", *GROUPS))
    changed = []
    for row in rows:
        new = {column: counts[row.name].get(column.removeprefix("groups_").capitalize(), 0) for column in GROUPS}
        if any(getattr(row, column) != count for column, count in new.items()):
            for column, count in new.items():
                setattr(row, column, count)
            changed.append(row)
    if changed:
        Queue.objects.bulk_update(changed, GROUPS)
        notify("queues", (row.name for row in changed))


def set_shares(shares: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Write the scheduler's figures (columns of SHARES) of queues where they changed; the names of those."""
    with writing(Queue):
        changed = []
        for row in Queue.objects.filter(name__in=shares, deleted_at=None).only("uid", "name", *SHARES):
            new = shares[row.name]
            if any(getattr(row, column) != new[column] for column in SHARES):
                for column in SHARES:
                    setattr(row, column, new[column])
                changed.append(row)
        if changed:
            Queue.objects.bulk_update(changed, SHARES)
            notify("queues", (row.name for row in changed))
    return {row.name for row in changed}
