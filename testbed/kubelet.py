"""A small kubelet of many nodes: runs what is bound to them for as long as its annotations say, and stops what goes."""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections.abc import Iterable

from cluster.embedded import podstatus
from cluster.embedded.machines import make_node
from cluster.errors import AlreadyExists, ApiError
from cluster.kinds import NODE, POD
from cluster.objects import SIM_DURATION, SIM_EXIT_CODE, annotations, is_deleting, name, namespace, parse_duration, uid
from cluster.port import Cluster, Obj


class FakeKubelet:
    """Pods without a duration run until they are deleted. In a thread of its own; one that was refused tries again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._due: list[tuple[float, str, str, str, int]] = []
        self._started: set[str] = set()
        self.log: list[str] = []
        """What it did, in order: `start namespace/name`, `end …`, `stop …`."""

    def add_nodes(self, names: Iterable[str], **amounts: str) -> None:
        """Nodes that are ready; `amounts` in place of 8 CPUs, 32Gi of memory and 110 pods."""
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts}
        for each in names:
            with contextlib.suppress(AlreadyExists):
                self._cluster.create(NODE, make_node(each, capacity=capacity, allocatable=capacity, labels={}, annotations={}))
            # A server taints what is new until a controller has seen it ready.
            self._cluster.patch(NODE, each, "", {"spec": {"taints": None}})

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what runs stays as it is."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        watch = self._cluster.watch([POD])
        while not self._stop.is_set():
            event = watch.get(0.05)
            if event is not None and event.kind == POD and event.type != "DELETED":
                self._look_at(event.object)
            while self._due and self._due[0][0] <= time.monotonic():
                _, of, where, what, code = heapq.heappop(self._due)
                self._end(of, where, what, code)
        watch.close()

    def _look_at(self, pod: Obj) -> None:
        phase = (pod.get("status") or {}).get("phase")
        if not pod["spec"].get("nodeName"):
            return
        with contextlib.suppress(ApiError):
            if is_deleting(pod):
                self._cluster.delete(POD, name(pod), namespace(pod), uid=uid(pod), grace_seconds=0)
                self.log.append(f"stop {namespace(pod)}/{name(pod)}")
            elif phase == "Pending" and uid(pod) not in self._started:
                self._started.add(uid(pod))
                self._write(pod, podstatus.running(pod, time.time()))
                self.log.append(f"start {namespace(pod)}/{name(pod)}")
                if (lasts := annotations(pod).get(SIM_DURATION)) is not None:
                    code = int(annotations(pod).get(SIM_EXIT_CODE, "0"))
                    heapq.heappush(
                        self._due, (time.monotonic() + parse_duration(lasts), uid(pod), namespace(pod), name(pod), code)
                    )

    def _end(self, of: str, where: str, what: str, code: int) -> None:
        with contextlib.suppress(ApiError):
            pod = self._cluster.get(POD, what, where)
            if uid(pod) == of:
                self._write(pod, podstatus.ended(pod, time.time(), code))
                self.log.append(f"end {where}/{what}")

    def _write(self, pod: Obj, status: Obj) -> None:
        self._cluster.patch_status(POD, name(pod), namespace(pod), status, uid=uid(pod))
