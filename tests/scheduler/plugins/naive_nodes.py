"""Nodes and pods of the slow, obvious scheduler, and what each scorer says of a node, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from scheduler.model.tasks import TaskStatus

Amounts = dict[str, float]


@dataclass
class Node:
    """One node; amounts by resource."""

    name: str
    allocatable: Amounts
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    cordoned: bool
    used: Amounts = field(default_factory=dict)
    releasing: Amounts = field(default_factory=dict)
    pipelined: Amounts = field(default_factory=dict)
    listed: Amounts = field(default_factory=dict)
    nonzero: list[int] = field(default_factory=lambda: [0, 0])
    pods: int = 0

    def idle(self, resource: str) -> float:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def future(self, resource: str) -> float:
        return self.idle(resource) + self.releasing.get(resource, 0) - self.pipelined.get(resource, 0)


@dataclass
class Task:
    """One pod."""

    uid: str
    request: Amounts
    nonzero: tuple[int, int]
    spec: dict[str, Any]
    role: str
    order: tuple[Any, ...]
    best_effort: bool
    status: TaskStatus
    node: int
    labels: dict[str, str]


def scores(task: Task, nodes: list[Node], rows: list[int], weights: dict[str, int], binpack: dict[str, int]) -> dict[int, float]:
    """The score of each candidate row."""
    taints = {row: sum(_disliked(task, taint) for taint in nodes[row].taints) for row in rows}
    wishes = {row: _wishes(task, nodes[row]) for row in rows}
    most_taints, most_wishes = max(taints.values()), max(wishes.values())
    found = {}
    for row in rows:
        score = _resources(task, nodes[row], weights)
        score += weights["tainttoleration"] * (100 - (100 * taints[row] // most_taints if most_taints else 0))
        score += weights["nodeaffinity"] * (100 * wishes[row] // most_wishes if most_wishes else 0)
        found[row] = score + _packed(task, nodes[row], binpack)
    return found


def _wishes(task: Task, node: Node) -> int:
    node_affinity = task.spec.get("affinity", {}).get("nodeAffinity", {})
    return sum(
        wish["weight"]
        for wish in node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
        if all(node.labels.get(e["key"]) in e["values"] for e in wish["preference"]["matchExpressions"])
    )


def _resources(task: Task, node: Node, weights: dict[str, int]) -> float:
    have = [node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)]
    need = [held + more for held, more in zip(node.nonzero, task.nonzero)]
    least = [100 * max(h - n, 0) // h for h, n in zip(have, need) if h]
    most = [100 * min(h, n) // h for h, n in zip(have, need) if h]
    score = weights["leastrequested"] * (sum(least) // len(least) if least else 0)
    score += weights["mostrequested"] * (sum(most) // len(most) if most else 0)
    return score + weights["balancedresource"] * _balance(task, node)


def _balance(task: Task, node: Node) -> int:
    names = ["cpu", "memory"] + (["nvidia.com/gpu"] if task.request.get("nvidia.com/gpu") else [])
    if not any(task.request.get(name) for name in names):
        return 0
    after, before = (
        _evenness(
            [
                min((node.listed.get(name, 0) + times * task.request.get(name, 0)) / node.allocatable[name], 1.0)
                for name in names
                if node.allocatable.get(name)
            ]
        )
        for times in (1, 0)
    )
    return 50 + (50 + after - before) // 2


def _evenness(shares: list[float]) -> int:
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs(shares[0] - shares[1]) / 2) * 100)
    mean = sum(shares) / len(shares)
    return int((1 - sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))) * 100)


def _packed(task: Task, node: Node, binpack: dict[str, int]) -> float:
    score, divisor = 0.0, 0
    for name, weight in binpack.items():
        amount, have = task.request.get(name, 0), node.allocatable.get(name, 0)
        if not amount:
            continue
        divisor += weight
        if not have or not weight:
            continue
        filled = node.used.get(name, 0) + amount
        if filled > have:
            return 0.0
        score += filled * float(weight) / have
    return score / divisor * 100 if divisor else 0.0


def compared(task: Task) -> list[tuple[str, float]]:
    """What must fit: cpu and memory, also when nothing of them is asked, and everything that is."""
    return list({"cpu": 0, "memory": 0, **task.request}.items())


def shunned(task: Task) -> list[tuple[str, dict[str, str]]]:
    """Topology key and labels of the pods that the task keeps away from."""
    terms = task.spec.get("affinity", {}).get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return [(term["topologyKey"], term["labelSelector"]["matchLabels"]) for term in terms]


def _disliked(task: Task, taint: dict[str, Any]) -> bool:
    return taint["effect"] == "PreferNoSchedule" and not tolerated(task, taint)


def tolerated(task: Task, taint: dict[str, Any]) -> bool:
    return any(each["key"] == taint["key"] for each in task.spec.get("tolerations", []))
