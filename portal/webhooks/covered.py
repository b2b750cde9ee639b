"""Which writes of which kinds are reviewed."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.admission import Operation
from cluster.kinds import COMMAND, CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, JOB_TEMPLATE, POD, POD_GROUP, QUEUE, Kind

_WRITTEN: tuple[Operation, ...] = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True)
class Covered:
    """A kind; `validated` and `mutated` are the operations on it that are reviewed."""

    kind: Kind
    validated: tuple[Operation, ...]
    mutated: tuple[Operation, ...] = ()


COVERED: tuple[Covered, ...] = (
    Covered(JOB, _WRITTEN, _WRITTEN),
    Covered(POD_GROUP, ("CREATE",), ("CREATE",)),  # its status has no address of its own: updates are mostly the scheduler's
    Covered(QUEUE, ("CREATE", "UPDATE", "DELETE"), ("CREATE",)),
    Covered(COMMAND, ("CREATE",)),
    Covered(JOB_FLOW, _WRITTEN, ("CREATE",)),
    Covered(JOB_TEMPLATE, ("CREATE", "UPDATE", "DELETE")),
    Covered(CRON_JOB, _WRITTEN, ("CREATE",)),
    Covered(HYPER_NODE, _WRITTEN),
)
"""Kinds of our own: nothing of them is written while nobody reviews it."""

PODS = Covered(POD, ("CREATE",), ("CREATE",))
"""Those of our schedulers alone, and never so that a pod waits for us."""
