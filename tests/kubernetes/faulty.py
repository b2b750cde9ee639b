"""A transport on which requests go wrong as a test says, before or instead of reaching the real server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.kubernetes import KubernetesCluster
from cluster.kubernetes.transport import Transport
from testbed.server import TOKEN, ApiServer


@dataclass
class Fault:
    """`answer` (a status and its reason, or something to do first) for the next `times` requests of a method to a path."""

    method: str
    part: str
    times: int
    status: int = 0
    reason: str = ""
    first: Callable[[], Any] | None = None


class _Answer:
    def __init__(self, status: int, reason: str) -> None:
        self.status, self.headers = status, {"Retry-After": "1"} if status == 429 else {}
        self.data = b'{"kind":"Status","reason":"%s","message":"a fault of the tests","code":%d}' % (reason.encode(), status)


class Faulty(Transport):
    """Faults in the order in which they were put; a write without one is counted."""

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self._lock = threading.Lock()
        self.faults: list[Fault] = []
        self.met = 0
        self.dead = False

    def put(self, fault: Fault) -> None:
        """One more."""
        with self._lock:
            self.faults.append(fault)

    def _request(self, method: str, path: str, *others: Any, **more: Any) -> Any:
        if self.dead and method != "GET":
            return _Answer(503, "ServiceUnavailable")
        fault = self._find(method, path)
        if fault is not None and fault.first is not None:
            fault.first()
        if fault is not None and fault.status:
            return _Answer(fault.status, fault.reason)
        return super()._request(method, path, *others, **more)

    def _find(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.method == method and fault.part in path:
                    fault.times -= 1
                    self.met += 1
                    return fault
        return None


def faulty(server: ApiServer, at_once: int = 8) -> tuple[KubernetesCluster, Faulty]:
    """A client of the server, and what makes it fail."""
    transport = Faulty.to(server.url, TOKEN, str(server.authority))
    assert isinstance(transport, Faulty)
    return KubernetesCluster(transport, at_once), transport
