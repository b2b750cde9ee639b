"""Clusters as objects for the measures of the scheduler: nodes, queues, and jobs that wait or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from cluster.objects import HOSTNAME_LABEL, stamp
from cluster.port import Obj

NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Template:
    """What one pod of a job asks."""

    cpu: int
    memory: int
    gpus: int = 0

    @property
    def requests(self) -> dict[str, str]:
        """As a container's requests."""
        asked = {"cpu": str(self.cpu), "memory": f"{self.memory}Gi"}
        return asked | ({GPU: str(self.gpus)} if self.gpus else {})

    def total(self, pods: int) -> dict[str, str]:
        """What a gang of so many asks."""
        asked = {"cpu": str(self.cpu * pods), "memory": f"{self.memory * pods}Gi", "pods": str(pods)}
        return asked | ({GPU: str(self.gpus * pods)} if self.gpus else {})


TEMPLATES = tuple(Template(1 + i % 7, 4 + 3 * i, (i % 4 == 0) + (i % 8 == 0)) for i in range(20))
"""Twenty kinds of pods: from 1 to 7 CPUs, 4 to 61 GiB, none to two GPUs."""


@dataclass(frozen=True, slots=True)
class Job:
    """A PodGroup with equal pods. With `nodes` its pods run there, else they wait."""

    name: str
    pods: int
    template: Template
    least: int
    queue: str = "default"
    created: float = 0.0
    priority: str = ""
    preemptable: bool = True
    nodes: Sequence[str] = field(default=())

    def objects(self) -> Iterator[Obj]:
        """The PodGroup, then the pods, each its own object as from a cluster."""
        spec = {"minMember": self.least, "queue": self.queue, "minResources": self.template.total(self.least)}
        if self.priority:
            spec["priorityClassName"] = self.priority
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": self._meta(self.name),
            "spec": spec,
            "status": {"phase": "Running" if self.nodes else "Pending"},
        }
        text = orjson.dumps(self._pod())
        for index in range(self.pods):
            pod = orjson.loads(text)
            name = f"{self.name}-w-{index}"
            pod["metadata"]["name"] = pod["metadata"]["uid"] = name
            if self.nodes:
                pod["spec"]["nodeName"] = self.nodes[index]
                pod["status"] = {"phase": "Running"}
            yield pod

    def _pod(self) -> Obj:
        annotations = {"scheduling.k8s.io/group-name": self.name, "volcano.sh/task-spec": "w"}
        if self.preemptable:
            annotations["volcano.sh/preemptable"] = "true"
        container = {"name": "main", "image": "job", "resources": {"requests": self.template.requests}}
        spec: Obj = {"schedulerName": "volcano", "containers": [container]}
        if self.priority:
            spec |= {"priorityClassName": self.priority, "priority": PRIORITIES[self.priority]}
        meta = {**self._meta(""), "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}

    def _meta(self, name: str) -> Obj:
        return {"name": name, "namespace": "bench", "uid": name, "creationTimestamp": stamp(self.created)}


PRIORITIES = {"low": 10, "high": 1000}


def priority_classes() -> Iterator[Obj]:
    """The classes of PRIORITIES."""
    for name, value in PRIORITIES.items():
        yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def nodes(count: int, amounts: Mapping[str, str] = NODE) -> Iterator[Obj]:
    """Equal nodes `node-00000`, `node-00001`, …"""
    for name in node_names(count):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {HOSTNAME_LABEL: name}},
            "status": {"allocatable": dict(amounts), "conditions": [{"type": "Ready", "status": "True"}]},
        }


def node_names(count: int) -> list[str]:
    """Names of `nodes`."""
    return [f"node-{i:05}" for i in range(count)]


def queue(name: str, weight: int = 1) -> Obj:
    """An open queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": name},
        "spec": {"weight": weight, "reclaimable": True},
        "status": {"state": "Open"},
    }
