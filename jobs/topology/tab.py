"""The part 'Placement' of a job's page: where its pods are, were or would go; else which domain comes nearest to holding them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.objects import is_gpu
from cluster.quantities import gpu_count
from jobs.choices import JobPhase
from jobs.keys import pod_name
from jobs.models import Job, Task
from jobs.topology import foretold, placement, places
from jobs.topology.facts import ground
from jobs.topology.network import Network
from jobs.topology.placement import Placement
from jobs.topology.stock import Machine, stock
from scheduler.topology.fragments import Shape
from scheduler.topology.gpu import indices
from scheduler.topology.hypernodes import TOP
from scheduler.topology.nearest import nearest

ROWS = 200
"""Places that the table lists."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The domain of a tier that comes nearest; `name` is empty for the whole fleet."""

    label: str
    name: str
    pods: int
    asked: int
    gpus: int
    asked_gpus: int
    short: int

    @property
    def fits(self) -> bool:
        return self.pods == self.asked

    @property
    def held(self) -> int:
        """What is compared: GPUs, or pods of a job without."""
        return self.gpus if self.asked_gpus else self.pods

    @property
    def wanted(self) -> int:
        return self.asked_gpus or self.asked


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what a task holds on a node. `names` of the pods are known where there are not too many."""

    task: str
    node: str
    domain: str
    pods: int
    gpus: tuple[int, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """What the job asks of its topology: `hard` up to a tier, or `soft`."""

    mode: str
    tier: str


def context(user: Any, job: Job, tasks: Sequence[Task]) -> dict[str, Any]:
    """Everything that the part shows: a constant number of queries, and for a waiting job a question to the copy."""
    needs = {name for task in tasks for name in task.requests if not is_gpu(name) and name != "pods"}
    machines, network = ground(user, needs)
    found = places.of_job(job)
    waits = found is None and job.phase == JobPhase.PENDING and job.deleted_at is None
    would = foretold.places(user, job) if waits else None
    if would:
        found = places.of_trial(job.name, would)
    order = [task.name for task in tasks]
    drawn = placement.draw(found, machines, network, order) if found is not None else None
    nearer = near(machines, network, asked_by(tasks, job.gpu_model)) if waits and not would else []
    return {
        "drawn": drawn,
        "places_kind": found.kind if found is not None else "",
        "place_rows": rows(job.name, drawn, machines, network) if drawn is not None else [],
        "places_more": max(0, len(found.held) - ROWS) if found is not None else 0,
        "nearest": nearer,
        "best": best_of(nearer),
        "asked_of_copy": would is not None,
        "waits": waits,
        "limit": limit(job),
        "network": network,
    }


def rows(job: str, drawn: Placement, machines: Sequence[Machine], network: Network) -> list[Row]:
    """The places as a table."""
    leaf, tree = network.tree.leaf.tolist(), network.tree
    at = {machine.name: tree.domains[leaf[row]].name for row, machine in enumerate(machines) if leaf[row] >= 0}
    return [
        Row(held.task, held.node, "" if at.get(held.node, TOP) == TOP else at[held.node], held.pods,
            indices(held.gpus), tuple(pod_name(job, held.task, index) for index in sorted(held.labels.values())))
        for held in drawn.places.held[:ROWS]
    ]  # fmt: skip


def near(machines: Sequence[Machine], network: Network, pods: Iterable[tuple[Shape, int]]) -> list[Nearest]:
    """For each tier the domain in which the most of some pods would fit."""
    return [
        Nearest(
            network.tiers[each.domain.tier], "" if each.domain.name == TOP else each.domain.name,
            each.pods, each.asked, each.gpus, each.asked_gpus, each.short,
        )
        for each in nearest(stock(machines), network.tree, pods)
    ]  # fmt: skip


def best_of(found: Sequence[Nearest]) -> Nearest | None:
    """The one with the most room; of equal ones the lowest."""
    return max(found, key=lambda each: each.held, default=None)


def asked_by(tasks: Iterable[Task], model: str) -> list[tuple[Shape, int]]:
    """What the tasks of a job ask for each pod, and how many pods."""
    return [(shape(task.requests, model), task.replicas) for task in tasks]


def shape(requests: Mapping[str, int], model: str) -> Shape:
    """What a pod asks."""
    gpus = int(gpu_count(requests))
    needs = {name: units for name, units in requests.items() if units > 0 and not is_gpu(name) and name != "pods"}
    return Shape(gpus, needs, model if gpus else "")


def limit(job: Job) -> Limit | None:
    """What the job's manifest says of its topology; None where it says nothing, or nothing that can be read."""
    said = (job.manifest.get("spec") or {}).get("networkTopology")
    if not isinstance(said, dict):
        return None
    tier = said.get("highestTierAllowed", said.get("highestTierName"))
    return Limit("soft" if said.get("mode") == "soft" else "hard", "" if tier is None else str(tier))


def as_json(found: dict[str, Any]) -> dict[str, Any]:
    """The part for programs."""
    drawn: Placement | None = found["drawn"]
    wanted: Limit | None = found["limit"]
    return {
        "waits": found["waits"],
        "placement": placement.as_json(drawn) if drawn is not None else None,
        "topology": {"mode": wanted.mode, "highest_tier": wanted.tier} if wanted is not None else None,
        "nearest": [near_json(each) for each in found["nearest"]],
    }


def near_json(each: Nearest) -> dict[str, Any]:
    """One tier's nearest domain for programs."""
    return {
        "tier_name": each.label, "domain": each.name, "pods": each.pods, "pods_asked": each.asked, "gpus": each.gpus,
        "gpus_asked": each.asked_gpus, "short": each.short, "fits": each.fits,
    }  # fmt: skip
