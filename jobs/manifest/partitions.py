"""Partitions of a task, and limits on how far apart in the network pods may be."""

from __future__ import annotations

from typing import Any

from cluster.said import said
from cluster.validation import Faults


def check_partitions(task: dict[str, Any], where: str, faults: Faults) -> None:
    """The partition arithmetic of a task, and its topology."""
    policy = task["partitionPolicy"]
    total, size, minimum = policy.get("totalPartitions"), policy.get("partitionSize"), policy.get("minPartitions") or 0
    place = f"{where}/partitionPolicy"
    if total and size and total * size != task.get("replicas", 0):
        replicas = task.get("replicas", 0)
        faults.add(
            f"{place}/totalPartitions",
            said(
                "%(total)s partitions of %(size)s are not the task's %(replicas)s replicas",
                total=total,
                size=size,
                replicas=replicas,
            ),
            "range",
        )
    if size and minimum and task.get("minAvailable") not in (None, minimum * size):
        needed = minimum * size
        faults.add(
            f"{where}/minAvailable",
            said(
                "must be %(needed)s: %(minimum)s partitions of %(size)s are the minimum",
                needed=needed,
                minimum=minimum,
                size=size,
            ),
            "range",
        )
    check_topology(policy.get("networkTopology") or {}, f"{place}/networkTopology", faults)


def check_topology(topology: dict[str, Any], where: str, faults: Faults) -> None:
    """A tier limit is a number or a name."""
    if "highestTierAllowed" in topology and topology.get("highestTierName"):
        faults.add(
            f"{where}/highestTierName", said("stands beside highestTierAllowed: give the tier's number or its name"), "conflict"
        )
