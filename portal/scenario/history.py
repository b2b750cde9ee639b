"""What happened in a case, read off the cluster's own changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster.kinds import EVENT, JOB, KINDS, POD, POD_GROUP, Kind
from cluster.objects import labels, name, owner, uid
from cluster.port import Cluster, Eviction, Obj, Outcome, WatchEvent
from jobs import keys
from jobs.cron.runs import owning_cron

_VOLATILE = frozenset({"resourceVersion", "managedFields", "generation"})
_TEXTS = frozenset({
    "message", "lastTransitionTime", "lastProbeTime", "lastHeartbeatTime", "lastUpdateTime", "transitionID",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evicted:
    """A pod that the scheduler evicted, in which cycle, and of which job."""

    cycle: int
    job: str
    pod: str
    uid: str


def job_of(pod: Obj) -> str:
    """The job that a pod belongs to; a plain pod is a job of its own name."""
    return labels(pod).get(keys.JOB_NAME) or name(pod)


class History:
    """Takes the cluster's changes in and remembers what expectations ask."""

    def __init__(self) -> None:
        self.pods_made: defaultdict[str, set[str]] = defaultdict(set)
        self.first_ran: dict[str, str] = {}
        self.bound: set[str] = set()
        self.admitted: set[str] = set()
        self.existed: defaultdict[Kind, set[str]] = defaultdict(set)
        self.made_by_cron: defaultdict[str, set[str]] = defaultdict(set)
        self.made_at: dict[str, int] = {}
        self.first_pod_at: dict[str, int] = {}
        self.evictions: list[Evicted] = []
        self._known: dict[str, Any] = {}

    def take(self, event: WatchEvent) -> bool:
        """Take one change in; whether it is more than texts and time stamps."""
        if event.kind is None:
            return False
        obj, gone = event.object, event.type == "DELETED"
        self.existed[event.kind].add(name(obj))
        version = int(obj["metadata"].get("resourceVersion") or 0)
        self.made_at.setdefault(f"{event.kind.kind}/{name(obj)}", version)
        if event.kind == POD:
            self._take_pod(obj, version)
        elif event.kind == POD_GROUP:
            self._take_group(obj)
        elif event.kind == JOB and (cron := owning_cron(obj)):
            self.made_by_cron[cron["name"]].add(uid(obj))
        before = self._known.get(uid(obj))
        if gone:
            self._known.pop(uid(obj), None)
            return True
        told = self._known[uid(obj)] = _substance(obj)
        return bool(before != told)

    def _take_group(self, group: Obj) -> None:
        holder = owner(group)
        if holder is not None and (group.get("status") or {}).get("phase") not in (None, "", "Pending"):
            self.admitted.add(holder["name"])

    def _take_pod(self, pod: Obj, version: int) -> None:
        job = job_of(pod)
        self.pods_made[job].add(uid(pod))
        self.first_pod_at.setdefault(job, version)
        if pod["spec"].get("nodeName"):
            self.bound.add(uid(pod))
        if (pod.get("status") or {}).get("phase") == "Running":
            self.first_ran.setdefault(name(pod), uid(pod))


WATCHED = tuple(kind for kind in KINDS if kind != EVENT)
"""What counts when a cycle is asked whether it changed anything."""


def _substance(obj: Obj) -> Any:
    """An object without texts and time stamps of its conditions, and without what counts its versions."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _VOLATILE}
    status = obj.get("status")
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        conditions = [{key: value for key, value in each.items() if key not in _TEXTS} for each in status["conditions"]]
        status = {**status, "conditions": conditions}
    return {**obj, "metadata": meta, "status": status}


class SchedulersView:
    """The cluster as the scheduler sees it; its evictions are noted."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster, self._history = cluster, history
        self.cycle = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._cluster, verb)

    def evict_many(self, evictions: Sequence[Eviction]) -> list[Outcome]:
        """Evict, as the scheduler does it, and note those that were done."""
        pods = {uid(pod): pod for pod in self._cluster.list(POD).items}
        outcomes = self._cluster.evict_many(evictions)
        for eviction, outcome in zip(evictions, outcomes, strict=True):
            if outcome.error is None:
                self._history.evictions.append(Evicted(self.cycle, job_of(pods[eviction.uid]), eviction.name, eviction.uid))
        return outcomes
