"""Locks on nodes: while one stands, no other pod is given cards there. The node's device plugin takes it away.

A lock is an annotation of the node with the time at which it was taken; one that was left behind is void after a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster import objects

VGPU, GPU_SHARE = "hamivgpu", "gpu"
"""The annotations: Volcano's, by the kind of card."""

EXPIRY = 300.0
"""Seconds after which a lock is void."""


@dataclass(frozen=True, slots=True)
class NodeLock:
    """A lock to be taken, and when that was decided."""

    node: str
    key: str
    now: float


def is_locked(annotations: Mapping[str, str], key: str, now: float) -> bool:
    """Whether a lock stands; one whose time cannot be read does."""
    taken = annotations.get(key)
    if taken is None:
        return False
    try:
        return now - objects.parse_time(taken) <= EXPIRY
    except ValueError:
        return True
