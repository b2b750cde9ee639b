"""Small fleets without a cluster: nodes with something left, and a tree of domains over their names."""

from __future__ import annotations

import numpy as np

from scheduler.topology.hypernodes import HyperNodes, read
from scheduler.topology.stock import NodeLeft, Stock
from tests.scheduler.topology.world import domain


class Rows:
    """Names of nodes as a tree wants them."""

    def __init__(self, names: list[str]) -> None:
        self.rows, self.live = len(names), np.ones(len(names), np.bool_)
        self.index = {name: row for row, name in enumerate(names)}
        self.labels = [{}] * len(names)


def left(name: str, free: int, *, gpus: int = 8, cpu: int = 64, memory: int = 512, pods: int = 100, **more) -> NodeLeft:
    """A node with so many free GPUs, CPUs and GiB."""
    amounts = {"cpu": cpu * 1000, "memory": memory << 30, "pods": pods, **more.pop("others", {})}
    return NodeLeft(name, more.pop("model", "H100"), gpus, free, left=amounts, **more)


def tree(domains: dict[str, list[str]], above: dict[str, list[str]] | None = None, names: list[str] | None = None) -> HyperNodes:
    """Domains of tier 1 over nodes, and of tier 2 over those."""
    objs = [domain(name, 1, nodes, name_of_tier="rack") for name, nodes in domains.items()]
    objs += [domain(name, 2, domains=below, name_of_tier="spine") for name, below in (above or {}).items()]
    names = names or [node for nodes in domains.values() for node in nodes]
    return HyperNodes([read(obj) for obj in objs], Rows(names))


def stock(*nodes: NodeLeft) -> Stock:
    return Stock(nodes)
