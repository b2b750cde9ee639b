"""Writes that people make to queues: through the operations, and projected at once so that the next page shows them."""

from __future__ import annotations

from typing import Any

from cluster import runtime
from cluster.errors import NotFound
from cluster.kinds import QUEUE
from cluster.port import Obj
from cluster.projection import Batch
from queues import operations
from queues.projection import project


def create(manifest: Obj) -> Obj:
    """Create a queue. Raises what `operations.create` does."""
    return _shown(operations.create(runtime.current(), manifest))


def update(name: str, spec: dict[str, Any], version: str) -> Obj:
    """Change a queue's spec if it still is at `version`. Raises what `operations.update` does."""
    return _shown(operations.update(runtime.current(), name, spec, resource_version=version))


def delete(name: str) -> None:
    """Delete a queue. Raises what `operations.delete` does."""
    cluster = runtime.current()
    obj = cluster.get(QUEUE, name)
    operations.delete(cluster, name)
    project(Batch(deletes=[obj]))


def act(name: str, action: str, user: str) -> None:
    """Ask for a queue to be opened or closed. Raises what `operations.act` does."""
    cluster = runtime.current()
    operations.act(cluster, name, action, user=user)
    try:
        _shown(cluster.get(QUEUE, name))
    except NotFound:
        return


def _shown(obj: Obj) -> Obj:
    project(Batch(upserts=[obj]))
    return obj
