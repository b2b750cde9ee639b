"""What people do with queues: create, change, open, close, delete. Pages, the admin and REST call these."""

from __future__ import annotations

import copy
from typing import Any

from cluster import commands
from cluster.errors import BadRequest, Conflict, FieldError, sentences
from cluster.kinds import QUEUE
from cluster.port import Cluster, Obj
from cluster.said import said
from queues.choices import QueueState
from queues.tree import ROOT, parent_of

MANAGER = "basalt"
COMMAND_NAMESPACE = "default"
"""Queues have no namespace; Commands do."""

ACTIONS: dict[str, str] = {"open": "OpenQueue", "close": "CloseQueue"}


def state_of(queue: Obj) -> QueueState:
    """The state of a queue; a brand-new one, which no controller has seen, counts as open, a state that is none as unknown."""
    state = (queue.get("status") or {}).get("state") or QueueState.OPEN
    return QueueState(state) if state in QueueState.values else QueueState.UNKNOWN


def create(cluster: Cluster, obj: Any, *, dry_run: bool = False) -> Obj:
    """Create a queue from its manifest. Raises BadRequest, Invalid with every fault, AlreadyExists."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise BadRequest(
            said("a Queue manifest is a mapping with metadata and spec"), [FieldError("/metadata", said("must name the queue"))]
        )
    wrong = [
        FieldError(f"/{field}", said("must be %(right)s, not %(given)r", right=right, given=obj[field]))
        for field, right in (("apiVersion", QUEUE.api_version), ("kind", QUEUE.kind))
        if obj.get(field, right) != right
    ]
    if wrong:
        raise BadRequest(said("%(faults)s", faults=sentences(wrong)), wrong)
    queue = copy.deepcopy(obj) | {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind}
    queue.pop("status", None)
    return cluster.create(QUEUE, queue, field_manager=MANAGER, dry_run=dry_run)


def update(cluster: Cluster, name: str, changes: dict[str, Any], *, resource_version: str = "", dry_run: bool = False) -> Obj:
    """Change a queue's spec: `changes` is a merge patch of it (a null removes a field).

    With `resource_version` it is refused when somebody changed the queue since. Raises NotFound, Conflict, Invalid.
    """
    body: dict[str, Any] = {"spec": changes}
    if resource_version:
        body["metadata"] = {"resourceVersion": resource_version}
    return cluster.patch(QUEUE, name, "", body, field_manager=MANAGER, dry_run=dry_run)


def delete(cluster: Cluster, name: str) -> None:
    """Delete a queue. Raises NotFound; Forbidden for built-in queues, parents of others, and while jobs in it have not ended."""
    cluster.delete(QUEUE, name)


def act(cluster: Cluster, name: str, action: str, *, user: str = "") -> Obj:
    """Ask the controller to open or close a queue, by a Command, and return the Command.

    An equal Command that still waits is returned instead of a second one. Raises BadRequest, NotFound, Conflict
    (root cannot be closed; a queue below a closed one cannot be opened).
    """
    if action not in ACTIONS:
        raise BadRequest(said("unknown action %(action)r; known are %(actions)s", action=action, actions=", ".join(ACTIONS)))
    queue = cluster.get(QUEUE, name)
    if name == ROOT and action == "close":
        raise Conflict(said("root cannot be closed; close the queues below it"))
    parent = parent_of(queue)
    if action == "open" and parent not in ("", ROOT):
        above = state_of(cluster.get(QUEUE, parent))
        if above in (QueueState.CLOSING, QueueState.CLOSED):
            raise Conflict(
                said(
                    "cannot open queue %(name)s: its parent %(parent)s is %(above)s; open %(parent)s first",
                    name=name,
                    parent=parent,
                    above=above,
                )
            )
    return commands.ask(cluster, queue, ACTIONS[action], namespace=COMMAND_NAMESPACE, user=user, field_manager=MANAGER)
