"""What the pages of nodes and GPUs show, each computed in a constant number of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet

from cluster.access import policy
from cluster.models import Event, Node
from cluster.workloads import Holder, Usage, current

STATES = ("allocated", "free", "releasing", "unhealthy", "cordoned", "unknown")
"""What a GPU can be. A free GPU of a node that takes no pods is cordoned; on a node that is not ready all are unknown."""


def gpu_state(node: Node, index: int, holder: Holder | None) -> str:
    """The state of one GPU."""
    if not node.ready:
        return "unknown"
    if index in node.gpu_unhealthy:
        return "unhealthy"
    if holder is not None:
        return "releasing" if holder.releasing else "allocated"
    return "cordoned" if node.cordoned else "free"


@dataclass(frozen=True, slots=True)
class Cell:
    """One GPU and who holds it."""

    index: int
    state: str
    holder: Holder | None


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
        return sum(cell.state in ("allocated", "releasing") for cell in self.cells)

    @property
    def runs(self) -> list[Run]:
        """The cells as runs of equal state and job, for the table."""
        runs: list[Run] = []
        for cell in self.cells:
            if runs and runs[-1].state == cell.state and runs[-1].job_uid == (cell.holder.job_uid if cell.holder else ""):
                runs[-1].last = cell.index
            else:
                runs.append(Run(cell.index, cell.index, cell.state, cell.holder))
        return runs


@dataclass(slots=True)
class Run:
    """GPUs `first` to `last` of a node, alike in state and job."""

    first: int
    last: int
    state: str
    holder: Holder | None

    @property
    def job_uid(self) -> str:
        return self.holder.job_uid if self.holder else ""


def nodes(user: Any) -> QuerySet[Node]:
    """The nodes that the user may see."""
    return policy().visible(user, Node.objects.filter(deleted_at=None))


def strips(user: Any, rows: Sequence[Node]) -> list[Strip]:
    """The nodes with their GPUs' states, in their order."""
    held = _held(current().holders(user, None if len(rows) > 200 else [row.name for row in rows]))
    empty: Mapping[int, Holder] = {}
    result = []
    for row in rows:
        mine = held.get(row.name, empty)
        cells = (Cell(index, gpu_state(row, index, mine.get(index)), mine.get(index)) for index in range(row.gpu_count))
        result.append(Strip(row, tuple(cells)))
    return result


def _held(holders: Iterable[Holder]) -> dict[str, dict[int, Holder]]:
    held: dict[str, dict[int, Holder]] = {}
    for holder in holders:
        held.setdefault(holder.node, {}).update(dict.fromkeys(holder.gpus, holder))
    return held


FLEET_COLUMNS = (
    "uid", "name", "ready", "cordoned", "gpu_count", "gpu_model", "gpu_memory_mib", "gpu_unhealthy", "rack", "spine",
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
        return self.counts["allocated"] + self.counts["releasing"]

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


def fleet_json(shown: Fleet) -> dict[str, Any]:
    """The fleet in the compact shape that the heatmap draws: names once, cells as one letter and one index each.

    `nodes` are `[name, spine, rack, model, ready, cordoned, letters, jobs]`, `jobs` are `[uid, name, queue, owner]`.
    """
    jobs: dict[tuple[str, str, str, str], int] = {}
    rows = []
    for strip in shown.strips:
        node = strip.node
        held = []
        for cell in strip.cells:
            who = cell.holder
            key = (who.job_uid, who.job, who.queue, who.owner) if who else None
            held.append(-1 if key is None else jobs.setdefault(key, len(jobs)))
        letters = "".join(LETTERS[cell.state] for cell in strip.cells)
        rows.append([node.name, node.spine, node.rack, node.gpu_model, node.ready, node.cordoned, letters, held])
    return {"nodes": rows, "jobs": [list(job) for job in jobs]}


LETTERS = {"allocated": "a", "free": "f", "releasing": "r", "unhealthy": "u", "cordoned": "c", "unknown": "x"}


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """What a reader asks of the node list; empty means all. `sort` is a key of SORTS, with a leading dash downwards."""

    text: str = ""
    state: str = ""
    model: str = ""
    rack: str = ""
    sort: str = "name"
    names: tuple[str, ...] | None = None


NODE_STATES: dict[str, Q] = {
    "ready": Q(ready=True, cordoned=False),
    "cordoned": Q(ready=True, cordoned=True),
    "lost": Q(ready=False),
}
SORTS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "state": ("ready", "-cordoned", "name"),
    "model": ("gpu_model", "name"),
    "gpus": ("gpu_count", "name"),
    "cpu": ("allocatable__cpu", "name"),
    "memory": ("allocatable__memory", "name"),
    "rack": ("spine", "rack", "name"),
}
BY_USE = ("used", "pods")
"""Sort keys that need what runs on the nodes, so the whole list is ordered here and not by the database."""


def find(user: Any, wanted: NodeFilter) -> QuerySet[Node]:
    """The filtered nodes, ordered where the database can."""
    rows = nodes(user)
    if wanted.text:
        rows = rows.filter(name__icontains=wanted.text)
    if wanted.names is not None:
        rows = rows.filter(name__in=wanted.names)
    if wanted.state in NODE_STATES:
        rows = rows.filter(NODE_STATES[wanted.state])
    if wanted.model:
        rows = rows.filter(gpu_model="" if wanted.model == "-" else wanted.model)
    if wanted.rack:
        rows = rows.filter(rack=wanted.rack)
    return rows.order_by(*_order(wanted.sort))


def _order(sort: str) -> tuple[str, ...]:
    """Columns of a sort key; downwards all of them are turned but the name that breaks ties."""
    keys = SORTS.get(sort.lstrip("-"), ("name",))
    if not sort.startswith("-"):
        return keys
    return tuple(
        key if key == "name" and len(keys) > 1 else key.removeprefix("-") if key.startswith("-") else f"-{key}" for key in keys
    )


def by_use(rows: QuerySet[Node], sort: str, usage: Mapping[str, Usage]) -> list[str]:
    """Node uids ordered by what is in use."""
    nothing = Usage()

    def key(row: tuple[str, str]) -> int:
        use = usage.get(row[1], nothing)
        return use.gpus if sort.endswith("used") else use.pods

    names = rows.order_by("name").values_list("uid", "name")
    return [uid for uid, _ in sorted(names, key=key, reverse=sort.startswith("-"))]


def node_counts(user: Any) -> dict[str, int]:
    """Nodes by state, for the facet and the head line."""
    counts = {f"in_{state}": Count("uid", filter=rule) for state, rule in NODE_STATES.items()}
    found: dict[str, int] = nodes(user).aggregate(in_all=Count("uid"), **counts)
    return {name.removeprefix("in_"): count for name, count in found.items()}


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
    if link.startswith("NV") and link[2:].isdigit():
        return 4 if int(link[2:]) == 1 else 6
    return _NEARNESS.get(link, 0)
