"""Clusters that run what is bound, so that something can be evicted from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cluster.kinds import POD, by_api
from cluster.port import Obj, WatchEvent
from scheduler.model.tasks import TaskStatus
from tests.scheduler.world import World, gang

HIGH, MID, LOW = "high", "mid", "low"
PRIORITIES: list[Obj] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in ((HIGH, 1000), (MID, 100), (LOW, 10))
]


def conf(actions: str, *tiers: str, **arguments: Any) -> str:
    """A configuration; plugins are given by name, `-name` without a say in evictions."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        for word in tier.split():
            lines.append(f"  - name: {word.lstrip('-')}")
            if word.startswith("-"):
                lines += ["    enablePreemptable: false", "    enableReclaimable: false"]
            lines += [f"    {line}" for line in arguments.get(word.lstrip("-").replace("-", "_"), ())]
    return "\n".join(lines) + "\n"


PREEMPT = conf("enqueue, allocate, preempt, backfill", "priority -gang conformance -drf predicates proportion nodeorder")
RECLAIM = conf("enqueue, allocate, reclaim, backfill", "priority gang conformance drf predicates proportion nodeorder")


class Busy(World):
    """Pods that get a node run at once; evicted ones are gone after the cycle, and made anew if `restarts` says so."""

    def __init__(self, *parts: Any, conf: str = PREEMPT, restarts: bool = False) -> None:
        super().__init__(*PRIORITIES, *parts, conf=conf)
        self.restarts, self.evicted, self.records = restarts, [], []
        self._again = 0

    def cycle(self, times: int = 1) -> Busy:
        for _ in range(times):
            done = self.offline.decide()
            self.cycles.append(done)
            gone = [dict(self.offline.cache.tasks[eviction.uid].pod) for eviction in done.evictions]
            self.offline.take_in(done)
            for binding in done.binds:
                self.run(binding.uid)
                self.bound[binding.name] = binding.node
            self.evicted += [pod["metadata"]["name"] for pod in gone]
            self.records += done.record.evictions
            for verdict_of, verdict in done.record.verdicts.items():
                self.verdicts[verdict_of.removeprefix("default/")] = verdict
            if self.restarts:
                for pod in gone:
                    self.add(self._fresh(pod))
        return self

    def _fresh(self, pod: Obj) -> Obj:
        self._again += 1
        meta = {**pod["metadata"], "uid": f"{pod['metadata']['uid'].split('~')[0]}~{self._again}"}
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != "basalt.dev/gpu-indices"}
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}

    def run(self, uid: str) -> None:
        pod = dict(self.offline.cache.tasks[uid].pod)
        self.offline.cache.apply(WatchEvent("MODIFIED", POD, {**pod, "status": {"phase": "Running"}}))

    def add(self, *parts: Any) -> Busy:
        for part in parts:
            for obj in part if isinstance(part, list) else [part]:
                kind = by_api(obj["apiVersion"], obj["kind"])
                assert kind is not None
                self.offline.cache.apply(WatchEvent("ADDED", kind, obj))
        return self

    def running(self) -> dict[str, int]:
        """Running pods by PodGroup, those with none left out."""
        jobs = self.offline.cache.jobs.values()
        return {job.name: job.count(TaskStatus.RUNNING) for job in jobs if job.count(TaskStatus.RUNNING)}

    def evicted_by_job(self) -> dict[str, int]:
        return dict(Counter(name.split("-")[0] for name in self.evicted))


def job(name: str, replicas: int, least: int | None = None, *, priority: str = "", **more: Any) -> list[Obj]:
    """A gang of the priority class."""
    extra = {"priorityClassName": priority} if priority else {}
    return gang(name, replicas, least, **extra, **more)
