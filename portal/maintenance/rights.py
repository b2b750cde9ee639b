"""Whether this portal may drain nodes at all, as the cluster's server judges."""

from __future__ import annotations

import threading
import time

from cluster import runtime
from cluster.kinds import NODE, POD, Kind

KEPT = 60.0
"""Seconds for which an answer is taken for granted."""
_NEEDED: tuple[tuple[str, Kind, str], ...] = (("patch", NODE, ""), ("create", POD, "eviction"))
_guard = threading.Lock()
_known: tuple[int, float, tuple[str, ...]] | None = None


def missing() -> tuple[str, ...]:
    """The rights that a drain takes and this process lacks, as Kubernetes calls them. Raises ApiError when nobody answers."""
    global _known
    cluster = runtime.current()
    with _guard:
        if _known is not None and _known[0] == id(cluster) and time.monotonic() < _known[1] + KEPT:
            return _known[2]
    ask = getattr(cluster, "may", None)
    lacking = () if ask is None else tuple(_name(*right) for right in _NEEDED if not ask(*right))
    with _guard:
        _known = (id(cluster), time.monotonic(), lacking)
    return lacking


def _name(verb: str, kind: Kind, part: str) -> str:
    return f"{verb} {kind.plural}{f'/{part}' if part else ''}"
