"""The simulated device plugin: it hands the cards of a starting pod over, and lets the next pod have the node's lock."""

from cluster import objects
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Conflict, NotFound
from cluster.kinds import NODE, POD
from cluster.port import Obj

PHASE, ALLOCATING, SUCCESS = "volcano.sh/bind-phase", "allocating", "success"
INDEX = "volcano.sh/gpu-index"
LOCKS = ("hamivgpu", "gpu")
"""Annotations of nodes by which a scheduler says that it is giving out cards there."""


def hand_over(cluster: EmbeddedCluster, pod: Obj, node: Obj | None) -> None:
    """Say on a pod that it has its cards, and unlock its node."""
    marks = objects.annotations(pod)
    try:
        if marks.get(PHASE) == ALLOCATING:
            cluster.patch(POD, objects.name(pod), objects.namespace(pod), {"metadata": {"annotations": {PHASE: SUCCESS}}})
        held = [key for key in LOCKS if node is not None and key in objects.annotations(node)]
        if held and node is not None and (PHASE in marks or INDEX in marks):
            cluster.patch(NODE, objects.name(node), "", {"metadata": {"annotations": dict.fromkeys(held)}})
    except (Conflict, NotFound):
        pass  # the pod or the node is gone: there is nobody to tell
