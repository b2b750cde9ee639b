"""Tasks (pods) and task classes. A task's role is the task entry of the Volcano Job that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.model.resources import CPU, MEMORY, Ints, Mask, Rows, widened
from scheduler.model.supply import NOTHING, Supply

if TYPE_CHECKING:
    from scheduler.model.devices import Share, Use
    from scheduler.model.jobs import JobInfo
    from scheduler.model.subjobs import SubJob

NO_NODE = -1


class TaskStatus(IntEnum):
    """Where a task is. Allocated, Pipelined and Binding exist only inside the scheduler."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9


ALLOCATED_SET = frozenset({TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING})
READY_SET = ALLOCATED_SET | {TaskStatus.SUCCEEDED}

HostPort = tuple[str, str, int]
"""Protocol, address (`0.0.0.0` for any) and port."""


@dataclass(slots=True, eq=False)
class TaskClass:
    """What tasks of one template share, computed once: everything that decides where one may run and how well.

    `request` (with `pods: 1`) is what a node must have; `compared` are the dimensions that a fit compares: everything
    asked, and cpu and memory unless the task is `best_effort` (asks for nothing but to run); `floor` is the request there
    and below every amount elsewhere. `nonzero` is (cpu, memory) with Kubernetes's defaults of 100m and 200Mi for containers
    that ask nothing. `spec` is the pod spec of one of the tasks, to read selectors, affinity and tolerations from; `share`
    is what it asks of cards that pods share. `mounts`: its pods use volume claims, `claims`: resource claims (which ones,
    their own pods say); `gate`: they pass a queue's gate first.
    Labels are not part of a class: a check that needs them is contextual and looks at the task's own `pod`.
    """

    number: int
    request: Ints
    named: Mask
    nonzero: Ints
    spec: Mapping[str, Any] = field(repr=False)
    namespace: str = ""
    host_ports: tuple[HostPort, ...] = ()
    gpus: int = 0
    gpu_dimension: int = -1
    best_effort: bool = False
    share: Share | None = None
    mounts: bool = False
    claims: bool = False
    gate: bool = False
    compared: Rows = field(init=False)
    floor: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        asked = self.request > 0
        if not self.best_effort:
            asked[[CPU, MEMORY]] = True
        self.compared = np.flatnonzero(asked)
        self.floor = np.where(asked, self.request, np.iinfo(np.int64).min)

    def widen(self, width: int) -> None:
        """Follow a grown dimension table."""
        self.request, self.named = widened(self.request, width), widened(self.named, width)
        self.__post_init__()


@dataclass(slots=True, eq=False)
class TaskInfo:
    """One pod. `node` is a row of the NodeTable or NO_NODE; `gpus` are the indices of the whole GPUs that it holds.

    `priority` is the order inside a job (pod priority, or its `volcano.sh/task-priority`). `gated`: held by a
    scheduling gate. `job` is None for a pod that only uses a node: another scheduler's, or one whose PodGroup is gone;
    `sub` is its part of a job that has parts; `cards` are the parts of shared cards that it holds, `marks` the
    annotations by which its bind tells so; `supply` is what its claims were given. `queue_gated`: only its queue's gate
    holds it.
    """

    uid: str
    namespace: str
    name: str
    cls: TaskClass
    pod: Mapping[str, Any] = field(repr=False)
    job: JobInfo | None = field(default=None, repr=False)
    sub: SubJob | None = field(default=None, repr=False)
    role: str = ""
    index: int = -1
    priority: int = 1
    priority_class: str = ""
    preemptable: bool = True
    creation: float = 0.0
    status: TaskStatus = TaskStatus.PENDING
    node: int = NO_NODE
    gpus: tuple[int, ...] = ()
    cards: tuple[Use, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict, repr=False)
    supply: Supply = NOTHING
    gated: bool = False
    queue_gated: bool = False
    nominated: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def let_go(self) -> None:
        """Hold no GPU, no part of a card, no volume and no device any more."""
        self.gpus, self.cards, self.marks, self.supply = (), (), {}, NOTHING

    @property
    def request(self) -> Ints:
        """The class's request vector; only to read."""
        return self.cls.request
