"""Queues as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scheduler.model.resources import Amounts

if TYPE_CHECKING:
    from scheduler.model.jobs import JobInfo


@dataclass(slots=True, eq=False)
class QueueInfo:
    """One Queue object. `state` is `Open` also for a queue that no controller has seen yet (empty state).

    `capability`: a cpu or memory that is missing or 0 is unlimited, so is a missing scalar.
    `jobs` holds every PodGroup of the queue by uid (`namespace/name`); what was admitted but not placed is theirs to say.
    """

    name: str
    weight: int = 1
    capability: Amounts = field(kw_only=True)
    deserved: Amounts = field(kw_only=True)
    guarantee: Amounts = field(kw_only=True)
    parent: str = "root"
    priority: int = 0
    reclaimable: bool = True
    state: str = "Open"
    creation: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict)
    obj: Mapping[str, Any] = field(default_factory=dict, repr=False)
    jobs: dict[str, JobInfo] = field(default_factory=dict, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether the queue takes new work."""
        return self.state == "Open"

    def widen(self, width: int) -> None:
        """Follow a grown dimension table."""
        for amounts in (self.capability, self.deserved, self.guarantee):
            amounts.widen(width)
