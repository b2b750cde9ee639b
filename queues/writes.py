"""Writes that people make to queues: through the operations, and projected at once so that the next page shows them."""

from __future__ import annotations

from typing import Any

from cluster import runtime
from cluster.errors import NotFound
from cluster.kinds import QUEUE
from cluster.port import Obj
from cluster.projection import Batch
from queues import changes, operations
from queues.projection import project


def create(manifest: Obj, user: str = "") -> Obj:
    """Create a queue. Raises what `operations.create` does."""
    return _shown(operations.create(runtime.current(), manifest), user)


def update(name: str, spec: dict[str, Any], version: str, user: str = "") -> Obj:
    """Change a queue's spec if it still is at `version`. Raises what `operations.update` does."""
    return _shown(operations.update(runtime.current(), name, spec, resource_version=version), user)


def delete(name: str, user: str = "") -> None:
    """Delete a queue. Raises what `operations.delete` does."""
    cluster = runtime.current()
    obj = cluster.get(QUEUE, name)
    operations.delete(cluster, name)
    project(Batch(deletes=[obj]), user)
    if user:
        changes.name_end(obj, user)


def act(name: str, action: str, user: str) -> None:
    """Ask for a queue to be opened or closed. Raises what `operations.act` does."""
    cluster = runtime.current()
    before = cluster.get(QUEUE, name)
    operations.act(cluster, name, action, user=user)
    changes.asked(before, action, user)
    try:
        _shown(cluster.get(QUEUE, name))
    except NotFound:
        return


def _shown(obj: Obj, user: str = "") -> Obj:
    project(Batch(upserts=[obj]), user)
    if user:
        changes.name_author(obj, user)
    return obj
