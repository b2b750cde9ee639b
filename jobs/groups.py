"""PodGroups: the one made for a job, and the one made for bare pods. Pure; priorities are asked of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cluster import objects
from cluster.kinds import POD_GROUP
from cluster.port import Obj
from jobs import keys
from jobs.keys import group_name
from jobs.pods import inherited
from jobs.roles import minimum_of, tasks_of
from jobs.schedulers import scheduler_names
from scheduler.served import FOREIGN

Priority = Callable[[str], int]
"""The value of a priority class by its name, 0 when there is none."""

KEPT_UP = ("priorityClassName", "minMember", "minTaskMember", "minResources", "subGroupPolicy")
"""What follows the job after the PodGroup was made. Queue, topology, labels and annotations do not."""

BARE_KEPT_UP = ("minMember", "minResources", "priorityClassName", "queue", "networkTopology")
"""What follows the owner and the newest pod after a bare PodGroup was made, besides labels and annotations."""


def build_group(job: Obj, tasks: Sequence[Obj], priority: Priority) -> Obj:
    """The PodGroup of a job of which `tasks` may start now.

    Tasks that still wait for others are not counted: the gang would otherwise need pods that nobody makes yet.
    """
    spec = job["spec"]
    topology = spec.get("networkTopology")
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": {
            "name": group_name(job),
            "namespace": objects.namespace(job),
            "labels": dict(objects.labels(job)),
            "annotations": {**objects.annotations(job), **_other_scheduler(spec)},
            "ownerReferences": [objects.owner_reference(job)],
        },
        "spec": {
            "queue": spec["queue"],
            **kept_up(job, tasks, priority),
            **({"networkTopology": _topology(topology)} if topology else {}),
        },
        "status": {"phase": "Pending"},
    }


def _other_scheduler(spec: Obj) -> dict[str, str]:
    """A note for our scheduler on a gang that is not for it: a PodGroup itself does not say for which one it is."""
    name = spec.get("schedulerName") or ""
    return {FOREIGN: name} if name and name not in scheduler_names() else {}


def kept_up(job: Obj, tasks: Sequence[Obj], priority: Priority) -> dict[str, Any]:
    """The part of the spec that follows the job; keys without a value are left out."""
    spec = job["spec"]
    minimum = int(spec.get("minAvailable") or 0)
    if len(tasks) < len(tasks_of(job)):
        minimum = min(minimum, sum(minimum_of(task) for task in tasks))
    fields = {
        "priorityClassName": spec.get("priorityClassName"),
        "minMember": minimum,
        "minTaskMember": {task["name"]: minimum_of(task) for task in tasks},
        "minResources": min_resources(minimum, tasks, priority),
        "subGroupPolicy": [_sub_group(task) for task in tasks if task.get("partitionPolicy")],
    }
    return {key: value for key, value in fields.items() if value or key == "minMember"}


def min_resources(minimum: int, tasks: Iterable[Obj], priority: Priority) -> dict[str, str]:
    """What must be there before the gang is admitted: `minimum` pods, those of the most important tasks first.

    When the gang is smaller than the tasks' minima together, the first pods count in order of priority; else every
    task's minimum does, and the rest is filled up from the tasks' further replicas.
    """
    ordered = sorted(tasks, key=lambda task: -priority(_class_of(task)))
    minima = [minimum_of(task) for task in ordered]
    replicas = [int(task.get("replicas") or 0) for task in ordered]
    if minimum < sum(minima):
        counts = _fill(minimum, replicas)
    else:
        more = _fill(minimum - sum(minima), [most - least for most, least in zip(replicas, minima)])
        counts = [least + further for least, further in zip(minima, more)]
    total: dict[str, int] = {}
    for task, count in zip(ordered, counts):
        if count:
            for resource, units in objects.pod_requests((task.get("template") or {}).get("spec") or {}).items():
                total[resource] = total.get(resource, 0) + units * count
    return {resource: objects.format_units(resource, units) for resource, units in total.items() if units}


def bare_group_name(pod: Obj) -> str:
    """The PodGroup of a pod that no job made: one for all pods of the same controlling owner."""
    owner = objects.owner(pod)
    return f"podgroup-{owner['uid'] if owner else objects.uid(pod)}"


def build_bare_group(pod: Obj, owner: Obj | None = None) -> Obj:
    """The PodGroup for a bare pod; `owner` is the object that controls it, when it is known."""
    meta, spec = pod["metadata"], pod["spec"]
    annotations, labels = objects.annotations(pod), objects.labels(pod)
    above = objects.annotations(owner) if owner else {}
    minimum = _min_member(above.get(keys.GROUP_MIN_MEMBER, "1"))
    units = objects.pod_requests(spec)
    group: dict[str, Any] = {
        "minMember": minimum,
        "minResources": {r: objects.format_units(r, n * minimum) for r, n in units.items() if n * minimum},
    }
    if spec.get("priorityClassName"):
        group["priorityClassName"] = spec["priorityClassName"]
    if annotations.get(keys.BARE_QUEUE_NAME):
        group["queue"] = annotations[keys.BARE_QUEUE_NAME]
    if topology := _bare_topology(annotations):
        group["networkTopology"] = topology
    references = meta.get("ownerReferences") if objects.owner(pod) else None
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": {
            "name": bare_group_name(pod),
            "namespace": objects.namespace(pod),
            "annotations": {k: v for k, v in above.items() if k.startswith("volcano.sh/")} | inherited(annotations),
            "labels": {key: labels[key] for key in (keys.PREEMPTABLE, keys.COOLDOWN_TIME) if key in labels},
            "ownerReferences": references or [objects.owner_reference({"apiVersion": "v1", "kind": "Pod", **pod})],
        },
        "spec": group,
        "status": {"phase": "Pending"},
    }


def bare_changes(group: Obj, wanted: Obj) -> dict[str, Any]:
    """The merge patch that brings a bare pod's group to what it should be; empty when there is nothing to change.

    What somebody else wrote beside it stays, and so do notes that the scheduler keeps on the group.
    """
    body: dict[str, Any] = {}
    spec = {field: wanted["spec"].get(field) for field in BARE_KEPT_UP}
    if not wanted["spec"].get("queue"):
        spec.pop("queue")  # the default, or what the namespace said
    changed = {field: value for field, value in spec.items() if value != group["spec"].get(field)}
    if resources := changed.get("minResources"):
        gone = (group["spec"].get("minResources") or {}).keys() - resources.keys()
        changed["minResources"] = {**resources, **dict.fromkeys(gone)}
    if changed:
        body["spec"] = changed
    for field in ("annotations", "labels"):
        told, there = wanted["metadata"][field], group["metadata"].get(field) or {}
        if any(there.get(key) != value for key, value in told.items()):
            body.setdefault("metadata", {})[field] = told
    return body


def _class_of(task: Obj) -> str:
    return ((task.get("template") or {}).get("spec") or {}).get("priorityClassName") or ""


def _fill(count: int, most: Sequence[int]) -> list[int]:
    """Hand out `count`, the first places first, each no more than it can take."""
    taken = []
    for limit in most:
        taken.append(min(limit, count))
        count -= taken[-1]
    return taken


def _topology(topology: Obj) -> Obj:
    """As the job has it; a number wins over a name where both are given."""
    if topology.get("highestTierAllowed") is not None:
        return {key: value for key, value in topology.items() if key != "highestTierName"}
    return dict(topology)


def _sub_group(task: Obj) -> Obj:
    policy = task["partitionPolicy"]
    group: dict[str, Any] = {
        "name": task["name"],
        "subGroupSize": policy["partitionSize"],
        "minSubGroups": policy.get("minPartitions") or 0,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task["name"]}},
        "matchLabelKeys": [keys.PARTITION_ID],
    }
    if policy.get("networkTopology"):
        group["networkTopology"] = _topology(policy["networkTopology"])
    return group


def _min_member(text: str) -> int:
    """Negative or unreadable means 1; 0 stays 0."""
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**31 else 1


def _bare_topology(annotations: Any) -> dict[str, Any]:
    mode, tier = annotations.get(keys.TOPOLOGY_MODE), annotations.get(keys.TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return {}
    found: dict[str, Any] = {"mode": mode if mode in ("hard", "soft") else "hard"}
    if tier is not None and tier.isascii() and tier.isdigit():
        found["highestTierAllowed"] = int(tier)
    return found
