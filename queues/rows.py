"""A queue as pages, the REST list and the live channel carry it."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from queues.models import Queue

Row = dict[str, Any]


def queue_row(queue: Queue) -> Row:
    """One queue; amounts are dicts of smallest units. `allocated`, `deserved`, `request`, `inqueue` are the scheduler's; None
    where another scheduler than ours does not say them."""
    return {
        "uid": queue.uid,
        "name": queue.name,
        "parent": queue.parent,
        "state": queue.state or "Open",
        "weight": queue.weight,
        "priority": queue.priority,
        "reclaimable": queue.reclaimable,
        "capability": queue.capability,
        "guarantee": queue.guarantee,
        "deserved_spec": queue.deserved,
        "share": queue.share,
        "allocated": queue.share_allocated,
        "deserved": queue.share_deserved,
        "request": queue.share_request if settings.BASALT_SCHEDULER else None,
        "inqueue": queue.share_inqueue if settings.BASALT_SCHEDULER else None,
        "groups_pending": queue.groups_pending,
        "groups_inqueue": queue.groups_inqueue,
        "groups_running": queue.groups_running,
        "groups_unknown": queue.groups_unknown,
        "groups_completed": queue.groups_completed,
        "created_at": queue.created_at.isoformat(),
        "resource_version": str(queue.resource_version),
    }
