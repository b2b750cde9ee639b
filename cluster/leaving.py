"""Which pods leave a node that is drained, and what each of them would lose: kubectl's rules, pure."""

from __future__ import annotations

from enum import StrEnum

from cluster import objects
from cluster.kinds import DAEMON_SET
from cluster.port import Obj

DRAIN = "basalt.dev/drain"
"""Annotation of a node that is being drained: by which drain."""
_MIRROR = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


class Stay(StrEnum):
    """Why a pod stays where it is."""

    DAEMON = "daemon"
    """Its DaemonSet would put it there again at once."""
    STATIC = "static"
    """A file on the node makes it."""
    ENDED = "ended"
    """It has ended and holds nothing; who deletes it may have it run again."""


def why_stays(pod: Obj) -> Stay | None:
    """Why a drain leaves a pod alone; None when it has to go."""
    owner = objects.owner(pod)
    if owner is not None and owner.get("kind") == DAEMON_SET.kind:
        return Stay.DAEMON
    if _MIRROR in objects.annotations(pod):
        return Stay.STATIC
    return Stay.ENDED if (pod.get("status") or {}).get("phase") in _ENDED else None


def has_to_go(pod: Obj) -> bool:
    """Whether a drain evicts a pod."""
    return why_stays(pod) is None


def is_bare(pod: Obj) -> bool:
    """Whether nobody makes a pod again that is evicted."""
    return objects.owner(pod) is None


def has_local_data(pod: Obj) -> bool:
    """Whether a pod keeps something on its node that goes with it (emptyDir, of whatever medium)."""
    return any("emptyDir" in volume for volume in (pod.get("spec") or {}).get("volumes") or () if isinstance(volume, dict))


def drain_of(node: Obj) -> str:
    """The drain that a node is under, empty for none. A node that takes pods again is under none."""
    is_open = not (node.get("spec") or {}).get("unschedulable")
    return "" if is_open else str(objects.annotations(node).get(DRAIN) or "")
