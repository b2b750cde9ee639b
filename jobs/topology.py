"""Who holds which GPU: nodes, their slots, and the jobs on them; what the heatmap draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from cluster.models import Node
from jobs.choices import PodPhase
from jobs.models import Job, Pod

Row = dict[str, Any]

HOLDING = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.TERMINATING, PodPhase.UNKNOWN)
"""Phases of pods that keep their node's GPUs."""


def gpu_rows(nodes: Collection[str] | None = None) -> list[Row]:
    """Machines with GPUs (None: all, else those named) and the state of each slot; four queries however many.

    A slot is free, allocated, releasing (its pod is ending), unhealthy, or unknown (its machine does not answer).
    """
    machines = Node.objects.filter(deleted_at=None, gpu_count__gt=0)
    pods = Pod.objects.filter(deleted_at=None, phase__in=HOLDING).exclude(node="")
    if nodes is not None:
        machines, pods = machines.filter(name__in=nodes), pods.filter(node__in=nodes)
    holders: defaultdict[str, dict[int, Pod]] = defaultdict(dict)
    for pod in pods.only("uid", "name", "node", "gpus", "phase", "job_uid", "queue"):
        for index in pod.gpus:
            holders[pod.node][index] = pod
    wanted = {pod.job_uid for slots in holders.values() for pod in slots.values()}
    jobs = {job.uid: job for job in Job.objects.filter(pk__in=wanted).only("uid", "name", "queue")}
    return [_node_row(machine, holders[machine.name], jobs) for machine in machines.defer("gpu_links", "labels", "taints")]


def _node_row(node: Node, holders: dict[int, Pod], jobs: dict[str, Job]) -> Row:
    unhealthy = set(node.gpu_unhealthy)
    return {
        "node": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "model": node.gpu_model,
        "rack": node.rack,
        "spine": node.spine,
        "gpus": [_slot(i, node.ready, i in unhealthy, holders.get(i), jobs) for i in range(node.gpu_count)],
    }


def _slot(index: int, ready: bool, unhealthy: bool, pod: Pod | None, jobs: dict[str, Job]) -> Row:
    row: Row = {"index": index, "state": "free", "job_uid": "", "job": "", "queue": ""}
    if pod is not None:
        job = jobs.get(pod.job_uid)
        row |= {"job_uid": pod.job_uid, "job": job.name if job else pod.name, "queue": job.queue if job else pod.queue}
        row["state"] = "releasing" if pod.phase == PodPhase.TERMINATING else "allocated"
    if unhealthy:
        row["state"] = "unhealthy"
    elif not ready:
        row["state"] = "unknown"
    return row
