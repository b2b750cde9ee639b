"""What is simulated: nodes, queues, and jobs that arrive at their times and run as long as they do.

A workload is data: readers of traces, snapshots and scenario files make it, and the engine only reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cluster import objects
from cluster.objects import GPU_PRODUCT_LABEL, HOSTNAME_LABEL
from cluster.port import Obj

GPU = "nvidia.com/gpu"
GPU_SHARE = "basalt.dev/gpu-milli"
"""A share of a GPU as a plain amount, 1,000 a GPU, where a trace does not say which GPU a pod had."""
BASE = 1_000_000_000.0
"""The epoch second at which a trace's own clock stands at 0."""


class WorkloadError(ValueError):
    """A workload that cannot be simulated; `faults` has a line for everything that is wrong."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Role:
    """Equal pods of a job. `requests` are of the one container; `spec` has further fields of the pods' spec."""

    name: str
    count: int
    requests: Mapping[str, str]
    spec: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One job. It makes progress while at least `least` of its pods run, in proportion to how many do.

    `arrival` is in seconds of the workload's clock, `duration` in seconds with all pods running. `saves`: seconds of work
    between two checkpoints of the job's own (0: it keeps nothing, and begins anew when its gang is broken). `apart`: its
    pods are scheduled each by itself, though it still needs them together; they come `delays` seconds after it (at once where
    none are given). `made` are the PodGroup and pods of a job that
    stands in a cluster already, `ran` how many seconds it has worked.
    """

    name: str
    arrival: float
    duration: float
    roles: tuple[Role, ...]
    least: int
    queue: str = "default"
    namespace: str = "default"
    owner: str = ""
    kind: str = ""
    priority_class: str = ""
    preemptable: bool = True
    saves: float = 0.0
    apart: bool = False
    delays: tuple[float, ...] = ()
    ran: float = 0.0
    group: Mapping[str, Any] = field(default_factory=dict)
    made: tuple[Obj, ...] = ()

    @cached_property
    def pods(self) -> int:
        """How many pods it has."""
        return sum(role.count for role in self.roles)

    @cached_property
    def gpus(self) -> float:
        """GPUs of all pods, shares as parts of one."""
        return sum(role.count * gpus_of(role.requests) for role in self.roles)

    @cached_property
    def units(self) -> dict[str, int]:
        """What all pods ask together, in smallest units."""
        total: dict[str, int] = {}
        for role in self.roles:
            for name, amount in objects.resource_units(role.requests).items():
                total[name] = total.get(name, 0) + amount * role.count
        return total

    @property
    def key(self) -> str:
        """`namespace/name`, as the scheduler calls its PodGroup."""
        return f"{self.namespace}/{self.name}"


@dataclass
class Workload:
    """Everything at the beginning, and the jobs in the order of their arrivals.

    `objects` are nodes, queues, priority classes and whatever else a snapshot holds. `base` is the epoch second of the
    workload's 0. `digest` says which input it was read from, so that a checkpoint is not gone on with over another.
    """

    name: str
    objects: list[Obj]
    jobs: list[Job]
    base: float = BASE
    begin: float = 0.0
    digest: str = ""
    notes: list[str] = field(default_factory=list)
    scheduler_names: tuple[str, ...] = ("volcano",)

    def __post_init__(self) -> None:
        self.jobs.sort(key=lambda job: job.arrival)


def gpus_of(requests: Mapping[str, str]) -> float:
    """GPUs that requests name: whole ones, and shares."""
    found = 0.0
    for name, amount in objects.resource_units(requests).items():
        if objects.is_gpu(name):
            found += amount / 1000
        elif name == GPU_SHARE:
            found += amount / 1_000_000
    return found


def node(name: str, allocatable: Mapping[str, str], *, model: str = "", labels: Mapping[str, str] | None = None) -> Obj:
    """A ready node."""
    marks = {HOSTNAME_LABEL: name, **(labels or {}), **({GPU_PRODUCT_LABEL: model} if model else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": marks},
        "status": {"allocatable": {"pods": "110", **allocatable}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def equal_nodes(count: int, gpus: int, *, cpu: str = "64", memory: str = "512Gi", model: str = "") -> list[Obj]:
    """Equal nodes `node-0000`, `node-0001`, …"""
    allocatable = {"cpu": cpu, "memory": memory, **({GPU: str(gpus)} if gpus else {})}
    return [node(f"node-{i:04}", allocatable, model=model) for i in range(count)]


def queue(name: str, weight: int = 1, **spec: Any) -> Obj:
    """An open queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}"},
        "spec": {"weight": weight, **spec},
        "status": {"state": "Open"},
    }


def over_nodes(gpus: int, per_node: int) -> tuple[int, int]:
    """(pods, GPUs of each) of a job that wants so many GPUs: pods as large as a node while they fill it, else equal ones."""
    if gpus <= per_node:
        return 1, gpus
    size = next(size for size in range(per_node, 0, -1) if gpus % size == 0)
    return gpus // size, size
