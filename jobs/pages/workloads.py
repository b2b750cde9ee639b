"""Pods on nodes, for the pages of nodes and GPUs: this app's answer to `cluster.workloads`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from cluster.access import policy
from cluster.workloads import Holder, PodOnNode, Usage
from jobs.choices import PodPhase
from jobs.models import Job, Pod

OCCUPYING = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.TERMINATING, PodPhase.UNKNOWN)


class PodRows:
    """Reads the projected pods."""

    def holders(self, user: Any, nodes: Collection[str] | None = None) -> list[Holder]:
        pods = _occupying(nodes).exclude(gpus=[])
        known = _jobs(user, pods)
        found = []
        for node, gpus, uid, queue, phase in pods.values_list("node", "gpus", "job_uid", "queue", "phase"):
            namespace, name, owner = known.get(uid, ("", "", ""))
            job = f"{namespace}/{name}" if name else ""
            found.append(Holder(node, tuple(gpus), uid if job else "", job, queue, owner, phase == PodPhase.TERMINATING))
        return found

    def usage(self, nodes: Collection[str] | None = None) -> dict[str, Usage]:
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        pods: Counter[str] = Counter()
        gpus: Counter[str] = Counter()
        for node, requests, held in _occupying(nodes).values_list("node", "requests", "gpus"):
            sums[node].update(requests)
            pods[node] += 1
            gpus[node] += len(held)
        return {node: Usage(pods[node], gpus[node], dict(sums[node])) for node in pods}

    def pods(self, user: Any, node: str) -> list[PodOnNode]:
        pods = _occupying([node])
        known = _jobs(user, pods)
        return [_row(pod, known) for pod in pods.order_by("namespace", "name")]


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
