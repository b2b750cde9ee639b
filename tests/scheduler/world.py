"""Small clusters as objects, and cycles over them."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from cluster.port import Obj
from scheduler.cycle import Cycle
from scheduler.snapshot import Offline, Snapshot

_SERIAL = count(1)

CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
BARE = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n'


def created(second: int) -> str:
    return f"2030-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def node(name: str, cpu: object = 8, memory: str = "64Gi", pods: int = 110, *, labels: Any = None, **extra: Any) -> Obj:
    amounts = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    amounts |= {key.replace("gpu", "nvidia.com/gpu"): str(value) for key, value in extra.items() if key == "gpu"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def queue(name: str, weight: int = 1, **spec: Any) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}"},
        "spec": {"weight": weight, **spec},
        "status": {"state": "Open"},
    }


def pod(group: str, role: str, index: int, requests: dict[str, object], **spec: Any) -> Obj:
    name = f"{group}-{role}-{index}"
    texts = {"nvidia.com/gpu" if key == "gpu" else key: str(value) for key, value in requests.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"pod-{name}",
            "creationTimestamp": created(0),
            "annotations": {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": role},
        },
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "resources": {"requests": texts}}], **spec},
        "status": {"phase": "Pending"},
    }


def group(name: str, least: int, *, queue: str = "default", at: int | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"group-{name}",
            "creationTimestamp": created(next(_SERIAL) % 80_000 if at is None else at),
        },
        "spec": {"minMember": least, "queue": queue, **spec},
        "status": {"phase": "Pending"},
    }


def gang(
    name: str,
    replicas: int,
    least: int | None = None,
    *,
    role: str = "w",
    pod_spec: Any = None,
    at: int | None = None,
    **requests: Any,
) -> list[Obj]:
    """A PodGroup with pods of one role; `cpu=`, `memory=`, `gpu=` a pod, `queue=`, `minResources=` for the group."""
    extra = {key: requests.pop(key) for key in ("queue", "minResources", "priorityClassName") if key in requests}
    pods = [pod(name, role, i, requests, **(pod_spec or {})) for i in range(replicas)]
    return [group(name, replicas if least is None else least, at=at, **extra), *pods]


class World:
    """Cycles over objects, with what they bound."""

    def __init__(self, *parts: Any, conf: str = CONF) -> None:
        flat: list[Obj] = []
        for part in parts:
            flat.extend(part if isinstance(part, list) else [part])
        self.offline = Offline(Snapshot.of(flat, conf), now=1_000_000.0)
        self.bound: dict[str, str] = {}
        self.gpus: dict[str, str] = {}
        self.verdicts: dict[str, Any] = {}
        self.cycles: list[Cycle] = []

    def cycle(self, times: int = 1) -> World:
        for _ in range(times):
            done = self.offline.cycle()
            self.cycles.append(done)
            self.bound |= {binding.name: binding.node for binding in done.binds}
            self.gpus |= {binding.name: binding.annotations.get("basalt.dev/gpu-indices", "") for binding in done.binds}
            for uid, verdict in done.record.verdicts.items():
                self.verdicts[uid.removeprefix("default/")] = verdict
        return self

    def started(self) -> dict[str, int]:
        """Pods with a node by PodGroup."""
        return dict(Counter(name.split("-")[0] for name in self.bound))

    def phase(self, name: str) -> str:
        return self.offline.cache.jobs[f"default/{name}"].phase
