"""The GPUs that each queue's pods hold, by model: guarantees, what is deserved and limits are of GPUs whatever their model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cluster import workloads
from cluster.models import Node
from queues.queries import ROOT, Branch


@dataclass(frozen=True, slots=True)
class Cell:
    """One model in one line of the tree: milli-GPUs held there and below, and those of the fleet."""

    model: str
    held: int
    fleet: int

    @property
    def style(self) -> str:
        """The bar's widths; every level has the same scale."""
        return f"--cap:100%;--alc:{100 * self.held / (self.fleet or 1):.2f}%"


def models(resource: str) -> dict[str, int]:
    """The models of GPU that the ready nodes have, the most GPUs first, with how many (milli-GPUs)."""
    found: Counter[str] = Counter()
    for model, allocatable in (
        Node.objects.filter(deleted_at=None, ready=True).exclude(gpu_model="").values_list("gpu_model", "allocatable")
    ):
        found[model] += allocatable.get(resource, 0)
    return dict(found.most_common())


def cells(branches: Sequence[Branch], resource: str, fleet: dict[str, int]) -> list[tuple[Branch, list[Cell]]]:
    """Every branch with a cell a model; an inner queue has what the queues below it have together."""
    of_node = dict(Node.objects.filter(deleted_at=None).values_list("name", "gpu_model"))
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (queue, node), units in workloads.current().held(resource).items():
        held[queue][of_node.get(node, "")] += units
    for branch in reversed(branches):  # children come before their parents
        if branch.above and branch.queue.name != ROOT:
            held[branch.above].update(held[branch.queue.name])
    return [
        (branch, [Cell(model, held[branch.queue.name][model], total) for model, total in fleet.items()]) for branch in branches
    ]
