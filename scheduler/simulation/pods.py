"""The Kubernetes objects of a simulated job: its PodGroups and its pods, made anew for each of its tries."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import objects
from cluster.port import Obj
from scheduler.model.build import GROUP, PREEMPTABLE, ROLE
from scheduler.simulation.workload import Job


def group(job: Job, created: float, name: str = "", alone: Obj | None = None) -> Obj:
    """The PodGroup of a job, or of one of its pods, `alone`, where they are scheduled apart."""
    if job.group:
        return dict(job.group)
    spec: Obj = {"minMember": 1 if alone else job.least, "queue": job.queue, "minResources": _least(job, alone)}
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    meta = {"name": name or job.name, "namespace": job.namespace, "uid": f"group-{name or job.name}"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {**meta, "creationTimestamp": objects.stamp(created)},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _least(job: Job, alone: Obj | None) -> Obj:
    """What a pod asks, or as many of the job's first pods as it needs at least."""
    if alone is not None:
        return {**alone["spec"]["containers"][0]["resources"]["requests"], "pods": "1"}
    total: dict[str, int] = {}
    left = job.least
    for role in job.roles:
        count = min(left, role.count)
        left -= count
        for name, amount in objects.resource_units(role.requests).items():
            total[name] = total.get(name, 0) + amount * count
    return {**{name: objects.format_units(name, amount) for name, amount in total.items()}, "pods": str(job.least)}


def templates(job: Job) -> Iterator[tuple[str, Obj]]:
    """Names of a job's pods, in the order of roles and indices, each with what it is made after."""
    if job.made:
        for pod in job.made:
            yield pod["metadata"]["name"], pod
        return
    for role in job.roles:
        requests = dict(role.requests)
        spec = {"containers": [{"name": "main", "image": "job", "resources": {"requests": requests}}], **role.spec}
        spec.setdefault("schedulerName", "volcano")
        if job.priority_class:
            spec["priorityClassName"] = job.priority_class
        marks = {GROUP: job.name, ROLE: role.name, PREEMPTABLE: str(job.preemptable).lower(), **role.annotations}
        template: Obj = {"metadata": {"namespace": job.namespace, "annotations": marks}, "spec": spec}
        for index in range(role.count):
            yield f"{job.name}-{role.name}-{index}", template


def pod(template: Obj, name: str, created: float, number: int, priority: int | None, group: str = "") -> Obj:
    """A pod made after a template, on no node; the running `number` makes its uid its own. `group`: of another PodGroup."""
    old = template["metadata"]
    marks = {key: value for key, value in (old.get("annotations") or {}).items() if key != objects.GPU_INDICES}
    if group:
        marks[GROUP] = group
    spec = {key: value for key, value in template["spec"].items() if key != "nodeName"}
    if priority is not None:
        spec["priority"] = priority
    meta = {"name": name, "namespace": old.get("namespace", "default"), "uid": f"pod-{number:08}"}
    meta |= {"annotations": marks, "creationTimestamp": objects.stamp(created)}
    if old.get("labels"):
        meta["labels"] = old["labels"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
