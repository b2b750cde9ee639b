"""Nodes, their GPUs and events as pages, the REST lists and the live channel carry them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cluster import queries
from cluster.cards import WHOLE, Cell, Part
from cluster.models import Event, Node
from cluster.said import in_each_language
from cluster.workloads import Holder

Row = dict[str, Any]


def node_row(node: Node) -> Row:
    """One machine; `allocatable` in smallest units."""
    return {
        "uid": node.uid,
        "name": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "draining": node.draining,
        "rack": node.rack,
        "spine": node.spine,
        "gpu_count": node.gpu_count,
        "gpu_model": node.gpu_model,
        "gpu_memory_mib": node.gpu_memory_mib,
        "gpu_unhealthy": node.gpu_unhealthy,
        "allocatable": node.allocatable,
        "labels": node.labels,
        "taints": node.taints,
        "created_at": node.created_at.isoformat(),
        "seen_at": node.seen_at.isoformat() if node.seen_at else None,
    }


def gpu_rows(user: Any, nodes: Collection[str] | None = None) -> list[Row]:
    """Machines with GPUs (None: all, else those named) and who holds each GPU, in a constant number of queries.

    The answers are those that the heatmap's page is drawn from; these rows keep it up to date.
    """
    machines = queries.nodes(user).filter(gpu_count__gt=0).only(*queries.FLEET_COLUMNS)
    if nodes is not None:
        machines = machines.filter(name__in=nodes)
    return [gpu_row(strip) for strip in queries.strips(user, list(machines.order_by("name")))]


def gpu_row(strip: queries.Strip) -> Row:
    """One machine with its GPUs."""
    node = strip.node
    return {
        "node": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "draining": node.draining,
        "spine": node.spine,
        "rack": node.rack,
        "gpu_model": node.gpu_model,
        "measured": int((node.gpu_usage or {}).get("at", 0)),
        "gpus": [_slot(cell) for cell in strip.cells],
    }


def _slot(cell: Cell) -> Row:
    """One GPU. Of a card that several share, `parts` has each of them; what is not known, or not measured, is absent or None."""
    row: Row = {"index": cell.index, "state": cell.state, **_who(cell.holder), "load": cell.load}
    if cell.holder is not None:
        row["share"] = cell.size
    if cell.memory:
        row["memory_mib"] = cell.memory
    if cell.used is not None:
        row["memory_used_mib"] = cell.used
    if any(part.size < WHOLE for part in cell.parts) and cell.is_in_use:
        row["parts"] = [_part(part) for part in cell.parts]
    if cell.over:
        row["over"] = True
    return row


def _part(part: Part) -> Row:
    said: Row = {"share": part.size, "memory_mib": part.memory, "cores": part.cores, **_who(part.holder)}
    return said | {"instance": part.instance} if part.instance else said


def _who(holder: Holder | None) -> Row:
    if holder is None:
        return {"job_uid": "", "job": "", "queue": "", "owner": ""}
    who: Row = {"job_uid": holder.job_uid, "job": holder.job, "queue": holder.queue, "owner": holder.owner}
    if holder.task:
        who |= {"task": holder.task, "task_index": holder.index}
    return who | {"since": holder.since.isoformat()} if holder.since else who


def event_row(event: Event) -> Row:
    """One Kubernetes event."""
    return {
        "uid": event.uid,
        "namespace": event.namespace,
        "about_kind": event.about_kind,
        "about_name": event.about_name,
        "about_uid": event.about_uid,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "words": in_each_language(event.sentence),
        "count": event.count,
        "source": event.source,
        "first_seen": event.first_seen.isoformat(),
        "last_seen": event.last_seen.isoformat(),
    }
