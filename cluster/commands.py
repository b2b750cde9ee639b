"""Commands (`bus.volcano.sh`): how people ask the controllers for an action on an object."""

from __future__ import annotations

from cluster import objects
from cluster.kinds import COMMAND
from cluster.port import Cluster, Obj


def ask(cluster: Cluster, target: Obj, action: str, *, namespace: str, user: str, field_manager: str) -> Obj:
    """The Command that asks for `action` on `target`: the one that waits already, else a new one.

    So a double click does nothing twice. `namespace` is the Command's own, since cluster-wide targets have none.
    """
    for found in waiting(cluster, target, namespace):
        if found.get("action") == action:
            return found
    return cluster.create(COMMAND, command(target, action, namespace=namespace, user=user), field_manager=field_manager)


def waiting(cluster: Cluster, target: Obj, namespace: str) -> list[Obj]:
    """The Commands on an object that no controller has taken yet."""
    found = cluster.list(COMMAND, namespace).items
    return [each for each in found if (each.get("target") or {}).get("uid") == objects.uid(target)]


def command(target: Obj, action: str, *, namespace: str, user: str = "") -> Obj:
    """A Command; it belongs to its target and goes with it."""
    reference = objects.owner_reference(target)
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {
            "generateName": f"{objects.name(target)}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "action": action,
        "target": dict(reference),
        "reason": "UserRequest",
        "message": f"asked by {user}" if user else "asked through the portal",
    }
