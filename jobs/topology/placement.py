"""A gang's placement drawn over the topology: spines, racks, nodes and GPU cells, with the gang's own marked by task.

What is drawn follows how much there is: GPU by GPU with the nodes' names; more, GPU by GPU without names; most, a figure a rack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.topology.domains import state_of
from jobs.topology.network import Network
from jobs.topology.places import Held, Places, tasks_of
from jobs.topology.stock import Machine
from scheduler.topology.gpu import indices
from scheduler.topology.hypernodes import TOP, Domain
from scheduler.topology.spread import Spread, spread

NAMED, DRAWN = 160, 1_600
"""Nodes up to which each has its name, and up to which each is drawn."""
CATEGORIES = 6
CELL, HIGH, GAP = 15, 13, 2
SMALL, LOW = 9, 7
NAME, COUNT = 88, 30
_NAME_LENGTH = 13


@dataclass(frozen=True, slots=True)
class TaskMark:
    """A task in the legend: its number from 1 to 6 (0: one of the others), pods, GPUs and nodes."""

    name: str
    number: int
    pods: int
    gpus: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Line:
    """One node of a rack: its name and as it is written, how many pods of the gang it has, where it is, and what to say of it."""

    name: str
    text: str
    pods: int
    y: int
    says: str


@dataclass(slots=True)
class Rack:
    """A lowest domain with pods of the gang. `paths` are (class, path) of cells; `labels` are (x, y, number) of pods in them."""

    name: str
    is_domain: bool
    pods: int
    gpus: int
    nodes: int
    all_nodes: int
    width: int = 0
    height: int = 0
    paths: list[tuple[str, str]] = field(default_factory=list)
    labels: list[tuple[int, int, int]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Section:
    """What is below one child of the whole fleet, as a spine."""

    name: str
    label: str
    pods: int
    gpus: int
    racks: list[Rack]


@dataclass(frozen=True, slots=True)
class Placement:
    """The drawing, with the spread of the gang. `detail` is `named`, `small` or `racks`; `words` name the tiers."""

    places: Places
    tasks: list[TaskMark]
    spread: Spread
    tier: str
    crossed: list[tuple[str, int]]
    sections: list[Section]
    detail: str
    missing: list[str]

    @property
    def domain(self) -> str:
        """The lowest domain that holds all; empty for the whole fleet."""
        return "" if self.spread.domain.name == TOP else self.spread.domain.name


def draw(places: Places, machines: Sequence[Machine], network: Network, order: Iterable[str] = ()) -> Placement | None:
    """The placement over these machines; None where no node of it is there (or may be seen) any more."""
    rows = {machine.name: row for row, machine in enumerate(machines)}
    there = [held for held in places.held if held.node in rows]
    if not there:
        return None
    numbers = {task: place + 1 if place < CATEGORIES else 0 for place, task in enumerate(tasks_of(places, order))}
    pods: defaultdict[int, int] = defaultdict(int)
    for held in there:
        pods[rows[held.node]] += held.pods
    found = spread(network.tree, pods)
    racks = _racks(network, pods, len(machines))
    shown = sum(len(nodes) for _rack, nodes in racks)
    detail = "named" if shown <= NAMED else "small" if shown <= DRAWN else "racks"
    by_node: defaultdict[str, list[Held]] = defaultdict(list)
    for held in there:
        by_node[held.node].append(held)
    return Placement(
        places=places,
        tasks=_legend(there, numbers),
        spread=found,
        tier=network.tiers[found.domain.tier],
        crossed=[(network.tiers[tier], count) for tier, count in found.crossed.items() if tier != network.tree.top.tier],
        sections=_sections(network, racks, machines, by_node, numbers, detail),
        detail=detail,
        missing=sorted({held.node for held in places.held} - rows.keys()),
    )


def _legend(held: Sequence[Held], numbers: Mapping[str, int]) -> list[TaskMark]:
    mine = {task: [each for each in held if each.task == task] for task in numbers}
    return [
        TaskMark(
            task, numbers[task], sum(e.pods for e in some), sum(e.gpus.bit_count() for e in some), len({e.node for e in some})
        )
        for task, some in mine.items()
    ]


def _racks(network: Network, pods: Mapping[int, int], count: int) -> list[tuple[Domain | None, list[int]]]:
    """The domains of the lowest tier that have pods, with all their nodes; None for nodes in no such domain, with pods alone."""
    leaf = network.tree.leaf.tolist() if len(network.tree.domains) > 1 else [-1] * count
    touched = sorted({leaf[row] for row in pods})
    found: list[tuple[Domain | None, list[int]]] = []
    for number in touched:
        if number >= 0:
            domain = network.tree.domains[number]
            found.append((domain, domain.rows.tolist()))
        else:
            found.append((None, sorted(row for row in pods if leaf[row] < 0)))
    return found


def _sections(
    network: Network,
    racks: Sequence[tuple[Domain | None, list[int]]],
    machines: Sequence[Machine],
    by_node: Mapping[str, list[Held]],
    numbers: Mapping[str, int],
    detail: str,
) -> list[Section]:
    grouped: defaultdict[Domain | None, list[Rack]] = defaultdict(list)
    for domain, nodes in racks:
        above = domain.parent if domain is not None and domain.parent is not None and domain.parent.name != TOP else None
        while above is not None and above.parent is not None and above.parent.name != TOP:
            above = above.parent
        grouped[above].append(_rack(domain, [machines[row] for row in nodes], by_node, numbers, detail))
    found = []
    for above, mine in grouped.items():
        name, label = (above.name, network.tiers[above.tier]) if above is not None else ("", "")
        mine.sort(key=lambda rack: rack.name)
        found.append(Section(name, label, sum(rack.pods for rack in mine), sum(rack.gpus for rack in mine), mine))
    return sorted(found, key=lambda section: section.name)


def _rack(
    domain: Domain | None,
    nodes: Sequence[Machine],
    by_node: Mapping[str, list[Held]],
    numbers: Mapping[str, int],
    detail: str,
) -> Rack:
    held = [each for node in nodes for each in by_node.get(node.name, ())]
    rack = Rack(
        name=domain.name if domain is not None else "",
        is_domain=domain is not None,
        pods=sum(each.pods for each in held),
        gpus=sum(each.gpus.bit_count() for each in held),
        nodes=len({each.node for each in held}),
        all_nodes=len(nodes),
    )
    if detail != "racks":
        _draw_cells(rack, nodes, by_node, numbers, is_named=detail == "named")
    return rack


def _draw_cells(
    rack: Rack, nodes: Sequence[Machine], by_node: Mapping[str, list[Held]], numbers: Mapping[str, int], *, is_named: bool
) -> None:
    """A line a node: its name, a cell for the gang's pods without GPUs where there are any, a cell a GPU, how many pods."""
    cell, high = (CELL, HIGH) if is_named else (SMALL, LOW)
    step, down = cell + (GAP if is_named else 1), high + (GAP + 1 if is_named else 1)
    begin = NAME if is_named else 0
    left = begin + (step + GAP if any(not held.gpus for node in nodes for held in by_node.get(node.name, ())) else 0)
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for line, node in enumerate(nodes):
        y, mine = line * down, by_node.get(node.name, [])
        bare = next((held for held in mine if not held.gpus), None)
        if bare is not None:
            paths[f"t{numbers[bare.task]}"].append(_square(begin, y, cell, high))
        for place, name in enumerate(_cells(node, mine, numbers)):
            paths[name].append(_square(left + place * step, y, cell, high))
        foot = y + high - 3
        if is_named:
            marks = [(gpu, index) for held in mine if held.gpus for gpu, index in held.labels.items() if 0 <= gpu < node.gpus]
            rack.labels += [(left + gpu * step + cell // 2, foot, index) for gpu, index in marks]
            if bare is not None and bare.pods == 1:
                rack.labels += [(begin + cell // 2, foot, index) for index in bare.labels.values()]
        rack.lines.append(Line(node.name, _short(node.name), sum(held.pods for held in mine), foot, _says(mine)))
    widest = max((node.gpus for node in nodes), default=0)
    rack.width = left + widest * step + (COUNT if is_named else 1)
    rack.height = max(len(nodes) * down, 1)
    rack.paths = [(name, "".join(paths[name])) for name in sorted(paths)]


def _square(x: int, y: int, wide: int, high: int) -> str:
    return f"M{x} {y}h{wide}v{high}h-{wide}z"


def _cells(node: Machine, mine: Sequence[Held], numbers: Mapping[str, int]) -> list[str]:
    """A class a GPU of a node."""
    found = [state_of(node, gpu) for gpu in range(node.gpus)]
    for held in mine:
        for gpu in range(node.gpus):
            if held.gpus >> gpu & 1:
                found[gpu] = f"t{numbers[held.task]}"
    return found


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"…{name[1 - _NAME_LENGTH :]}"


def _says(mine: Sequence[Held]) -> str:
    """Tasks with their pods' numbers: `worker 0, 1, 2`."""
    said = []
    for each in mine:
        numbers = ", ".join(map(str, sorted(each.labels.values()))) if len(each.labels) == each.pods else f"× {each.pods}"
        said.append(f"{each.task} {numbers}")
    return " · ".join(said)


def as_json(drawn: Placement) -> dict[str, Any]:
    """The placement for programs."""
    return {
        "kind": drawn.places.kind,
        "pods": drawn.places.pods,
        "gpus": drawn.places.gpus,
        "nodes": drawn.spread.nodes,
        "spread_score": None if drawn.spread.score is None else round(drawn.spread.score, 4),
        "domain": drawn.domain,
        "tier": drawn.spread.domain.tier,
        "tier_name": drawn.tier,
        "crossed": dict(drawn.crossed),
        "tasks": [{"name": t.name, "pods": t.pods, "gpus": t.gpus, "nodes": t.nodes} for t in drawn.tasks],
        "places": [{"task": h.task, "node": h.node, "pods": h.pods, "gpus": list(indices(h.gpus))} for h in drawn.places.held],
    }  # fmt: skip
