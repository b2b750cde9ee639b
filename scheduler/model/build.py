"""Kubernetes objects → pieces of the model. Raises ValueError for an object that makes no sense, saying where."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import orjson

from cluster import objects
from cluster.port import Obj
from scheduler.model import devices, shapes
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import CPU, MEMORY, Amounts, Dimensions
from scheduler.model.tasks import HostPort, TaskClass, TaskInfo, TaskStatus

GROUP = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"

DEFAULT_CPU, DEFAULT_MEMORY = 100, 200 * 1024 * 1024
"""What Kubernetes's scorers take for a container that asks no cpu (milli) or memory (bytes)."""

_SHARED = frozenset({devices.VGPU_NUMBER, devices.VGPU_MEMORY, devices.GPU_MEMORY, devices.GPU_NUMBER})
DEVICE_QUOTA = "deviceclass/"
"""What names of device quotas in a queue's amounts have before the device class; no resource of nodes is called so."""

OVERSUBSCRIBED = "volcano.sh/oversubscription"
"""Label of a node that takes more than it has; annotations of this name with `-cpu` (milli) and `-memory` (bytes): how much."""
_OWN_PREFIXES = ("volcano.sh/", "basalt.dev/")
_MEASURED = (objects.NODE_USAGE, objects.GPU_USAGE)
"""Annotations that change all the time."""
_LARGEST = 2**31 - 1
_INTEGER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_PLACING = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "hostNetwork", "resourceClaims")
_SHAPE = (*_PLACING, "containers", "initContainers", "overhead", "resources")


def section(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of an object that must be a mapping; empty when it is missing. Raises ValueError."""
    found = obj.get(name) or {}
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} must be a mapping")
    return found


def whole(obj: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number in an object. Raises ValueError."""
    found = obj.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int):
        raise ValueError(f"{name} must be a whole number, not {found!r}")
    if not -_LARGEST <= found <= _LARGEST:
        raise ValueError(f"{name} must be a 32-bit number, not {found}")
    return found


def text(obj: Mapping[str, Any], name: str) -> str:
    """A text in an object; empty when it is missing. Raises ValueError."""
    found = obj.get(name)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"{name} must be a text, not {found!r}")
    return found or ""


def amounts(dims: Dimensions, resources: Any, where: str) -> Amounts:
    """A resource list as a vector. Raises ValueError that says which entry of which list."""
    if resources is not None and not isinstance(resources, Mapping):
        raise ValueError(f"{where} must be a mapping of resources to quantities")
    resources = {name: amount for name, amount in (resources or {}).items() if DEVICE_QUOTA not in str(name)}
    try:
        return dims.amounts(objects.resource_units(resources))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def node_allocatable(dims: Dimensions, node: Obj) -> Amounts:
    """What a node offers: its allocatable, and where it is oversubscribed what its annotations add of cpu and memory."""
    found = amounts(dims, section(node, "status").get("allocatable"), "status.allocatable")
    if objects.labels(node).get(OVERSUBSCRIBED, "").lower() not in ("true", "t", "1"):
        return found
    marks = objects.annotations(node)
    for place, name in ((CPU, f"{OVERSUBSCRIBED}-cpu"), (MEMORY, f"{OVERSUBSCRIBED}-memory")):
        said = marks.get(name) or "0"
        if not re.fullmatch(r"[0-9]{1,18}", said, re.ASCII):
            raise ValueError(f"annotation {name}: {said!r} must be a whole number of milli-cores or bytes")
        found.values[place] += int(said)
    return found


def created(obj: Obj) -> float:
    """When an object was created; 0 when it does not say."""
    text = obj["metadata"].get("creationTimestamp")
    return objects.parse_time(text) if text else 0.0


# -- pods ----------------------------------------------------------------------------------------------------------------


class Classes:
    """The task classes, each made once. `count` tells how many tasks of the model are of a class."""

    def __init__(self, dims: Dimensions) -> None:
        self._dims = dims
        self._by_shape: dict[bytes, TaskClass] = {}
        self._shapes: dict[int, bytes] = {}
        self.count: dict[TaskClass, int] = {}
        self._made = 0

    def of(self, pod: Obj) -> TaskClass:
        """The class of a pod. Raises ValueError for a request that does not parse."""
        spec = section(pod, "spec")
        units = objects.pod_requests(spec)
        ports = host_ports(spec)
        contextual = spec.get("topologySpreadConstraints") or _has_pod_terms(spec) or spec.get("resourceClaims")
        namespace = objects.namespace(pod) if contextual else ""
        containers = list(spec.get("containers") or ())
        images = sorted(str(container.get("image") or "") for container in containers)
        asks = [_asks(container) for container in containers]
        share = devices.read_share(pod) if not _SHARED.isdisjoint(units) else None
        mounts, gate = _mounts(spec), objects.annotations(pod).get(objects.QUEUE_GATE) == "true"
        shape = orjson.dumps(
            [share and repr(share), units, asks, images, ports, namespace, mounts, gate, [spec.get(name) for name in _PLACING]],
            option=orjson.OPT_SORT_KEYS,
        )
        found = self._by_shape.get(shape)
        if found is None:
            shapes.check_part(spec, shapes.POD_SPEC, "spec")
            found = self._make(spec, units, ports, namespace, share)
            found.mounts, found.claims, found.gate = mounts, bool(spec.get("resourceClaims")), gate
            self._by_shape[shape], self._shapes[found.number] = found, shape
        return found

    def _make(
        self,
        spec: Mapping[str, Any],
        units: Mapping[str, int],
        ports: tuple[HostPort, ...],
        namespace: str,
        share: devices.Share | None,
    ) -> TaskClass:
        vector = self._dims.amounts(units)
        gpu = next((name for name in units if objects.is_gpu(name) and units[name]), "")
        gpus = int(units[gpu] // 1000) if gpu and units[gpu] % 1000 == 0 else 0
        empty = all(not amount for name, amount in units.items() if name != "pods")
        self._made += 1
        return TaskClass(
            self._made,
            vector.values,
            vector.present,
            nonzero(spec),
            spec,
            namespace,
            ports,
            gpus,
            self._dims.place(gpu) if gpus else -1,
            empty,
            share,
        )

    def known(self) -> Collection[TaskClass]:
        """All classes that tasks are of."""
        return self.count.keys()

    def hold(self, cls: TaskClass) -> None:
        """One more task is of this class."""
        self.count[cls] = self.count.get(cls, 0) + 1

    def drop(self, cls: TaskClass) -> None:
        """One task less; a class without tasks is forgotten."""
        self.count[cls] -= 1
        if not self.count[cls]:
            del self.count[cls]
            del self._by_shape[self._shapes.pop(cls.number)]


def _mounts(spec: Mapping[str, Any]) -> bool:
    """Whether a pod uses volume claims, its own or those made for it."""
    return any(volume.get("persistentVolumeClaim") or volume.get("ephemeral") for volume in spec.get("volumes") or ())


def _has_pod_terms(spec: Mapping[str, Any]) -> bool:
    affinity = spec.get("affinity") or {}
    return bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))


def _asks(container: Mapping[str, Any]) -> tuple[bool, bool]:
    units = objects.container_requests(container)
    return "cpu" in units, "memory" in units


def nonzero(spec: Mapping[str, Any]) -> Any:
    """(cpu, memory) of a pod with Kubernetes's defaults for containers that ask none of one."""
    patched = dict(spec)
    for group in ("containers", "initContainers"):
        patched[group] = [_with_defaults(container) for container in spec.get(group) or ()]
    units = objects.pod_requests(patched)
    return np.array([units.get("cpu", 0), units.get("memory", 0)], np.int64)


def _with_defaults(container: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = container.get("resources") or {}
    requests = {"cpu": f"{DEFAULT_CPU}m", "memory": str(DEFAULT_MEMORY), **(resources.get("limits") or {})}
    return {**container, "resources": {"requests": {**requests, **(resources.get("requests") or {})}}}


def host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Host ports of a pod's containers as (protocol, address, port); a sidecar's count too."""
    found = set()
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in [*(spec.get("containers") or ()), *sidecars]:
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                found.add((port.get("protocol") or "TCP", port.get("hostIP") or "0.0.0.0", int(number)))  # noqa: S104
    return tuple(sorted(found))


def same_shape(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two versions of one pod are of one class; only a resize makes a difference."""
    return all(old.get(name) == new.get(name) for name in _SHAPE)


def task(pod: Obj, cls: TaskClass) -> TaskInfo:
    """A pod as a task without node and job. Raises ValueError for priorities that are no numbers."""
    meta, spec = pod["metadata"], section(pod, "spec")
    marks, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    own = marks.get(TASK_PRIORITY, "")
    return TaskInfo(
        uid=meta["uid"],
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        cls=cls,
        pod=pod,
        role=marks.get(ROLE) or labels.get(ROLE) or "",
        index=_index(meta["name"]),
        priority=int(own) if _INTEGER.fullmatch(own) else whole(spec, "priority", 1),
        priority_class=spec.get("priorityClassName") or "",
        preemptable=(marks.get(PREEMPTABLE) or labels.get(PREEMPTABLE) or "true") in ("true", "True", "TRUE", "t", "T", "1"),
        creation=created(pod),
        status=status_of(pod),
        gpus=gpu_indices(marks.get(objects.GPU_INDICES)),
        cards=devices.uses_of(pod) if cls.share is not None else (),
        gated=bool(spec.get("schedulingGates")),
        queue_gated=cls.gate and [gate.get("name") for gate in spec.get("schedulingGates") or ()] == [objects.QUEUE_GATE],
        nominated=(pod.get("status") or {}).get("nominatedNodeName") or "",
    )


def status_of(pod: Obj) -> TaskStatus:
    """A pod's status in the scheduler's terms."""
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    leaving = bool(pod["metadata"].get("deletionTimestamp"))
    if phase == "Running":
        return TaskStatus.RELEASING if leaving else TaskStatus.RUNNING
    if phase == "Pending":
        if leaving:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if section(pod, "spec").get("nodeName") else TaskStatus.PENDING
    return {"Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}.get(phase, TaskStatus.UNKNOWN)


def gpu_indices(text: str | None) -> tuple[int, ...]:
    """`"0,3"` as indices; nothing when the text is none or not such a list."""
    if not text or not re.fullmatch(r"[0-9]{1,2}(,[0-9]{1,2})*", text, re.ASCII):
        return ()
    return tuple(sorted({int(part) for part in text.split(",")}))


def _index(name: str) -> int:
    """The number at the end of a name of three pieces or more, else −1."""
    pieces = name.split("-")
    return int(pieces[-1]) if len(pieces) >= 3 and re.fullmatch(r"[0-9]{1,9}", pieces[-1], re.ASCII) else -1


# -- queues and nodes ------------------------------------------------------------------------------------------------------


def queue(obj: Obj, dims: Dimensions) -> QueueInfo:
    """A Queue object. Raises ValueError for quantities and numbers that make no sense."""
    spec = section(obj, "spec")
    return QueueInfo(
        objects.name(obj),
        max(whole(spec, "weight", 1), 1),
        capability=amounts(dims, spec.get("capability"), "capability"),
        deserved=amounts(dims, spec.get("deserved"), "deserved"),
        guarantee=amounts(dims, section(spec, "guarantee").get("resource"), "guarantee.resource"),
        parent=text(spec, "parent") or ("" if objects.name(obj) == "root" else "root"),
        priority=whole(spec, "priority", 0),
        reclaimable=spec.get("reclaimable") is not False,
        state=section(obj, "status").get("state") or "Open",
        creation=created(obj),
        annotations=objects.annotations(obj),
        obj=obj,
    )


def node_gpus(node: Obj) -> tuple[int, int]:
    """How many whole GPUs a node has, and the mask of those that are unhealthy."""
    status = section(node, "status")
    units = objects.resource_units(status.get("capacity")) or objects.resource_units(status.get("allocatable"))
    count = sum(amount for name, amount in units.items() if objects.is_gpu(name)) // 1000
    ill = objects.annotations(node).get(objects.GPU_UNHEALTHY) or ""
    return count, _bits(int(part) for part in ill.split(",") if re.fullmatch(r"\s*[0-9]{1,2}\s*", part, re.ASCII))


def _bits(indices: Iterable[int]) -> int:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def node_ready(node: Obj) -> bool:
    """Whether the Ready condition is not False or Unknown; a node that says nothing counts as ready."""
    condition = objects.condition(node, "Ready")
    return condition is None or condition.get("status") == "True"


def node_static(node: Obj) -> tuple[Any, ...]:
    """What of a node object matters to scheduling; while it is equal, a changed node (a heartbeat) changes nothing."""
    status, meta, spec = section(node, "status"), node["metadata"], section(node, "spec")
    return (
        meta.get("labels"),
        {
            key: value
            for key, value in (meta.get("annotations") or {}).items()
            if key.startswith(_OWN_PREFIXES) and key not in _MEASURED
        },
        spec.get("taints"),
        bool(spec.get("unschedulable")),
        status.get("allocatable"),
        status.get("capacity"),
        status.get("images"),
        node_ready(node),
    )
