"""GPU by GPU, who holds it: the rows that the heatmap is kept up to date with, from the same answers as the page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cluster import workloads
from cluster.models import Node
from cluster.queries import gpu_state
from cluster.workloads import Holder

Row = dict[str, Any]


def gpu_rows(user: Any, nodes: Collection[str] | None = None) -> list[Row]:
    """Machines with GPUs (None: all, else those named) and the state of each of their slots, in a constant number of queries."""
    machines = Node.objects.filter(deleted_at=None, gpu_count__gt=0).defer("gpu_links", "labels", "taints")
    if nodes is not None:
        machines = machines.filter(name__in=nodes)
    held = {(holder.node, index): holder for holder in workloads.current().holders(user, nodes) for index in holder.gpus}
    return [_node_row(machine, held) for machine in machines]


def _node_row(node: Node, held: dict[tuple[str, int], Holder]) -> Row:
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
