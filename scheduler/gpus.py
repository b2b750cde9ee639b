"""Which whole GPUs of a node a pod gets: the best set by the node's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.topology import gpu


def choose_gpus(node: Mapping[str, Any], free: int, count: int) -> Sequence[int]:
    """Indices of the best `count` of the free GPUs (a mask); fewer when there are fewer."""
    del node
    return gpu.best_set(gpu.LinkMatrix.unknown(free.bit_length()), free, min(count, free.bit_count()))
