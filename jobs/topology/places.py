"""Where the pods of a job are, were, or would go: which task holds which GPUs of which node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Max, QuerySet

from jobs.models import Job, Pod
from jobs.pages.workloads import OCCUPYING
from jobs.topology.stock import Joined, mask

LABELLED = 160
"""Pods of a job whose numbers are written into their cells; of more the pods are told by task and node alone."""
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class Held:
    """What one task holds on one node: pods, a mask of GPUs, and the pods' numbers by their first GPU."""

    task: str
    node: str
    pods: int = 0
    gpus: int = 0
    labels: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Places:
    """All of a job's. `kind` is `now`, `was` (the job has ended, or lost its pods) or `would` (a dry run)."""

    kind: str
    held: list[Held]

    @property
    def pods(self) -> int:
        return sum(each.pods for each in self.held)

    @property
    def gpus(self) -> int:
        return sum(each.gpus.bit_count() for each in self.held)


def of_job(job: Job) -> Places | None:
    """The pods that have a node, summed by the database; of an ended job without any those of its last run; None: no pod."""
    pods = Pod.objects.filter(job_uid=job.uid).exclude(node="")
    held = _summed(pods.filter(deleted_at=None, phase__in=OCCUPYING), job.replicas)
    if held:
        return Places("was" if job.finished_at or job.deleted_at else "now", held)
    if not job.finished_at and not job.deleted_at:
        return None
    last = pods.aggregate(version=Max("job_version"))["version"]
    held = _summed(pods.filter(job_version=last), job.replicas) if last is not None else []
    return Places("was", held) if held else None


def _summed(pods: QuerySet[Pod], replicas: int) -> list[Held]:
    found: dict[tuple[str, str], Held] = {}
    rows = pods.order_by("task", "node").values_list("task", "node").annotate(number=Count("uid"), all_gpus=Joined("gpus"))
    for task, node, number, gpus in rows:
        found[task, node] = Held(task, node, number, mask(map(int, _NUMBER.findall(gpus or ""))))
    if found and replicas <= LABELLED:
        for task, node, index, gpus in pods.values_list("task", "node", "index", "gpus"):
            found[task, node].labels[min(gpus, default=len(found[task, node].labels))] = index
    return list(found.values())


def of_trial(job: str, places: Sequence[tuple[str, str, tuple[int, ...]]]) -> Places:
    """Pods (name, node, GPUs) that a dry run placed."""
    found: dict[tuple[str, str], Held] = {}
    for pod, node, gpus in places:
        task, _, index = pod.removeprefix(f"{job}-").rpartition("-")
        held = found.setdefault((task, node), Held(task, node))
        held.pods += 1
        held.gpus |= mask(gpus)
        if len(places) <= LABELLED:
            held.labels[min(gpus, default=len(held.labels))] = int(index) if index.isdecimal() else 0
    return Places("would", sorted(found.values(), key=lambda held: (held.task, held.node)))


def tasks_of(places: Places, order: Iterable[str] = ()) -> list[str]:
    """The tasks that have places, those of `order` first."""
    there = {held.task for held in places.held}
    return [task for task in order if task in there] + sorted(there - set(order))
