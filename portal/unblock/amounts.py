"""Smaller amounts of a resource in a pod's spec."""

from __future__ import annotations

from cluster import objects
from cluster.port import Obj


def holder(pod: Obj, wanted: str) -> str:
    """The resource to ask less of: the one that is short, if the pod asks it, else its GPUs, else CPU; empty for none."""
    requests = objects.pod_requests(pod)
    gpus = [name for name in requests if objects.is_gpu(name)]
    for name in (wanted, *gpus, "cpu"):
        if name != "pods" and requests.get(name):
            return name
    return ""


def steps(resource: str, units: int) -> list[int]:
    """Amounts below `units`, ascending, in the steps in which people write them: whole devices, half CPUs, GiB."""
    step = {"cpu": 100 if units <= 2000 else 500, "memory": 1 << 28 if units <= 4 << 30 else 1 << 30}.get(resource, 1000)
    while units // step > 1 << 10:
        step *= 2
    return list(range(step, units, step))


def with_amount(pod: Obj, resource: str, units: int) -> Obj:
    """The spec with its largest container asking what makes the pod ask `units` in all; limits that stood beside it follow."""
    new = objects.clone(pod)
    containers = [each for each in new.get("containers") or () if _asked(each, resource)]
    if not containers:
        return new
    largest = max(containers, key=lambda each: _asked(each, resource))
    others = objects.pod_requests(pod)[resource] - _asked(largest, resource)
    text = objects.format_units(resource, max(units - others, 0))
    resources = largest["resources"]
    for part in ("requests", "limits"):
        if resource in (resources.get(part) or {}):
            resources[part][resource] = text
    return new


def _asked(container: Obj, resource: str) -> int:
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        if resource in (resources.get(part) or {}):
            return objects.resource_units(resources[part]).get(resource, 0)
    return 0
