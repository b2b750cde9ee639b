"""Network domains as pages and REST show them: each with its nodes, GPUs, what is free and what fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.capacity import Fits
from cluster.display import number, short_model
from jobs.topology.facts import Facts
from jobs.topology.stock import Machine
from scheduler.topology.hypernodes import TOP, Domain
from scheduler.topology.largest import ANY, SIZES, DomainRoom

WIDE, CELL, GAP = 8, 11, 1
"""Of a small drawing: GPUs beside each other at least, the pixels of one across, and those between two."""
HIGH = 9


@dataclass(slots=True)
class Row:
    """One domain. `name` is empty for the whole fleet; `models` have what is free of each GPU model, the commonest first.

    `nodes` counts all, also those without GPUs; `lost` those that are not ready, so that nothing is known of their GPUs.
    """

    name: str
    tier: int
    label: str
    parent: str
    depth: int
    nodes: int
    lost: int
    cordoned: int
    room: DomainRoom
    unusable: int
    models: dict[str, DomainRoom]
    children: list[Row] = field(default_factory=list)
    machines: Sequence[Machine] = ()

    @property
    def used(self) -> int:
        """GPUs that are not free for anybody, for whatever reason."""
        return self.room.gpus - self.room.free

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(GPUs a pod, pods that fit at once)."""
        return list(zip(SIZES, self.room.pods, strict=True))

    @property
    def free_words(self) -> str:
        """What is free, in a word or two."""
        if not self.room.gpus:
            return _("no GPUs")
        return _("%(n)s free") % {"n": number(self.room.free)} if self.room.free else _("full")

    @property
    def fit_words(self) -> list[str]:
        """Its models and what fits, each in a few words."""
        found = [short_model(model) for model in self.models]
        if self.room.largest:
            found.append(_("gang %(n)s") % {"n": number(self.room.largest)})
        if self.room.whole:
            nodes = ngettext("%(shown)s node", "%(shown)s nodes", self.room.whole)
            found.append(nodes % {"shown": number(self.room.whole)})
        return found

    @property
    def drawing(self) -> Drawing:
        """Its GPUs, a line a node."""
        return draw([machine for machine in self.machines if machine.gpus])

    def as_json(self) -> dict[str, Any]:
        """The row for programs."""
        return {
            "name": self.name,
            "tier": self.tier,
            "tier_name": self.label,
            "parent": self.parent,
            "nodes": self.nodes,
            "nodes_not_ready": self.lost,
            "nodes_cordoned": self.cordoned,
            **room_json(self.room),
            "unusable": self.unusable,
            "models": {model: room_json(room) for model, room in self.models.items()},
        }


def room_json(room: DomainRoom) -> dict[str, Any]:
    """What fits, for programs."""
    return {
        "gpus": room.gpus,
        "free": room.free,
        "unhealthy": room.unhealthy,
        "largest_gang": {"gpus": room.largest, "nodes": room.whole, "pods": {str(k): n for k, n in zip(SIZES, room.pods)}},
    }


def tree(facts: Facts) -> Row:
    """The whole fleet with all domains below it, each level by name."""
    return _row(facts, facts.network.tree.top, 0)


def _row(facts: Facts, domain: Domain, depth: int) -> Row:
    rooms, machines = facts.rooms[domain.number], [facts.machines[row] for row in domain.rows.tolist()]
    models = sorted((m for m in rooms if m != ANY), key=lambda model: (-rooms[model].gpus, model))
    parent = domain.parent.name if domain.parent is not None and domain.parent.name != TOP else ""
    return Row(
        name="" if domain.name == TOP else domain.name,
        tier=domain.tier,
        label=facts.network.tiers[domain.tier],
        parent=parent,
        depth=depth,
        nodes=len(machines),
        lost=sum(not machine.ready for machine in machines),
        cordoned=sum(machine.cordoned for machine in machines),
        room=rooms[ANY],
        unusable=sum(facts.unusable_by_node.get(machine.name, 0) for machine in machines),
        models={model: rooms[model] for model in models},
        children=[_row(facts, child, depth + 1) for child in sorted(domain.children, key=lambda each: each.name)],
        machines=machines,
    )


def walk(row: Row) -> Iterable[Row]:
    """The row and all below it, each before its children."""
    yield row
    for child in row.children:
        yield from walk(child)


def of_name(root: Row, name: str) -> Row | None:
    """The domain of this name."""
    return next((row for row in walk(root) if row.name == name), None)


def outside(root: Row) -> list[Machine]:
    """Nodes in no domain."""
    inside = {machine.name for child in root.children for machine in child.machines}
    return [machine for machine in root.machines if machine.name not in inside]


def tiers_by_model(facts: Facts) -> list[tuple[Fits, list[Fits]]]:
    """For each tier the largest gang of any model, and that of each model."""
    models = [facts.tiers(model) for model in facts.stock.models] if len(facts.stock.models) > 1 else []
    return [(fits, [each[place] for each in models]) for place, fits in enumerate(facts.tiers())]


# -- small drawings ----------------------------------------------------------------------------------------------------

LAYERS = ("allocated", "free", "unhealthy", "cordoned", "unknown")


@dataclass(frozen=True, slots=True)
class Drawing:
    """GPUs of some nodes: a path for each state that occurs, in pixels."""

    width: int
    height: int
    layers: list[tuple[str, str]]


def state_of(machine: Machine, gpu: int) -> str:
    """A GPU as far as this page tells them apart: in use is in use, for whatever reason."""
    bit = 1 << gpu
    if not machine.ready:
        return "unknown"
    if machine.unhealthy & bit:
        return "unhealthy"
    if not machine.free & bit:
        return "allocated"
    return "cordoned" if machine.cordoned else "free"


def draw(machines: Sequence[Machine]) -> Drawing:
    """A line a node, a cell a GPU. GPUs in use beside each other are one piece, which the last layer cuts into cells."""
    paths: dict[str, list[str]] = {}
    step, down, widest = CELL + GAP, HIGH + GAP, max([machine.gpus for machine in machines], default=0)
    for line, machine in enumerate(machines):
        states = [state_of(machine, gpu) for gpu in range(machine.gpus)]
        for first, length in _runs(states):
            wide = length * step - GAP
            paths.setdefault(states[first], []).append(f"M{first * step} {line * down}h{wide}v{HIGH}h-{wide}z")
    height = max(len(machines), 1) * down
    layers = [(state, "".join(paths[state])) for state in LAYERS if state in paths]
    if "allocated" in paths:
        layers.insert(1, ("gap", "".join(f"M{gpu * step - GAP / 2:g} 0v{height}" for gpu in range(1, widest))))
    return Drawing(max(widest, WIDE) * step, height, layers)


def _runs(states: Sequence[str]) -> Iterable[tuple[int, int]]:
    """First and number of neighbours in use; every other GPU by itself."""
    first = 0
    for place in range(1, len(states) + 1):
        if place == len(states) or states[place] != "allocated" or states[first] != "allocated":
            yield first, place - first
            first = place
