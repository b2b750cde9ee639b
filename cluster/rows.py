"""Nodes and events as pages, the REST lists and the live channel carry them."""

from __future__ import annotations

from typing import Any

from cluster.models import Event, Node

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
