"""Which whole GPUs of a node a pod gets: the best set by the node's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.topology.gpu import best_set
from scheduler.topology.nodes import of_node


def choose_gpus(node: Mapping[str, Any], free: int, count: int) -> Sequence[int]:
    """Indices of the best `count` of the free GPUs (a mask); fewer when there are fewer."""
    return best_set(of_node(node, free.bit_length()), free, min(count, free.bit_count()))
