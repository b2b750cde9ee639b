"""Takes locks on nodes, and gives them back, through the port."""

from __future__ import annotations

import logging

from cluster import objects
from cluster.errors import ApiError, Conflict
from cluster.kinds import NODE
from cluster.port import Cluster
from scheduler.model.nodelocks import NodeLock, is_locked

logger = logging.getLogger(__name__)


class Locker:
    """Nobody else can have a lock that this one took: it is written only if the node has not changed since it was read."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def take(self, lock: NodeLock) -> None:
        """Take a lock. Raises Conflict when it stands already or somebody else was quicker, and whatever the cluster says."""
        node = self._cluster.get(NODE, lock.node)
        if is_locked(objects.annotations(node), lock.key, lock.now):
            raise Conflict(f"node {lock.node} is locked: a pod is being given cards there")
        marks = {"annotations": {lock.key: objects.stamp(lock.now)}, "resourceVersion": node["metadata"]["resourceVersion"]}
        self._cluster.patch(NODE, lock.node, "", {"metadata": marks})

    def give_back(self, lock: NodeLock) -> None:
        """Let go a lock that nobody will use; where that fails it is void in time."""
        try:
            self._cluster.patch(NODE, lock.node, "", {"metadata": {"annotations": {lock.key: None}}})
        except ApiError as error:
            logger.debug("unlocking node %s failed: %s", lock.node, error)
