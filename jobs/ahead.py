"""The pods that the controller will make of a job, for whoever asks before it does; what an API server adds to an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cluster import objects
from cluster.port import Obj
from jobs.keys import pod_name
from jobs.plugins import plugins_of
from jobs.pods import build_pod
from jobs.roles import PodTable, released


def lacking(job: Obj, there: PodTable) -> Iterator[Obj]:
    """The pods that a job lacks beside those that are there, in the order in which they are made."""
    plugins = plugins_of(job)
    for task in released(job, there):
        known = there.role(task["name"])
        for index in range(int(task.get("replicas") or 0)):
            if pod_name(objects.name(job), task["name"], index) not in known:
                pod = build_pod(job, task, index)
                for plugin in plugins:
                    plugin.on_pod_create(pod, job)
                yield pod


def admitted(obj: Obj, uid: str, created: str) -> Obj:
    """A new object with what an API server would have added."""
    obj["metadata"] |= {"uid": uid, "creationTimestamp": created}
    obj.setdefault("status", {"phase": "Pending"})
    return obj


def ranked(pod: Obj, priority: Callable[[str], int | None]) -> Obj:
    """A pod with the number of its priority class, as admission gives it; None: there is no such class."""
    spec: dict[str, Any] = pod["spec"]
    if spec.get("priority") is None:
        value = priority(str(spec.get("priorityClassName") or ""))
        if value is not None:
            spec["priority"] = value
    return pod
