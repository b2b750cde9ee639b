"""The headline numbers. Each comes from one function here, wherever a page, the API or the live channel shows it."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.models import Node


@dataclass(frozen=True, slots=True)
class Health:
    """How the machines are. `faults` counts GPUs that their node reports as unhealthy."""

    nodes: int
    ready: int
    faults: int


def health() -> Health:
    """Nodes that exist, those that are ready, and the GPU faults among them; one query."""
    nodes = ready = faults = 0
    for is_ready, unhealthy in Node.objects.filter(deleted_at=None).values_list("ready", "gpu_unhealthy").iterator():
        nodes += 1
        ready += is_ready
        faults += len(unhealthy)
    return Health(nodes, ready, faults)
