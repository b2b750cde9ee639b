"""What the pages of nodes and GPUs show, each computed in a constant number of queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from cluster import gpu_usage
from cluster.access import policy
from cluster.cards import IN_USE, STATES, Cell, Part, parts_of, state_of
from cluster.models import Event, Node
from cluster.runtime import now
from cluster.workloads import Holder, Share, current

__all__ = ["STATES", "Cell", "Fleet", "Part", "Strip", "cells_of", "fleet", "nodes", "strips"]


@dataclass(frozen=True, slots=True)
class Strip:
    """One node's GPUs."""

    node: Node
    cells: tuple[Cell, ...]

    @property
    def free(self) -> int:
        return sum(cell.state == "free" for cell in self.cells)

    @property
    def used(self) -> int:
        return sum(cell.is_in_use for cell in self.cells)

    @property
    def runs(self) -> list[Run]:
        """The cells as runs of equal state and job, for the table; cards that are shared stand alone."""
        runs: list[Run] = []
        for cell in self.cells:
            last = runs[-1] if runs else None
            if last is not None and _is_like(last.cell, cell):
                last.add(cell)
            else:
                runs.append(Run(cell.index, cell.index, cell, [cell.load]))
        return runs


def _is_like(a: Cell, b: Cell) -> bool:
    said = [(cell.state, _job_of(cell), cell.size) for cell in (a, b)]
    return max(len(a.parts), len(b.parts)) < 2 and said[0] == said[1]


def _job_of(cell: Cell) -> str:
    return cell.holder.job_uid if cell.holder else ""


@dataclass(slots=True)
class Run:
    """GPUs `first` to `last` of a node, alike in state and job; `cell` is the first, `loads` are of all."""

    first: int
    last: int
    cell: Cell
    loads: list[int | None]

    def add(self, cell: Cell) -> None:
        """Make it longer by the next GPU."""
        self.last = cell.index
        self.loads.append(cell.load)

    @property
    def load(self) -> str:
        """What is measured, in per cent, as `71` or `35–89`; empty when one is not."""
        known = [load for load in self.loads if load is not None]
        if len(known) < len(self.loads):
            return ""
        return "–".join(str(load) for load in sorted({min(known), max(known)}))

    @property
    def state(self) -> str:
        return self.cell.state

    @property
    def holder(self) -> Holder | None:
        return self.cell.holder

    @property
    def job_uid(self) -> str:
        return _job_of(self.cell)


def nodes(user: Any) -> QuerySet[Node]:
    """The nodes that the user may see."""
    return policy().visible(user, Node.objects.filter(deleted_at=None))


def strips(user: Any, rows: Sequence[Node]) -> list[Strip]:
    """The nodes with their GPUs' states, in their order."""
    held: defaultdict[str, list[Holder]] = defaultdict(list)
    for holder in current().holders(user, None if len(rows) > 200 else [row.name for row in rows]):
        held[holder.node].append(holder)
    present, nobody = now(), list[Holder]()
    return [Strip(row, cells_of(row, held.get(row.name, nobody), present)) for row in rows]


def cells_of(node: Node, holders: Iterable[Holder], present: datetime) -> tuple[Cell, ...]:
    """The GPUs of one node. Who is to get some when others end has the first free ones reserved; which it will be is open."""
    held, reserved = _by_gpu(node, holders)
    usage = gpu_usage.of_row(node.gpu_usage)
    if not usage.fresh(present):
        usage = gpu_usage.NOTHING
    cells, ill, facts = [], set(node.gpu_unhealthy), (node.heard, node.ready, node.cordoned)
    alike: dict[tuple[int, int], tuple[tuple[Part, ...], bool]] = {}
    for index in range(node.gpu_count):
        memory = node.gpu_cards[index][1] if index < len(node.gpu_cards) else node.gpu_memory_mib
        parts, over = _parts(held[index], memory, alike) if index in held else ((), False)
        measured = usage if _covers(usage, parts) else gpu_usage.NOTHING
        load = measured.load_of(index)
        state = state_of(*facts, index in ill, parts, bool(reserved), load)
        if state == "reserved":
            parts = (Part(reserved.pop(0), 0),)
        cells.append(Cell(index, state, parts, memory, load, measured.memory_of(index), over))
    return tuple(cells)


def _covers(usage: gpu_usage.GpuUsage, parts: Sequence[Part]) -> bool:
    """Whether a measurement is of those who hold a GPU now, and not of who had it before."""
    return bool(parts) and all(part.holder.since is None or part.holder.since.timestamp() <= usage.at for part in parts)


def _parts(
    held: list[tuple[Holder, Share | None]], memory: int, alike: dict[tuple[int, int], tuple[tuple[Part, ...], bool]]
) -> tuple[tuple[Part, ...], bool]:
    """The parts of a card; those of GPUs that one pod holds whole are made once."""
    holder, share = held[0]
    if len(held) > 1 or share is not None:
        return parts_of(held, memory)
    key = (id(holder), memory)
    if key not in alike:
        alike[key] = parts_of(held, memory)
    return alike[key]


Held = dict[int, list[tuple[Holder, Share | None]]]


def _by_gpu(node: Node, holders: Iterable[Holder]) -> tuple[Held, list[Holder]]:
    """Who holds each GPU, and those that are to get one, once for each. Cards go by the UUIDs that the node registers."""
    places = {uuid: index for index, (uuid, _memory) in enumerate(node.gpu_cards)}
    held: Held = {}
    reserved: list[Holder] = []
    for holder in holders:
        reserved.extend([holder] * holder.reserved)
        for gpu in holder.gpus:
            held.setdefault(gpu, []).append((holder, None))
        for share in holder.shares:
            place = places.get(share.card, int(share.card) if share.card.isdecimal() and not places else -1)
            if place >= 0:
                held.setdefault(place, []).append((holder, share))
    return held, reserved


FLEET_COLUMNS = (
    "uid", "name", "ready", "heard", "cordoned", "draining", "gpu_count", "gpu_model", "gpu_memory_mib", "gpu_unhealthy",
    "gpu_cards", "gpu_usage", "rack", "spine",
)  # fmt: skip


@dataclass(slots=True)
class Fleet:
    """Every GPU, with the counts that head the page."""

    strips: list[Strip]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def used(self) -> int:
        return sum(self.counts[state] for state in IN_USE)

    @property
    def whole_free(self) -> int:
        """Nodes whose GPUs are all free."""
        return sum(bool(strip.cells) and strip.free == len(strip.cells) for strip in self.strips)


def fleet(user: Any, model: str = "") -> Fleet:
    """The GPUs of all nodes that have some, by spine, rack and name."""
    rows = nodes(user).filter(gpu_count__gt=0).only(*FLEET_COLUMNS)
    if model:
        rows = rows.filter(gpu_model=model)
    found = strips(user, list(rows.order_by("spine", "rack", "name")))
    return Fleet(found, Counter(cell.state for strip in found for cell in strip.cells))


def models(user: Any) -> list[tuple[str, int]]:
    """GPU models with the number of their nodes, the commonest first; an empty name is a node without GPUs."""
    found = nodes(user).order_by().values_list("gpu_model").annotate(count=Count("uid"))
    return sorted(((model, count) for model, count in found), key=lambda each: (-each[1], each[0]))


def events(node: Node, limit: int = 50) -> list[Event]:
    """The newest events about a node."""
    about = Q(about_uid=node.uid) | Q(about_kind="Node", about_name=node.name)
    return list(Event.objects.filter(about, deleted_at=None).order_by("-last_seen")[:limit])


@dataclass(frozen=True, slots=True)
class Link:
    """One cell of a link matrix: its name and how near it is, 0 (across sockets) to 6 (several NVLinks)."""

    name: str
    level: int


_NEARNESS = {"SYS": 0, "SOC": 0, "PCIE": 1, "NODE": 1, "PHB": 2, "PXB": 3, "PIX": 3, "XGMI": 5}


def link_matrix(node: Node) -> list[list[Link | None]]:
    """The node's links as the page prints them; the diagonal is None. Empty when nothing is known."""
    return [
        [None if row == column else Link(name, nearness(name)) for column, name in enumerate(names)]
        for row, names in enumerate(node.gpu_links)
    ]


def nearness(link: str) -> int:
    """How near a link is: more NVLinks are nearer than any bridge. An unknown name counts as the farthest."""
    if link.startswith("NV") and link[2:].isdecimal():
        return 4 if int(link[2:]) == 1 else 6
    return _NEARNESS.get(link, 0)
