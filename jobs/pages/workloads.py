"""Pods on nodes, for the pages of nodes and GPUs: this app's answer to `cluster.workloads`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from math import ceil
from typing import Any

from django.db.models import BigIntegerField, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from cluster.access import policy
from cluster.objects import gpu_count
from cluster.workloads import Holder, PodOnNode, Share, Usage
from jobs.choices import PodPhase
from jobs.models import Job, Pod

OCCUPYING = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.TERMINATING, PodPhase.UNKNOWN)

_HELD = (
    "node", "nominated", "gpus", "cards", "job_uid", "queue", "phase", "task", "index", "started_at", "scheduled_at",
)  # fmt: skip


class PodRows:
    """Reads the projected pods."""

    def holders(self, user: Any, nodes: Collection[str] | None = None) -> list[Holder]:
        """Whoever holds GPUs whole or in part, then whoever is to have some that others give up."""
        placed = _occupying(nodes).exclude(gpus=[], cards=[])
        awaited = Pod.objects.filter(deleted_at=None, node="", phase=PodPhase.PENDING).exclude(nominated="")
        if nodes is not None:
            awaited = awaited.filter(nominated__in=nodes)
        pods = [*placed.values_list(*_HELD), *awaited.values_list(*_HELD, "requests")]
        known = _jobs(user, placed) | (_jobs(user, awaited) if any(not pod[0] for pod in pods) else {})
        return [_holder(pod, known) for pod in pods]

    def usage(self, nodes: Collection[str] | None = None) -> dict[str, Usage]:
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        pods: Counter[str] = Counter()
        held: defaultdict[str, set[Any]] = defaultdict(set)
        for node, requests, gpus, cards in _occupying(nodes).values_list("node", "requests", "gpus", "cards"):
            sums[node].update(requests)
            pods[node] += 1
            held[node].update(gpus or (card.partition("[")[0] for card, _memory, _cores in cards))
        return {node: Usage(pods[node], len(held[node]), dict(sums[node])) for node in pods}

    def pods(self, user: Any, node: str) -> list[PodOnNode]:
        pods = _occupying([node])
        known = _jobs(user, pods)
        return [_row(pod, known) for pod in pods.order_by("namespace", "name")]

    def held(self, resource: str) -> dict[tuple[str, str], int]:
        units = Sum(Cast(KeyTextTransform(resource, "requests"), BigIntegerField()))
        rows = _occupying(None).order_by().values_list("queue", "node").annotate(units=units).filter(units__gt=0)
        return {(queue, node): amount for queue, node, amount in rows}


def _holder(pod: tuple[Any, ...], known: dict[str, tuple[str, str, str]]) -> Holder:
    """One pod of `_HELD`, with its requests when it waits. Of a job that the reader may not see it says only what is held."""
    node, nominated, gpus, cards, uid, queue, phase, task, index, started, scheduled, *requests = pod
    parts = tuple(_share(*card) for card in cards)
    mine = {
        "node": node or nominated,
        "gpus": () if parts else tuple(gpus),
        "shares": parts,
        "releasing": phase == PodPhase.TERMINATING,
        "reserved": 0 if node else ceil(gpu_count(*requests)),
    }
    if uid and uid not in known:
        return Holder(job_uid="", job="", queue="", owner="", **mine)
    namespace, name, owner = known.get(uid, ("", "", ""))
    return Holder(
        job_uid=uid, job=f"{namespace}/{name}" if name else "", queue=queue, owner=owner, task=task, index=index,
        since=started or scheduled, **mine,
    )  # fmt: skip


def _share(card: str, memory: int, cores: int) -> Share:
    uuid, _, instance = card.partition("[")
    return Share(uuid, memory, cores, instance.removesuffix("]"))


def _row(pod: Pod, known: dict[str, tuple[str, str, str]]) -> PodOnNode:
    seen = pod.job_uid in known or not pod.job_uid
    return PodOnNode(
        namespace=pod.namespace if seen else "",
        name=pod.name if seen else "",
        job_uid=pod.job_uid if seen else "",
        job="/".join(known[pod.job_uid][:2]) if pod.job_uid in known else "",
        queue=pod.queue,
        phase=pod.phase,
        mark=PodPhase(pod.phase).mark,
        gpus=tuple(pod.gpus),
        requests=pod.requests,
        started_at=pod.started_at,
    )


def _occupying(nodes: Collection[str] | None) -> QuerySet[Pod]:
    pods = Pod.objects.filter(deleted_at=None, phase__in=OCCUPYING).exclude(node="")
    return pods if nodes is None else pods.filter(node__in=nodes)


def _jobs(user: Any, pods: QuerySet[Pod]) -> dict[str, tuple[str, str, str]]:
    """Namespace, name and owner of the pods' jobs, as far as the user may see them."""
    jobs = policy().visible(user, Job.objects.filter(uid__in=pods.order_by().values("job_uid")))
    return {
        uid: (namespace, name, owner) for uid, namespace, name, owner in jobs.values_list("uid", "namespace", "name", "owner")
    }
