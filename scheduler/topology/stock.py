"""What is left on nodes, as arrays: the input of questions about how much fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scheduler.model.resources import Ints, Mask

__all__ = ["NodeLeft", "Stock"]


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """One node. `gpus` are all it has; `free` of them are healthy and held by nobody; `left` is what else of it is not asked for,
    in smallest units (`pods` too). On a node that is not ready nothing is known to be free.
    """

    name: str
    model: str = ""
    gpus: int = 0
    free: int = 0
    unhealthy: int = 0
    ready: bool = True
    cordoned: bool = False
    left: Mapping[str, int] | None = None


class Stock:
    """Nodes as arrays with an entry a node: `gpus`, `free` (0 where it is not ready), `unhealthy`, `ready`, `cordoned`;
    `open` are those that take pods. `models` are the GPU models that there are, `of_model[m]` marks their nodes."""

    def __init__(self, nodes: Iterable[NodeLeft]) -> None:
        self.nodes: Sequence[NodeLeft] = list(nodes)
        self.names = [node.name for node in self.nodes]
        self.ready: Mask = np.array([node.ready for node in self.nodes], np.bool_)
        self.cordoned: Mask = np.array([node.cordoned for node in self.nodes], np.bool_)
        self.gpus: Ints = np.array([node.gpus for node in self.nodes], np.int64)
        self.unhealthy: Ints = np.array([node.unhealthy for node in self.nodes], np.int64)
        self.free: Ints = np.array([node.free if node.ready else 0 for node in self.nodes], np.int64)
        self.open: Mask = self.ready & ~self.cordoned
        self.models = sorted({node.model for node in self.nodes if node.gpus})

    @cached_property
    def of_model(self) -> dict[str, Mask]:
        """Nodes with GPUs, by model."""
        models = np.array([node.model for node in self.nodes], object)
        return {model: (models == model) & (self.gpus > 0) for model in self.models}

    def left(self, resource: str) -> Ints:
        """What is left of a resource on each node, never below 0."""
        amounts = [(node.left or {}).get(resource, 0) for node in self.nodes]
        return np.maximum(np.array(amounts, np.int64), 0)
