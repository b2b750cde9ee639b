"""What a cluster has beside nodes, jobs and queues, as a session needs it: volumes, devices, CPUs, and who selects pods.

The scheduler's cache owns it and feeds it with objects; plugins ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from cluster.kinds import Kind
from cluster.port import Obj
from cluster.volumes import is_bound
from scheduler.dynamic.catalog import KINDS as DEVICE_KINDS
from scheduler.dynamic.catalog import Devices
from scheduler.model.numa import KINDS as NUMA_KINDS
from scheduler.model.numa import NumaNodes
from scheduler.model.services import KINDS as SERVICE_KINDS
from scheduler.model.services import Services
from scheduler.model.supply import Supply
from scheduler.model.tasks import TaskInfo
from scheduler.volumes.catalog import KINDS as VOLUME_KINDS
from scheduler.volumes.catalog import Storage

KINDS: tuple[Kind, ...] = (*VOLUME_KINDS, *DEVICE_KINDS, *SERVICE_KINDS, *NUMA_KINDS)
"""In the order in which they are best taken in."""


@dataclass(slots=True)
class Estate:
    """`tasks` are all tasks of the model by uid."""

    tasks: Mapping[str, TaskInfo] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)
    devices: Devices = field(default_factory=Devices)
    services: Services = field(default_factory=Services)
    numa: NumaNodes = field(default_factory=NumaNodes)

    def appliers(self) -> dict[Kind, Callable[[Obj, bool], None]]:
        """By kind, how an object (or the news that it is gone) is taken in."""
        parts = (
            (VOLUME_KINDS, self.storage),
            (DEVICE_KINDS, self.devices),
            (SERVICE_KINDS, self.services),
            (NUMA_KINDS, self.numa),
        )
        return {kind: partial(part.apply, kind) for kinds, part in parts for kind in kinds}

    def drop(self, kind: Kind, obj: Obj) -> None:
        """Forget an object whose new version makes no sense."""
        self.appliers()[kind](obj, True)

    def is_met(self, supply: Supply) -> bool:
        """Whether all claims of a supply are bound by now."""
        claims = [self.storage.claim(choice.claim) for choice in supply.volumes]
        return all(claim is not None and is_bound(claim) for claim in claims)
