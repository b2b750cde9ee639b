"""What the author of a job, a gang or a pod that is let in had better know: that it may wait, and for what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cluster import objects
from cluster.errors import NotFound
from cluster.kinds import POD_GROUP, PRIORITY_CLASS, QUEUE
from cluster.port import Obj, Reader
from cluster.quantities import format_units
from jobs import keys
from queues.admission import amounts

SYSTEM = ("system-cluster-critical", "system-node-critical")


def of_job(job: Obj, schedulers: Sequence[str], reader: Reader) -> Iterator[str]:
    """A job's: whose scheduler it names, its priority class, and whether its queue is large enough for its gang minimum."""
    spec = job["spec"]
    name = spec.get("schedulerName") or ""
    if name and name not in schedulers:
        ours = " or ".join(schedulers)
        yield f"spec.schedulerName: {name!r} is not {ours}, which Basalt serves: another scheduler has to place its pods"
    yield from _priority(spec.get("priorityClassName"), "spec.priorityClassName", reader)
    yield from _beyond(spec.get("queue") or "default", least(spec), "spec.minAvailable: the gang minimum", reader)


def of_group(group: Obj, reader: Reader) -> Iterator[str]:
    """A PodGroup's: its priority class, and whether its queue is large enough."""
    spec = group.get("spec") or {}
    yield from _priority(spec.get("priorityClassName"), "spec.priorityClassName", reader)
    least = objects.resource_units(spec.get("minResources"))
    yield from _beyond(spec.get("queue") or "default", least, "spec.minResources: the gang minimum", reader)


def of_pod(pod: Obj, reader: Reader) -> Iterator[str]:
    """A pod's: that the group that it names is not there yet."""
    name = objects.annotations(pod).get(keys.GROUP_NAME, "")
    if not name:
        return
    namespace = objects.namespace(pod) or "default"
    try:
        reader.get(POD_GROUP, name, namespace)
    except NotFound:
        yield f"metadata.annotations[{keys.GROUP_NAME}]: there is no PodGroup {namespace}/{name}: the pod waits until there is"


def _priority(name: Any, where: str, reader: Reader) -> Iterator[str]:
    if not name or name in SYSTEM:
        return
    try:
        reader.get(PRIORITY_CLASS, str(name))
    except NotFound:
        yield f"{where}: there is no priority class {name!r}: it counts as 0 until there is"


def least(spec: Obj) -> dict[str, int]:
    """What the smallest gang asks for: of each task its minimum, the rest of the job's minimum left out."""
    asked: dict[str, int] = {}
    for task in spec.get("tasks") or ():
        count = task.get("minAvailable")
        for resource, units in objects.pod_requests(task["template"]["spec"]).items():
            asked[resource] = asked.get(resource, 0) + units * int(task.get("replicas") or 0 if count is None else count)
    return asked


def _beyond(queue: str, asked: dict[str, int], what: str, reader: Reader) -> Iterator[str]:
    try:
        limits = objects.resource_units(amounts(reader.get(QUEUE, queue), "capability"))
    except NotFound:
        return
    for resource, limit in limits.items():
        units = asked.get(resource, 0)
        if units > limit:
            asks, may = format_units(resource, units), format_units(resource, limit)
            yield f"{what} asks {asks} {resource}, queue {queue!r} may use {may}: it cannot start as the queue stands"
