"""Rows of nodes and pods as what is left on each node. Pods are summed by the database: none of them comes here by itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Aggregate, BigIntegerField, Count, Q, Sum, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from cluster import queries
from cluster.quantities import GPU_RESOURCES
from jobs.choices import PodPhase
from jobs.models import Pod
from jobs.pages.workloads import OCCUPYING
from scheduler.topology.stock import NodeLeft, Stock

BASICS = ("cpu", "memory")
MOST_GPUS = 4096
"""Of a node; an index from here on is none."""
_NUMBER = re.compile(r"\d+")
_MANY = 200
"""From so many nodes on, those of all are read, which is quicker than naming them."""


class Joined(Aggregate):
    """The JSON texts of a group, one after the other."""

    function, output_field = "GROUP_CONCAT", TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="STRING_AGG(%(expressions)s::text, ' ')", **extra)


@dataclass(slots=True)
class Taken:
    """What is held on a node: a mask of whole GPUs, the parts of cards as text, how many GPUs are promised to pods that wait for
    others to end, and sums in smallest units (`pods` too)."""

    gpus: int = 0
    cards: str = ""
    promised: int = 0
    amounts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Machine:
    """A node's row as far as it is needed here, with what is taken. `unhealthy` and `held` are masks of GPUs."""

    name: str
    ready: bool
    cordoned: bool
    gpus: int
    model: str
    unhealthy: int
    rack: str
    spine: str
    allocatable: Mapping[str, int]
    held: int
    taken: Taken

    @property
    def free(self) -> int:
        """The mask of healthy GPUs that nobody holds; of those that are promised the lowest are left out."""
        found = ((1 << self.gpus) - 1) & ~(self.held | self.unhealthy)
        for _ in range(min(self.taken.promised, found.bit_count())):
            found &= found - 1
        return found

    def left(self) -> NodeLeft:
        """The node as the core takes it."""
        amounts = self.taken.amounts
        room = {name: units - amounts.get(name, 0) for name, units in self.allocatable.items()}
        return NodeLeft(
            self.name, self.model, self.gpus, self.free.bit_count(), self.unhealthy.bit_count(), self.ready, self.cordoned, room
        )


_COLUMNS = ("name", "ready", "cordoned", "gpu_count", "gpu_model", "gpu_unhealthy", "rack", "spine", "allocatable")


def machines(user: Any, resources: Collection[str] = (), names: Collection[str] | None = None) -> list[Machine]:
    """The nodes that the user may see, by name, with what is left; two queries, three where cards are shared.

    `resources` beside the basic ones are summed too; `names` None means all nodes.
    """
    rows = queries.nodes(user).order_by("name")
    if names is not None:
        rows = rows.filter(name__in=names)
    found = list(rows.values_list(*_COLUMNS))
    held = taken(resources, None if names is None or len(names) > _MANY else names)
    cards = dict(rows.exclude(gpu_cards=[]).values_list("name", "gpu_cards")) if any(mine.cards for mine in held.values()) else {}
    nothing = Taken()
    return [_machine(row, held.get(row[0], nothing), cards.get(row[0], ())) for row in found]


def _machine(row: Sequence[Any], mine: Taken, cards: Sequence[Sequence[Any]]) -> Machine:
    name, ready, cordoned, gpus, model, ill, rack, spine, room = row
    held = mine.gpus | mask(index for index, (uuid, _memory) in enumerate(cards) if uuid in mine.cards)
    gpus = min(gpus, MOST_GPUS)
    whole = (1 << gpus) - 1
    return Machine(name, ready, cordoned, gpus, model, mask(ill) & whole, rack, spine, room, held & whole, mine)


def taken(resources: Iterable[str] = (), nodes: Collection[str] | None = None) -> dict[str, Taken]:
    """What is taken on each node that has a pod, or is to have one; `nodes` None means everywhere."""
    gpus_asked, asked = sorted(GPU_RESOURCES), [*BASICS, *sorted(set(resources) - {*BASICS, *GPU_RESOURCES, "pods"})]
    sums = {f"sum_{n}": _sum(name) for n, name in enumerate(asked)}
    sums |= {f"gpus_{n}": _sum(name, Q(node="")) for n, name in enumerate(gpus_asked)}  # of those that hold some the indices tell
    here, soon = Q(phase__in=OCCUPYING) & ~Q(node=""), Q(phase=PodPhase.PENDING, node="") & ~Q(nominated="")
    if nodes is not None:
        here, soon = here & Q(node__in=nodes), soon & Q(nominated__in=nodes)
    rows = Pod.objects.filter(here | soon, deleted_at=None).order_by().values_list("node", "nominated")
    found: dict[str, Taken] = {}
    for node, nominated, number, gpus, cards, *units in rows.annotate(
        number=Count("uid"), all_gpus=Joined("gpus"), all_cards=Joined("cards"), **sums
    ):
        amounts = {name: amount or 0 for name, amount in zip(asked, units)}
        mine = found.setdefault(node or nominated, Taken())
        mine.gpus |= mask(map(int, _NUMBER.findall(gpus or "")))
        mine.cards += (cards or "").replace("[]", "").strip(" ,")
        mine.promised += -(-sum(amount or 0 for amount in units[len(asked) :]) // 1000)
        for name, amount in {"pods": number, **amounts}.items():
            mine.amounts[name] = mine.amounts.get(name, 0) + amount
    return found


def _sum(resource: str, only: Q | None = None) -> Sum:
    return Sum(Cast(KeyTextTransform(resource, "requests"), BigIntegerField()), filter=only)


def mask(gpus: Iterable[int]) -> int:
    """The bits of some GPU indices; what cannot be one (annotations are written by many hands) counts for nothing."""
    bits = 0
    for gpu in gpus:
        if 0 <= gpu < MOST_GPUS:
            bits |= 1 << gpu
    return bits


def stock(found: Iterable[Machine]) -> Stock:
    """Machines as the core takes them."""
    return Stock(machine.left() for machine in found)
