"""The columns in which `kubectl get` shows Volcano's kinds: those of Volcano's own definitions."""

from __future__ import annotations

from dataclasses import dataclass

from cluster import kinds
from cluster.kinds import Kind


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a wide one appears with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_QUEUE = Column("QUEUE", ".spec.queue", wide=True)
_PHASE = Column("STATUS", ".status.state.phase")

COLUMNS: dict[Kind, tuple[Column, ...]] = {
    kinds.JOB: (
        _PHASE,
        Column("minAvailable", ".status.minAvailable", "integer"),
        Column("RUNNINGS", ".status.running", "integer"),
        _AGE,
        _QUEUE,
    ),
    kinds.CRON_JOB: (
        Column("SCHEDULE", ".spec.schedule"),
        Column("TIMEZONE", ".spec.timeZone"),
        Column("SUSPEND", ".spec.suspend", "boolean"),
        Column("LAST SCHEDULE", ".status.lastScheduleTime", "date"),
        _AGE,
    ),
    kinds.QUEUE: (
        Column("PARENT", ".spec.parent"),
        Column("STATE", ".status.state"),
        Column("WEIGHT", ".spec.weight", "integer"),
    ),
    kinds.POD_GROUP: (
        Column("STATUS", ".status.phase"),
        Column("minMember", ".spec.minMember", "integer"),
        Column("RUNNINGS", ".status.running", "integer"),
        _AGE,
        _QUEUE,
    ),
    kinds.HYPER_NODE: (
        Column("Tier", ".spec.tier", "integer"),
        Column("TierName", ".spec.tierName"),
        Column("NodeCount", ".status.nodeCount", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    kinds.JOB_FLOW: (_PHASE, _AGE),
    kinds.JOB_TEMPLATE: (_AGE,),
}
