"""Why a job did not start, as data: the verdict that every page, API answer and simulation reads.

A verdict is never a sentence; `jobs.reasons` renders it in the reader's language.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

QUIET = 10.0
"""Seconds for which a verdict whose numbers alone moved is not said again."""


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
    EXTENDER = "extender"
    GANG_TOO_FEW_PODS = "gang.too_few_pods"
    GANG_INCOMPLETE = "gang.incomplete"
    NODES_INSUFFICIENT = "nodes.insufficient"
    NODES_REFUSED = "nodes.refused"
    NODES_NONE = "nodes.none"
    POD_TOO_LARGE = "pod.too_large"
    RELEASING = "nodes.releasing"
    GATED = "pod.gated"
    VOLUME_MISSING = "volume.missing"
    VOLUME_UNBOUND = "volume.unbound"
    VOLUME_LOST = "volume.lost"
    VOLUME_LEAVING = "volume.leaving"
    VOLUME_FOREIGN = "volume.foreign"
    DEVICE_CLAIM_MISSING = "device.claim_missing"
    DEVICE_CLAIM_LEAVING = "device.claim_leaving"
    DEVICE_CLAIM_FOREIGN = "device.claim_foreign"
    DEVICE_CLASS_MISSING = "device.class_missing"
    DEVICE_SELECTOR = "device.selector"
    DEVICES_INSUFFICIENT = "device.insufficient"
    DEVICE_QUOTA = "device.quota"
    TOPOLOGY_NO_DOMAIN = "topology.no_domain"
    TOPOLOGY_OUTSIDE = "topology.outside"
    NO_VICTIMS = "preemption.no_victims"


class Spared(StrEnum):
    """Why a pod does not make room for another, where no plugin says so; else the plugin's name stands for its rule."""

    NOT_PREEMPTABLE = "not_preemptable"
    NOT_RECLAIMABLE = "not_reclaimable"
    HIGHER_PRIORITY = "higher_priority"
    ASKS_NOTHING = "asks_nothing"
    TOO_LITTLE = "too_little"
    NO_RULE = "no_rule"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why one PodGroup waits. Amounts are in the resource's smallest unit; `needed` and `placeable` count pods.

    `rejected` counts nodes by cause: `insufficient:<resource>`, `selector`, `affinity`, `taint`, `cordoned`,
    `not_ready`, `pod_count`, `ports`, `gpu_slots`, `volume_zone`, `devices` and so on; `nodes` is how many were looked at.
    Of volumes and devices `resource` names the claim or the class of devices. Of a network topology, `tier` is
    the highest that is allowed, `domain` the HyperNode with most room, of which `nodes`, `placeable` and so on tell.
    Where making room by eviction was tried too, `candidates` are the pods that were looked at, and `spared` counts them by
    the rule that spared each: a plugin's name, or one of `Spared` (`too_little`: it might go, but that is not enough).
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
    candidates: int = 0
    spared: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; stable keys."""
        return asdict(self)
