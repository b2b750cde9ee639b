"""All controllers of claims of the embedded cluster, over one watch."""

from __future__ import annotations

import logging
import threading

from cluster.embedded import resourceclaims, volumes
from cluster.errors import Unavailable
from cluster.kinds import POD
from cluster.objects import is_deleting
from cluster.port import Cluster, WatchEvent

logger = logging.getLogger(__name__)

_LONGEST_WAIT = 1.0


class ClaimKeeper:
    """Volume claims and resource claims. One thread calls it, whenever it was notified."""

    def __init__(self, cluster: Cluster) -> None:
        self._news = threading.Event()
        self._volumes = volumes.VolumeKeeper(cluster)
        self._devices = resourceclaims.ResourceClaimKeeper(cluster)
        self._watch = cluster.watch([*volumes.KINDS, *resourceclaims.KINDS, POD], notify=self._news.set)

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; a store that keeps nothing now is waited for."""
        while not stop.is_set():
            self._news.clear()
            try:
                if self.step():
                    continue
            except Unavailable as error:
                logger.warning("the claims wait for the store: %s", error)
                stop.wait(_LONGEST_WAIT)
                continue
            self._news.wait(_LONGEST_WAIT)

    def step(self) -> int:
        """Take in what happened and do what follows; how many objects were written."""
        written = 0
        for event in self._watch.drain():
            written += self._take(event)
        return written + self._volumes.work() + self._devices.work()

    def settle(self) -> int:
        """Step until nothing is left to do; how many objects were written."""
        total = 0
        while written := self.step():
            total += written
        return total

    def _take(self, event: WatchEvent) -> int:
        if event.kind is None:
            return 0
        self._volumes.take(event)
        self._devices.take(event)
        pod = event.object
        if event.kind == POD and event.type == "ADDED" and not is_deleting(pod) and pod["spec"].get("volumes"):
            return self._volumes.make_for(pod)
        return 0

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()
