"""Sums: minima within replicas, and how much one pod and one job may ask (what int64 can count, pods that can be kept)."""

from __future__ import annotations

from typing import Any

from cluster.quantities import MAX_UNITS, is_gpu
from cluster.requests import pod_requests
from cluster.said import said
from cluster.validation import Faults

MOST_PODS = 100_000
"""Pods of one job. Kubernetes itself is made for 150,000 in a whole cluster."""
MOST_GPUS = 10**8
"""GPUs of one kind and job."""


def check_pod_total(spec: dict[str, Any], where: str, faults: Faults) -> None:
    """The containers of a pod together ask no more than can be counted."""
    for resource, units in pod_requests(spec).items():
        if units > MAX_UNITS:
            faults.add(
                f"{where}/containers",
                said("ask together more %(resource)s than can be counted: ask for less", resource=resource),
                "range",
            )


def check_minimum(task: dict[str, Any], where: str, faults: Faults) -> None:
    """A task's minimum is within its replicas."""
    minimum, replicas = task.get("minAvailable"), task.get("replicas", 0)
    if minimum is not None and minimum > replicas:
        faults.add(
            f"{where}/minAvailable",
            said("%(minimum)s is above the task's %(replicas)s replicas: at most that many", minimum=minimum, replicas=replicas),
            "range",
        )


def check_job_totals(spec: dict[str, Any], faults: Faults) -> None:
    """The gang's minimum is within all replicas; these are pods that can be kept, and ask no more than can be counted."""
    tasks, minimum = spec.get("tasks") or [], spec.get("minAvailable", 0)
    replicas = [task.get("replicas", 0) for task in tasks]
    if tasks and minimum > sum(replicas):
        told = said(
            "%(minimum)s is above the %(total)s replicas of all tasks: at most that many", minimum=minimum, total=sum(replicas)
        )
        faults.add("/spec/minAvailable", told, "range")
    if sum(replicas) > MOST_PODS:
        largest = replicas.index(max(replicas))
        told = said(
            "all tasks together have %(total)s replicas: at most %(most)s pods a job", total=sum(replicas), most=MOST_PODS
        )
        faults.add(f"/spec/tasks/{largest}/replicas", told, "range")
        return
    total: dict[str, int] = {}
    for index, (task, count) in enumerate(zip(tasks, replicas)):
        for resource, units in pod_requests((task.get("template") or {}).get("spec") or {}).items():
            total[resource] = total.get(resource, 0) + units * count
            if total[resource] > (MOST_GPUS * 1000 if is_gpu(resource) else MAX_UNITS):
                told = said(
                    "%(count)s pods of this task are more %(resource)s than can be counted for one job: ask for less",
                    count=count,
                    resource=resource,
                )
                faults.add(f"/spec/tasks/{index}/replicas", told, "range")
                return
