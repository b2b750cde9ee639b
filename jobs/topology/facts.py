"""What fits where, for one user: gathered in a constant number of queries, whatever runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Q, Sum

from cluster.access import ALL, policy
from cluster.capacity import NODE_TIER, Fits, Summary, Unusable
from cluster.objects import is_gpu
from cluster.quantities import gpu_count
from jobs.choices import GroupPhase, JobPhase
from jobs.models import Job, Task
from jobs.topology import stock as stocks
from jobs.topology.network import Network, network
from scheduler.model.resources import Ints
from scheduler.topology import largest
from scheduler.topology.fragments import Fragments, Shape, fragments
from scheduler.topology.hypernodes import TOP, Domain
from scheduler.topology.largest import ANY, DomainRoom
from scheduler.topology.stock import Stock

MOST_SHAPES = 400


@dataclass(frozen=True, slots=True)
class Asked:
    """A shape of pods that jobs ask, and how many pods of it."""

    shape: Shape
    pods: int


def shapes(user: Any) -> tuple[list[Asked], list[Asked]]:
    """Shapes with whole GPUs of the jobs that wait, and of those that run, most pods first; one query."""
    wait = Q(job__phase=JobPhase.PENDING) & ~Q(job__group_phase=GroupPhase.RUNNING)
    tasks = Task.objects.filter(wait | Q(job__phase=JobPhase.RUNNING), job__deleted_at=None, job__gpus__gt=0, replicas__gt=0)
    if policy().rights(user) != ALL:
        tasks = tasks.filter(job__in=policy().visible(user, Job.objects.all()))
    waiting: list[Asked] = []
    usual: list[Asked] = []
    for phase, model, requests, pods in (
        tasks.order_by().values_list("job__phase", "job__gpu_model", "requests").annotate(Sum("replicas"))
    ):
        gpus = gpu_count(requests)
        if gpus >= 1 and gpus == int(gpus):
            needs = {name: units for name, units in requests.items() if units > 0 and not is_gpu(name) and name != "pods"}
            (waiting if phase == JobPhase.PENDING else usual).append(Asked(Shape(int(gpus), needs, model), pods))
    return _commonest(waiting), _commonest(usual)


def _commonest(found: list[Asked]) -> list[Asked]:
    return sorted(found, key=lambda each: -each.pods)[:MOST_SHAPES]


@dataclass
class Facts:
    """The machines that a user may see, their network, what is asked; and what follows."""

    machines: Sequence[stocks.Machine]
    network: Network
    waiting: Sequence[Asked]
    usual: Sequence[Asked]

    @cached_property
    def stock(self) -> Stock:
        """What is left, by node in the order of `machines`."""
        return stocks.stock(self.machines)

    @cached_property
    def fragments(self) -> Fragments:
        """Free GPUs of no use."""
        return fragments(self.stock, [each.shape for each in self.waiting], [each.shape for each in self.usual])

    @cached_property
    def rooms(self) -> list[dict[str, DomainRoom]]:
        """By domain and model: what fits."""
        return largest.domains(self.stock, self.network.tree)

    @cached_property
    def by_node(self) -> Ints:
        """Of each node GPUs of single pods that fit, and whether it is free as a whole."""
        return largest.nodes(self.stock)[:, [0, -1]]

    @cached_property
    def unusable_by_node(self) -> dict[str, int]:
        """Free GPUs of no use on each node that has any."""
        found: dict[str, int] = {}
        for part in self.fragments.parts:
            found[part.node] = found.get(part.node, 0) + part.gpus
        return found

    @cached_property
    def unusable_parts(self) -> dict[str, list[Unusable]]:
        """The same with their causes."""
        found: dict[str, list[Unusable]] = {}
        for part in self.fragments.parts:
            found.setdefault(part.node, []).append(part)
        return found

    def tiers(self, model: str = ANY) -> tuple[Fits, ...]:
        """The largest gang that fits now, from the single node up to the whole fleet."""
        tree = self.network.tree
        found = [
            Fits(best.tier, self.network.tiers[best.tier], best.gpus, _named(best.domain), best.whole, _named(best.whole_domain))
            for best in largest.per_tier(tree, self.rooms, model)
        ]
        return (self._node_tier(model), *found)

    def _node_tier(self, model: str) -> Fits:
        each = self.by_node
        if model != ANY:
            each = each * self.stock.of_model.get(model, self.stock.gpus < 0)[:, None]
        if not len(each) or not each.any():
            return Fits(NODE_TIER, "node")
        gpus, whole = each.argmax(axis=0).tolist()
        names = self.stock.names
        return Fits(
            NODE_TIER, "node", int(each[gpus, 0]), names[gpus],
            int(each[whole, 1]), names[whole] if each[whole, 1] else "",
        )  # fmt: skip


def _named(domain: Domain | None) -> str:
    return "" if domain is None or domain.name == TOP else domain.name


def ground(user: Any, resources: Collection[str] = ()) -> tuple[list[stocks.Machine], Network]:
    """The machines and their network alone: what a placement is drawn over; three queries."""
    machines = stocks.machines(user, resources)
    return machines, network(user, machines)


def facts(user: Any) -> Facts:
    """Everything; four queries (five where HyperNodes select nodes by label)."""
    waiting, usual = shapes(user)
    resources = {name for each in (*waiting, *usual) for name in each.shape.needs}
    return Facts(*ground(user, resources), waiting, usual)


def summary(user: Any) -> Summary:
    """The head line of pages about GPUs."""
    known = facts(user)
    found = known.fragments
    return Summary(known.tiers(), found.free, found.unusable, found.causes, bool(known.waiting), found.parts)
