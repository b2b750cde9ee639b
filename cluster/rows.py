"""Nodes, their GPUs and events as pages, the REST lists and the live channel carry them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cluster import workloads
from cluster.models import Event, Node
from cluster.queries import gpu_state
from cluster.workloads import Holder

Row = dict[str, Any]


def node_row(node: Node) -> Row:
    """One machine; `allocatable` in smallest units."""
    return {
        "uid": node.uid,
        "name": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
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
    machines = Node.objects.filter(deleted_at=None, gpu_count__gt=0).defer("gpu_links", "labels", "taints")
    if nodes is not None:
        machines = machines.filter(name__in=nodes)
    held = {(holder.node, index): holder for holder in workloads.current().holders(user, nodes) for index in holder.gpus}
    return [_gpus_of(machine, held) for machine in machines]


def _gpus_of(node: Node, held: dict[tuple[str, int], Holder]) -> Row:
    return {
        "node": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "gpus": [_slot(node, index, held.get((node.name, index))) for index in range(node.gpu_count)],
    }


def _slot(node: Node, index: int, holder: Holder | None) -> Row:
    return {
        "index": index,
        "state": gpu_state(node, index, holder),
        "job_uid": holder.job_uid if holder else "",
        "job": holder.job if holder else "",
        "queue": holder.queue if holder else "",
        "owner": holder.owner if holder else "",
    }


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
        "count": event.count,
        "source": event.source,
        "first_seen": event.first_seen.isoformat(),
        "last_seen": event.last_seen.isoformat(),
    }
