"""Where pods would go, drawn small: a strip a node, a cell a GPU; and as rows of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cluster.display import runs
from portal.unblock.copy import View
from portal.unblock.trial import Place

NODES = 120
"""Most nodes that are drawn: those that would be used first."""


@dataclass(frozen=True, slots=True)
class Strip:
    """One node: its name, how many of the pods it gets, and its GPUs as `new`, `used`, `free` or `off`."""

    name: str
    pods: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes with GPUs, those that would be used first, and how many are not drawn."""

    strips: list[Strip]
    hidden: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Row:
    """A pod, its node and its GPUs, as short as they can be said."""

    pod: str
    node: str
    gpus: str


def rows(places: Iterable[Place], most: int = 200) -> list[Row]:
    """The pods by name."""
    return [Row(pod, node, runs(gpus)) for pod, node, gpus in list(places)[:most]]


def fleet(view: View, places: Collection[Place]) -> Fleet:
    """The fleet as it is, with the new pods on it."""
    pods: dict[str, int] = {}
    taken: dict[str, set[int]] = {}
    for _pod, node, gpus in places:
        pods[node] = pods.get(node, 0) + 1
        taken.setdefault(node, set()).update(gpus)
    nodes = view.cache.nodes
    found = []
    for name, row in nodes.index.items():
        count = int(nodes.gpu_all[row]).bit_length()
        if not count and name not in pods:
            continue
        usable, free = int(nodes.gpu_all[row]), int(nodes.gpu_free[row])
        is_off = not nodes.ready[row] or nodes.cordoned[row]
        mine = taken.get(name, set())
        cells = tuple(_cell(index, usable, free, index in mine, bool(is_off)) for index in range(count))
        found.append(Strip(name, pods.get(name, 0), cells))
    found.sort(key=lambda strip: (not strip.pods, strip.name))
    return Fleet(found[:NODES], max(0, len(found) - NODES), sum(len(gpus) for gpus in taken.values()))


def _cell(index: int, usable: int, free: int, mine: bool, is_off: bool) -> str:
    if mine:
        return "new"
    if is_off or not usable >> index & 1:
        return "off"
    return "free" if free >> index & 1 else "used"
