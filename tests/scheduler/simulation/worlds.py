"""Small workloads for tests of the simulator."""

from __future__ import annotations

from typing import Any

from scheduler.simulation.workload import GPU, Job, Role, Workload, equal_nodes, queue

PREEMPT = """\
actions: "allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
ALONE = """\
actions: "allocate"
tiers:
- plugins:
  - name: predicates
  - name: nodeorder
"""


def job(name: str, arrival: float, duration: float, pods: int = 1, gpus: int = 1, **more: Any) -> Job:
    """A gang of pods with so many GPUs each."""
    role = Role("w", pods, {"cpu": "1", "memory": "1Gi", GPU: str(gpus)})
    return Job(name, arrival, duration, (role,), **{"least": pods, **more})


def classes(**values: int) -> list[dict[str, Any]]:
    """Priority classes."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [{**kind, "metadata": {"name": name}, "value": value} for name, value in values.items()]


def workload(*jobs: Job, nodes: int = 1, gpus: int = 8, queues: tuple[str, ...] = (), **values: int) -> Workload:
    """Jobs on equal nodes."""
    return Workload("test", [*equal_nodes(nodes, gpus), *map(queue, queues), *classes(**values)], list(jobs))
