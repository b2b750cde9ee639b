"""gputopology: whole GPUs that are linked well, taken where they break the least; gangs inside one NVLink domain.

A node is judged by the set of GPUs that it would give (`topology.gpu.best_set`): its slowest link, its bandwidth, and the
damage, that is what later and larger requests lose on the node. A task of a gang is drawn to the NVLink domain where the
gang has pods already, and then to the nearest tier of the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cluster.said import said
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block, NodeTable
from scheduler.model.resources import Floats, Ints
from scheduler.model.tasks import NO_NODE, TaskClass, TaskInfo
from scheduler.topology.gpu import LinkMatrix, best_set, mask
from scheduler.topology.nodes import of_node
from scheduler.topology.worth import judge

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session
    from scheduler.topology.hypernodes import HyperNodes

NVLINK_DOMAIN = "nvidia.com/gpu.clique"
"""The label by which NVIDIA's device plugin tells which nodes share one NVLink fabric."""

_MOST_CHAINS = 100_000


@plugin
class GpuTopology:
    """Scores for tasks that ask for whole GPUs, on nodes that tell them one by one.

    Arguments: `gputopology.weight` (1), weight of the whole; `gputopology.link` (4), `gputopology.bandwidth` (2) and
    `gputopology.damage` (1), weights of the parts among each other; `gputopology.gang` (1), weight of staying together (0:
    gangs are not drawn together, and placed faster). None may be negative.
    """

    name: ClassVar[str] = "gputopology"
    _nodes: NodeTable
    _tree: HyperNodes
    _chains: dict[Any, tuple[int, float]]
    _links: list[LinkMatrix | None]
    _domains: Ints

    def __init__(self, arguments: Arguments) -> None:
        self._weight = _weight(arguments, "gputopology.weight", 1)
        self._gang = _weight(arguments, "gputopology.gang", 1)
        parts = [_weight(arguments, f"gputopology.{part}", default) for part, default in _PARTS.items()]
        if not sum(parts):
            raise arguments.error("gputopology.link", said("link, bandwidth and damage cannot all be 0: something must count"))
        self._shares = tuple(part / sum(parts) for part in parts)

    def on_session_open(self, ssn: Session) -> None:
        self._nodes, self._tree = ssn.nodes, ssn.places.tree
        if not self._weight:
            return
        self._chains = _remembered(ssn, (self.name, self._shares), dict)
        if len(self._chains) > _MOST_CHAINS:
            self._chains.clear()
        self._links = _remembered(ssn, (self.name, "links", ssn.nodes.static_version), lambda: [None] * ssn.nodes.rows)
        ssn.add_node_score(self.name, self.score, applies=_asks_gpus)
        if self._gang:
            key = (self.name, "domains", ssn.nodes.static_version)
            self._domains = _remembered(ssn, key, lambda: _domains(ssn.nodes))
            ssn.add_task_score(self.name, self.together, _in_gang)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    # -- a node by itself ----------------------------------------------------------------------------------------------

    def score(self, cls: TaskClass, at: Block) -> Floats:
        """0 to 100 × weight by the set that each node would give; 0 where too few are free or not told one by one."""
        nodes, scores = self._nodes, np.zeros(len(at.rows))
        copies = None if at.copies is None or at.as_pipelined else at.copies.tolist()
        for place, row in enumerate(at.rows.tolist()):
            if nodes.gpu_slots[row]:
                free = int(nodes.gpu_free[row])
                scores[place] = self._after(self._of_row(row), free, cls.gpus, 0 if copies is None else copies[place])[1]
        return scores * (MAX_NODE_SCORE * self._weight)

    def _of_row(self, row: int) -> LinkMatrix:
        found = self._links[row]
        if found is None:
            found = self._links[row] = of_node(self._nodes.objects[row], int(self._nodes.gpu_all[row]).bit_length())
        return found

    def _after(self, links: LinkMatrix, free: int, count: int, copies: int) -> tuple[int, float]:
        """What stays free when one more set is taken after so many copies, and the score of that set; 0 for none."""
        key = (links, free, count, copies)
        found = self._chains.get(key)
        if found is None:
            left = free if not copies else self._after(links, free, count, copies - 1)[0]
            if left.bit_count() < count:
                found = left, 0.0
            else:
                chosen = mask(best_set(links, left, count))
                parts = zip(self._shares, judge(links, left, chosen), strict=True)
                found = left & ~chosen, sum(share * part for share, part in parts)
            self._chains[key] = found
        return found

    # -- gangs ---------------------------------------------------------------------------------------------------------

    def together(self, task: TaskInfo, at: Block) -> Floats:
        """Two thirds by the part of the gang's pods in the node's NVLink domain, one third by the tier that joins them."""
        assert task.job is not None
        held = Counter(peer.node for peer in task.job.tasks.values() if peer.node != NO_NODE)
        if not held:
            return np.zeros(len(at.rows))
        by_domain = np.zeros(len(self._domains))
        for row, pods in held.items():
            by_domain[self._domains[row]] += pods
        shares = by_domain[self._domains[at.rows]] / held.total()
        return (2 * shares + self._nearness(held, at)) / 3 * (MAX_NODE_SCORE * self._weight * self._gang)

    def _nearness(self, held: Counter[int], at: Block) -> Floats:
        """1 in the lowest network domain with all the gang's pods, less for each tier above it."""
        tree = self._tree
        place, near = tree.holding(held), np.zeros(len(at.rows))
        low, high = tree.tiers[0], tree.tiers[-1]
        for domain in reversed(list(place.ancestors())):
            near[domain.mask[at.rows]] = 1.0 if high == low else (high - domain.tier) / (high - low)
        return near


_PARTS = {"link": 4, "bandwidth": 2, "damage": 1}


def _asks_gpus(cls: TaskClass) -> bool:
    return cls.gpus > 0


def _in_gang(task: TaskInfo) -> bool:
    return task.cls.gpus > 0 and task.job is not None and task.job.min_available > 1


def _domains(nodes: NodeTable) -> Ints:
    """A number for the NVLink domain of each row: what its label says, else the node alone."""
    numbers: dict[str, int] = {}
    names = (labels.get(NVLINK_DOMAIN) or f"/{name}" for labels, name in zip(nodes.labels, nodes.names, strict=True))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def _remembered(ssn: Session, key: Any, make: Callable[[], Any]) -> Any:
    """Something kept across sessions under the plugin's part of a key; what was kept under another key of it is dropped."""
    held = ssn.memo.setdefault(key[:-1], {})
    if key[-1] not in held:
        held.clear()
        held[key[-1]] = make()
    return held[key[-1]]


def _weight(arguments: Arguments, key: str, default: int) -> int:
    weight = arguments.integer(key, default)
    if weight < 0:
        raise arguments.error(key, said("%(weight)s must be 0 or more", weight=weight))
    return weight
