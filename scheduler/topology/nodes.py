"""The GPUs of a node: how they are linked, by what its annotation says, and which of them a pod gets."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from cluster.objects import GPU_TOPOLOGY
from cluster.topology import TopologyError, parse_topology
from scheduler.topology.gpu import LinkMatrix, best_set

__all__ = ["choose_gpus", "of_node"]

_log = logging.getLogger(__name__)


def choose_gpus(node: Mapping[str, Any], free: int, count: int) -> Sequence[int]:
    """Indices of the best `count` of the free GPUs (a mask), by the node's links; fewer when there are fewer."""
    return best_set(of_node(node, free.bit_length()), free, min(count, free.bit_count()))


def of_node(node: Mapping[str, Any], gpus: int) -> LinkMatrix:
    """The links among at least `gpus` GPUs of a node; all alike where the node says nothing, or less than that.

    A table that cannot be read is told to the log, once a text, and counts as nothing said: the node stays usable.
    """
    text = ((node.get("metadata") or {}).get("annotations") or {}).get(GPU_TOPOLOGY)
    found = _of_text(text) if text else None
    return found if found is not None and found.size >= gpus else LinkMatrix.unknown(gpus)


@lru_cache(maxsize=1024)
def _of_text(text: str) -> LinkMatrix | None:
    try:
        return LinkMatrix.of(parse_topology(text).links)
    except (TopologyError, ValueError) as error:
        _log.warning("annotation %s cannot be read, so the GPUs count as linked alike: %s", GPU_TOPOLOGY, error)
        return None
