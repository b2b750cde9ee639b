"""The kubelet of scenarios: a bound pod runs at once with all containers ready, and until a step ends it."""

from __future__ import annotations

from cluster.clock import Clock
from cluster.embedded import podstatus
from cluster.embedded.claims import ClaimKeeper
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import POD
from cluster.objects import is_deleting, name, namespace, uid
from cluster.port import Obj


class InstantKubelet:
    """All nodes' kubelet; a pod that is deleted is gone at once."""

    def __init__(self, cluster: EmbeddedCluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._watch = cluster.watch([POD])
        self._claims = ClaimKeeper(cluster)

    def settle(self) -> int:
        """Do what is due; how many pods changed."""
        pods = {uid(event.object): event.object for event in self._watch.drain() if event.kind and event.type != "DELETED"}
        stopped = [pod for pod in pods.values() if is_deleting(pod)]
        started = [pod for pod in pods.values() if _is_starting(pod) and not is_deleting(pod)]
        for pod in started:
            self.report(pod, podstatus.running(pod, self._clock.now()))
        self._cluster.remove_stopped([(namespace(pod), name(pod), uid(pod)) for pod in stopped])
        return len(started) + len(stopped) + self._claims.settle()

    def end(self, pod: Obj, exit_code: int) -> None:
        """A running pod ends."""
        self.report(pod, podstatus.ended(pod, self._clock.now(), exit_code))

    def report(self, pod: Obj, status: Obj) -> None:
        """Write a pod's status."""
        self._cluster.patch_status(POD, name(pod), namespace(pod), status, uid=uid(pod))

    def close(self) -> None:
        """Stop watching."""
        self._claims.close()
        self._watch.close()


def _is_starting(pod: Obj) -> bool:
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") in (None, "", "Pending")
