"""One look at a node that is drained: who still has to go, who is evicted, what keeps whom, which jobs are told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import structlog

from cluster import machines, objects, runtime
from cluster.errors import ApiError, Conflict, NotFound, TooManyRequests
from cluster.events import event_about
from cluster.kinds import EVENT, JOB, POD
from cluster.leaving import has_local_data, has_to_go, is_bare
from cluster.port import Cluster, Eviction, Obj
from cluster.projection import Batch, project_events
from cluster.said import said
from portal.maintenance.models import Drain, DrainedNode, Mode

log = structlog.get_logger(__name__)

TOLD = "NodeDraining"
"""Reason of the events of jobs that lose pods, or that are waited for."""


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that stays for now. `code`: budget, bare, local-data, refused; `why` is what the cluster said."""

    namespace: str
    name: str
    uid: str
    code: str
    why: str = ""

    def as_dict(self) -> dict[str, str]:
        """As it is kept."""
        return asdict(self)


@dataclass(slots=True)
class Look:
    """Pods that still have to go, those of them that something keeps, and their jobs by uid."""

    left: int = 0
    held: list[Held] = field(default_factory=list)
    jobs: dict[str, Obj] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is there any more who has to go."""
        return self.left == 0


def empty(cluster: Cluster, drain: Drain, node: str, evicts: bool) -> Look:
    """Look at a node, and evict who may be evicted now."""
    going = [pod for pod in cluster.list(POD, fields=f"spec.nodeName={node}").items if has_to_go(pod)]
    look = Look(left=len(going), jobs={objects.uid(job): job for job in map(_job_of, going) if job is not None})
    victims = []
    for pod in going if evicts else ():
        if objects.is_deleting(pod):
            continue
        if code := _unasked(drain, pod):
            look.held.append(_held(pod, code))
        else:
            victims.append(pod)
    why = message(drain, node)
    wanted = [Eviction(objects.namespace(pod), objects.name(pod), objects.uid(pod), message=why) for pod in victims]
    for pod, outcome in zip(victims, cluster.evict_many(wanted) if wanted else (), strict=True):
        if outcome.error is not None and not isinstance(outcome.error, NotFound | Conflict):
            code = "budget" if isinstance(outcome.error, TooManyRequests) or _is_of_budgets(outcome.error) else "refused"
            look.held.append(_held(pod, code, str(outcome.error)))
    return look


def message(drain: Drain, node: str) -> str:
    """Why a pod is evicted, as the pod says it."""
    return said("node %(node)s is drained by %(user)s: %(reason)s", node=node, user=drain.user, reason=drain.reason)


def _unasked(drain: Drain, pod: Obj) -> str:
    """What would have to be asked for before a pod may be evicted, empty for nothing."""
    if is_bare(pod) and not drain.bare:
        return "bare"
    return "local-data" if has_local_data(pod) and not drain.local_data else ""


def _is_of_budgets(error: Exception) -> bool:
    """Kubernetes refuses a pod that more than one budget is about, as a fault of its own."""
    return "more than one PodDisruptionBudget" in str(error)


def _held(pod: Obj, code: str, why: str = "") -> Held:
    return Held(objects.namespace(pod), objects.name(pod), objects.uid(pod), code, why[:500])


def _job_of(pod: Obj) -> Obj | None:
    """As much of a pod's Job as an event needs."""
    owner: dict[str, Any] | None = objects.owner(pod)
    if owner is None or owner.get("kind") != JOB.kind or owner.get("apiVersion") != JOB.api_version:
        return None
    meta = {"name": owner.get("name"), "uid": owner.get("uid"), "namespace": objects.namespace(pod)}
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta}


def tell_jobs(cluster: Cluster, drain: Drain, row: DrainedNode, jobs: dict[str, Obj]) -> list[str]:
    """Tell jobs once what happens to their pods; the uids of those that were told now."""
    told: list[str] = []
    news = said("%(news)s", news=(message(drain, row.node), _then(drain)))
    stamp = objects.stamp(runtime.now().timestamp())
    for uid, job in jobs.items():
        if uid in row.told:
            continue
        event = event_about(job, "Normal", TOLD, news, stamp=stamp, component=machines.SOURCE)
        try:
            project_events(Batch(upserts=[cluster.create(EVENT, event, field_manager="basalt")]))
        except ApiError as error:
            log.warning("a job could not be told that its node is drained", job=objects.key(job), error=error.message)
        told.append(uid)
    return told


def _then(drain: Drain) -> str:
    if drain.mode == Mode.EVICT:
        return said("its pods there are evicted")
    if drain.deadline is None:
        return said("its pods there are waited for")
    until = objects.stamp(drain.deadline.timestamp())
    if drain.mode == Mode.WAIT_THEN_EVICT:
        return said("its pods there are waited for until %(until)s, then they are evicted", until=until)
    return said("its pods there are waited for until %(until)s", until=until)
