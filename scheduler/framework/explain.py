"""Why a job did not start, as data: the verdict that every page, API answer and simulation reads.

A verdict is never a sentence; `jobs.reasons` renders it in the reader's language.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """Where on its way a job is held."""

    DEPENDENCY = "dependency"
    ADMISSION = "admission"
    QUEUE_LIMIT = "queue_limit"
    GANG = "gang"
    NODE_FIT = "node_fit"
    TOPOLOGY = "topology"
    PREEMPTION = "preemption"


class Code(StrEnum):
    """The one blocker."""

    QUEUE_MISSING = "queue.missing"
    QUEUE_CLOSED = "queue.closed"
    QUEUE_CYCLE = "queue.cycle"
    QUEUE_PARENT_MISSING = "queue.parent_missing"
    QUEUE_NOT_LEAF = "queue.not_leaf"
    QUEUE_BROKEN = "queue.broken"
    QUEUE_CAPABILITY = "queue.capability"
    QUEUE_DESERVED = "queue.deserved"
    QUEUE_OVERUSED = "queue.overused"
    OVERCOMMIT = "overcommit"
    RESOURCE_QUOTA = "resource_quota"
    GANG_TOO_FEW_PODS = "gang.too_few_pods"
    GANG_INCOMPLETE = "gang.incomplete"
    NODES_INSUFFICIENT = "nodes.insufficient"
    NODES_REFUSED = "nodes.refused"
    NODES_NONE = "nodes.none"
    POD_TOO_LARGE = "pod.too_large"
    RELEASING = "nodes.releasing"
    GATED = "pod.gated"
    TOPOLOGY_NO_DOMAIN = "topology.no_domain"
    TOPOLOGY_OUTSIDE = "topology.outside"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why one PodGroup waits. Amounts are in the resource's smallest unit; `needed` and `placeable` count pods.

    `rejected` counts nodes by cause: `insufficient:<resource>`, `selector`, `affinity`, `taint`, `cordoned`,
    `not_ready`, `pod_count`, `ports`, `gpu_slots`; `nodes` is how many were looked at. Of a network topology, `tier` is
    the highest that is allowed, `domain` the HyperNode with most room, of which `nodes`, `placeable` and so on tell.
    """

    stage: Stage
    code: Code
    queue: str = ""
    task: str = ""
    resource: str = ""
    asked: int = 0
    free: int = 0
    short: int = 0
    limit: int = 0
    needed: int = 0
    placeable: int = 0
    nodes: int = 0
    tier: int = 0
    domain: str = ""
    rejected: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; stable keys."""
        return asdict(self)
